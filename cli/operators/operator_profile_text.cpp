#include "cli/operators/operator_profile_text.h"

#include <fmt/format.h>

#include <map>

#include "cli/shared/table.h"

namespace frostpipe {

std::string operator_profile_text(const OperatorGraph& graph, const std::string& source) {
  std::vector<Table::Column> columns = {{"operators", Table::Align::left}, {"count"}};
  for (const auto& time : graph.operators.front().times) columns.push_back({time.device_class + " [ms]"});
  std::map<OperatorKind, std::pair<int, std::vector<Nanoseconds>>> sums;
  for (const auto& one : graph.operators) {
    auto& [count, times] = sums[one.kind];
    times.resize(one.times.size());
    ++count;
    for (std::size_t i = 0; i < one.times.size(); ++i) times[i] += one.times[i].overhead_ns + one.times[i].work_ns;
  }
  Table table(columns);
  for (const auto& [kind, sum] : sums) {
    std::vector<std::string> cells = {std::string(to_string(kind)), std::to_string(sum.first)};
    for (const Nanoseconds time_ns : sum.second) cells.push_back(in_milliseconds(time_ns));
    table.add_row(cells);
  }
  return fmt::format("{}, {} layers, mini-batch {}, {}\n\n{}", graph.net, num_layers(graph), graph.batch, source,
                     table.to_string());
}

}  // namespace frostpipe
