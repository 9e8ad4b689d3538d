#include "cli/report/chrome_trace.h"

#include <nlohmann/json.hpp>
#include <set>

namespace frostpipe {
namespace {

using Json = nlohmann::ordered_json;

/// Moves the events of one trace to processes of their own and gives those their names and places.
void add_trace(const NamedTrace& named, int first_process, Json& events) {
  const Json document = Json::parse(to_chrome_trace(named.trace));
  std::set<int> processes;
  for (const Json& original : document.is_array() ? document : document.at("traceEvents")) {
    const bool names_process = original.value("ph", "") == "M" && original.value("name", "").starts_with("process_");
    if (names_process) continue;
    Json event = original;
    const int process = event.value("pid", 0);
    processes.insert(process);
    event["pid"] = first_process + process;
    events.push_back(std::move(event));
  }
  for (const int process : processes) {
    const int id = first_process + process;
    const std::string name = named.name + ": rank " + std::to_string(process);
    events.push_back({{"ph", "M"}, {"name", "process_name"}, {"pid", id}, {"args", {{"name", name}}}});
    events.push_back({{"ph", "M"}, {"name", "process_sort_index"}, {"pid", id}, {"args", {{"sort_index", id}}}});
  }
}

}  // namespace

std::string to_chrome_trace(const std::vector<NamedTrace>& traces) {
  Json events = Json::array();
  int first_process = 1;
  for (const NamedTrace& named : traces) {
    add_trace(named, first_process, events);
    first_process += named.trace.num_ranks;
  }
  return Json{{"traceEvents", events}, {"displayTimeUnit", "ms"}}.dump() + "\n";
}

}  // namespace frostpipe
