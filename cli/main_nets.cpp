// `frostpipe nets` runs this separate program (cli/installation/hand_over.h), so that the program that trains
// Transformers does not contain its code.
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
