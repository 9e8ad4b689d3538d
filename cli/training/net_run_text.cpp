#include "cli/training/net_run_text.h"

#include <fmt/format.h>

#include "cli/shared/table.h"

namespace frostpipe {
namespace {

using enum Table::Align;

std::string epochs_table(const NetRun& run) {
  Table table({{"epoch", right},
               {"frozen layers", right},
               {"iteration [ms]", right},
               {"predicted [ms]", right},
               {"prediction off by [%]", right},
               {"loss", right},
               {"test accuracy [%]", right}});
  for (std::size_t i = 0; i < run.epochs.size(); ++i) {
    const NetEpoch& epoch = run.epochs[i];
    const double off = static_cast<double>(epoch.predicted_iteration_ns) / static_cast<double>(epoch.iteration_ns) - 1;
    table.add_row({std::to_string(i + 1), std::to_string(epoch.frozen_layers), in_milliseconds(epoch.iteration_ns),
                   in_milliseconds(epoch.predicted_iteration_ns), fmt::format("{:+.1f}", 100 * off),
                   epoch.loss ? fmt::format("{:.4f}", *epoch.loss) : "-",
                   epoch.test_accuracy ? fmt::format("{:.1f}", 100 * *epoch.test_accuracy) : "-"});
  }
  return table.to_string();
}

std::string devices_table(const NetRun& run) {
  Table table({{"device", right}, {"class", left}, {"predicted memory [MiB]", right}, {"peak memory [MiB]", right}});
  for (std::size_t d = 0; d < run.devices.size(); ++d) {
    const NetDevice& device = run.devices[d];
    table.add_row({std::to_string(d), device.device_class, in_mebibytes(device.predicted_memory_bytes),
                   device.peak_memory_bytes > 0 ? in_mebibytes(device.peak_memory_bytes) : "-"});
  }
  return table.to_string();
}

}  // namespace

std::string net_run_text(const NetRun& run, const std::string& folder) {
  return fmt::format("{}: {} by {}, {} iterations of {} samples in {:.1f} s; files are in {}\n\n{}\n{}", run.name,
                     run.net, to_string(run.method), run.num_iterations, run.batch, run.wall_seconds, folder,
                     epochs_table(run), devices_table(run));
}

}  // namespace frostpipe
