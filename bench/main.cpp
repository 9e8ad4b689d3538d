// `frostpipe bench` executes this separate program, so that the tool itself contains nothing that only measures.
#include "bench/bench_command.h"
#include "cli/program/program.h"

int main(int argc, char** argv) {
  using namespace frostpipe;
  run_program({.description = "Compares frostpipe with published runs, and ways to train with each other.",
               .version = "",
               .commands = {add_bench_command},
               .hand_over = [](int, char**) {}},
              argc, argv);
}
