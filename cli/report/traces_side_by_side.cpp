#include "cli/report/traces_side_by_side.h"

#include "base/chrome_trace.h"

namespace frostpipe {

std::string to_chrome_trace(const std::vector<NamedTrace>& traces) {
  Timeline all;
  int first_process = 1;
  for (const NamedTrace& named : traces) {
    Timeline one = timeline_of(named.trace);
    for (TimelineProcess& process : one.processes)
      all.add_process(first_process + process.process, named.name + ": " + process.name);
    for (TimelineThread& thread : one.threads)
      all.add_thread(first_process + thread.process, thread.thread, std::move(thread.name));
    for (TimelineSpan& span : one.spans) {
      span.process += first_process;
      all.spans.push_back(std::move(span));
    }
    first_process += named.trace.num_ranks;
  }
  return to_chrome_trace(all);
}

}  // namespace frostpipe
