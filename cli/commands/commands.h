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
Command add_bench_command(CLI::App& app);
Command add_doctor_command(CLI::App& app);
Command add_serving_commands(CLI::App& app);
Command add_nets_commands(CLI::App& app);

}  // namespace frostpipe
