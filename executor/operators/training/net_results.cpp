#include "executor/operators/training/net_results.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "profiles/files.h"
#include "simulator/operators/run_operators.h"

namespace frostpipe {

void write_net_results(const NetRun& run, const NetSession& session, const TrainOptions& options,
                       Communicator& communicator) {
  const DeviceTimes& times = session.times();
  const std::vector<std::string> texts =
      communicator.gather(nlohmann::json{{"begin_ns", times.begin_ns}, {"end_ns", times.end_ns}}.dump());
  if (communicator.rank() == 0) {
    std::vector<DeviceTimes> measured;
    for (const std::string& text : texts) {
      const auto json = nlohmann::json::parse(text);
      measured.push_back({json["begin_ns"], json["end_ns"]});
    }
    const OperatorRun predicted = simulate_operators(session.plan(), session.tasks(), options.plan_source);
    write_file_atomically(options.output / "trace.json",
                          chrome_trace(session.plan(), session.tasks(), predicted, measured));
    write_file_atomically(options.output / "summary.json", to_json(run));
  }
  communicator.control_group().barrier();  // whoever is lost before it is lost to all
}

}  // namespace frostpipe
