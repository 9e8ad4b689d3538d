// `frostpipe serving` runs this separate program (cli/installation/hand_over.h), so that the program that trains
// Transformers does not contain its code.
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
