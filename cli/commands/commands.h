#pragma once
#include <functional>

namespace CLI {
class App;
}

namespace frostpipe {

/// A subcommand: adding it to the command line only binds its options; `run` does the work, once they are parsed, and
/// returns the exit code. Results go to stdout, everything else to stderr.
struct Command {
  CLI::App* parsed = nullptr;
  std::function<int()> run;
};

Command add_profile_command(CLI::App& app);
Command add_plan_command(CLI::App& app);
Command add_simulate_command(CLI::App& app);
Command add_train_command(CLI::App& app);
Command add_serve_command(CLI::App& app);
Command add_launch_command(CLI::App& app);
Command add_evaluate_command(CLI::App& app);
Command add_compare_command(CLI::App& app);
Command add_report_command(CLI::App& app);
Command add_schedule_command(CLI::App& app);
Command add_inspect_command(CLI::App& app);
Command add_bench_command(CLI::App& app);
Command add_doctor_command(CLI::App& app);

}  // namespace frostpipe
