#include "cli/commands/commands.h"
#include "cli/installation/hand_over.h"
#include "cli/installation/version.h"
#include "cli/program/program.h"

int main(int argc, char** argv) {
  using namespace frostpipe;
  run_program(
      {.description = "Plans, simulates and runs pipeline-parallel training that gets cheaper as it "
                      "converges.\n\n"
                      "  profile --> plan --> simulate\n"
                      "                   \\-> train ----> compare --> report\n",
       .version = version_text(),
       .commands = {add_profile_command, add_plan_command, add_simulate_command, add_train_command, add_launch_command,
                    add_evaluate_command, add_compare_command, add_report_command, add_schedule_command,
                    add_inspect_command, add_serving_program, add_nets_program, add_bench_program, add_doctor_command},
       .hand_over = hand_over},
      argc, argv);
}
