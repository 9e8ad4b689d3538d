#include "operators/training/net_checkpoints.h"

#include <fmt/format.h>

#include <exception>
#include <utility>

#include "base/steady_clock.h"
#include "executor/training/policy/resume_point.h"
#include "operators/training/net_snapshot.h"

namespace frostpipe {

NetCheckpoints::NetCheckpoints(const TrainOptions& options, const NetShape& net, Communicator& communicator,
                               std::function<void(const std::string&)> note)
    : options_(options),
      net_(net),
      communicator_(communicator),
      note_(std::move(note)),
      schedule_(options.checkpoints, steady_now_ns()) {}

bool NetCheckpoints::is_due(int step) {
  if (!schedule_.asks_before(step, steady_now_ns())) return false;
  CheckpointSchedule::Proposal proposal;
  if (communicator_.rank() == 0) proposal = schedule_.propose(step, steady_now_ns());
  const std::vector<double> sums =
      communicator_.sum({proposal.is_due ? 1.0 : 0.0, static_cast<double>(proposal.next_question)});
  return schedule_.decide(step, {.is_due = sums[0] > 0, .next_question = static_cast<int>(sums[1])},
                          /*is_busy=*/false, steady_now_ns());
}

bool NetCheckpoints::write(const NetCheckpoint& snapshot, const std::function<WholeLayer(int layer)>& collect) {
  const bool leads = communicator_.rank() == 0;
  const std::filesystem::path root = checkpoints_folder(options_), whole = checkpoint_path(root, snapshot.step),
                              folder = whole.string() + ".part-" + attempt_name(0, 0);
  std::optional<NetStateWriter> writer;
  std::string problem;
  const auto attempt = [&](const std::function<void()>& work) {
    if (!leads || !problem.empty()) return;
    try {
      work();
    } catch (const std::exception& error) {
      problem = error.what();
    }
  };
  attempt([&] { writer.emplace(folder / kNetStateFile, net_); });
  for (int layer = 0; layer < static_cast<int>(net_.layers.size()); ++layer) {
    WholeLayer one = collect(layer);
    attempt([&] { writer->write(layer, std::move(one)); });
  }
  attempt([&] {
    write_net_manifest(snapshot, writer->finish(), folder);
    publish_checkpoint(folder, whole);
    keep_newest_checkpoints(root, options_.checkpoints.keep, {});
  });
  schedule_.record_written(steady_now_ns());
  if (problem.empty()) return leads;
  writer.reset();
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  note_(fmt::format("the checkpoint of step {} was not written: {}; training goes on", snapshot.step, problem));
  return false;
}

std::optional<NetCheckpoint> net_checkpoint_to_resume(const TrainOptions& options, const RunSettings& settings,
                                                      const std::function<void(const std::string&)>& note) {
  const auto read_whole = [](const std::filesystem::path& folder) { open_state(read_net_checkpoint(folder)); };
  const std::filesystem::path folder = whole_checkpoint_to_resume(options, read_whole, note);
  std::optional<NetCheckpoint> found;
  if (!folder.empty()) {
    found = read_net_checkpoint(folder);
    require_same_settings(found->settings, settings, folder);
  }
  keep_checkpoints_up_to(folder, found ? found->step : 0, checkpoints_folder(options));
  std::error_code none;
  std::filesystem::remove(options.output / "summary.json", none);  // of the run before
  return found;
}

}  // namespace frostpipe
