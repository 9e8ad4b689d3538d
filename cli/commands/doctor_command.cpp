#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "cli/commands/commands.h"
#include "cli/installation/diagnosis.h"
#include "cli/installation/version.h"
#include "cli/shared/common_options.h"
#include "cli/shared/output.h"

namespace frostpipe {
namespace {

struct DoctorOptions {
  std::string format;
  bool libtorch_facts = false;
};

int run_doctor(const DoctorOptions& options) {
  if (options.libtorch_facts) {
    print_result("\n" + libtorch_facts_json(libtorch_facts()) + "\n");
    return 0;
  }
  const Diagnosis diagnosis = diagnose(short_version_text());
  print_result(options.format == "json" ? diagnosis_json(diagnosis) : diagnosis_text(diagnosis));
  return problems_of(diagnosis).empty() ? 0 : 1;
}

}  // namespace

Command add_doctor_command(CLI::App& app) {
  const auto options = std::make_shared<DoctorOptions>();
  CLI::App* command =
      app.add_subcommand("doctor", "Check whether this machine can train, and say what is missing and how to get it");
  command->add_flag("--libtorch-facts", options->libtorch_facts)->group("");  // for diagnose()
  add_format_option(*command, options->format);
  command->footer("The exit code is 1 if anything is missing.\n\nExample:\n  frostpipe doctor --format json");
  return {command, [options] { return run_doctor(*options); }};
}

}  // namespace frostpipe
