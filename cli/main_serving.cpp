// `frostpipe serving` is a program of its own, which `frostpipe` becomes: training does without its code.
#include "cli/commands/commands.h"
#include "cli/program/program.h"

int main(int argc, char** argv) {
  using namespace frostpipe;
  run_program({.description = "Answers requests within a latency objective on pools of unequal devices.",
               .version = "",
               .commands = {add_serving_commands},
               .hand_over = [](int, char**) {}},
              argc, argv);
}
