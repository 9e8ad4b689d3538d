// `frostpipe nets` is a program of its own, which `frostpipe` becomes: training does without its code.
#include "cli/commands/commands.h"
#include "cli/program/program.h"

int main(int argc, char** argv) {
  using namespace frostpipe;
  run_program({.description = "Trains nets with batch norm exactly on unequal devices.",
               .version = "",
               .commands = {add_nets_commands},
               .hand_over = [](int, char**) {}},
              argc, argv);
}
