#pragma once
#include "cli/program/program.h"

namespace frostpipe {

Command add_profile_command(CLI::App& app);
Command add_plan_command(CLI::App& app);
Command add_simulate_command(CLI::App& app);
Command add_train_command(CLI::App& app);
Command add_launch_command(CLI::App& app);
Command add_evaluate_command(CLI::App& app);
Command add_compare_command(CLI::App& app);
Command add_report_command(CLI::App& app);
Command add_schedule_command(CLI::App& app);
Command add_inspect_command(CLI::App& app);
Command add_doctor_command(CLI::App& app);

constexpr const char* kServingDescription =
    "Answer requests within a latency objective on pools of unequal devices (PPipe)";
constexpr const char* kNetsDescription = "Train nets with batch norm exactly on unequal devices (MTrain)";

/// Add the commands of the programs frostpipe-serving and frostpipe-nets.
Command add_serving_commands(CLI::App& app);
Command add_nets_commands(CLI::App& app);

/// Add entries to the list of commands for which `frostpipe` becomes another program (cli/installation/hand_over.h). If
/// that program has not been built, running them throws a RuntimeFailure that says how to build it.
Command add_serving_program(CLI::App& app);
Command add_nets_program(CLI::App& app);
Command add_bench_program(CLI::App& app);

}  // namespace frostpipe
