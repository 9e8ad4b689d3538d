// ScheduleRunner's evaluation: batches of samples go forward through the stages.
#include <algorithm>
#include <numeric>

#include "executor/runtime/schedule_runner.h"
#include "profiles/error.h"

namespace frostpipe {
namespace {

constexpr std::size_t kSendsAhead = 2;  // of a stage

/// Batches of a replica: every one of those in turn.
std::vector<SampleRange> share_of_replica(const std::vector<SampleRange>& batches, const MeshCoordinate& coordinate,
                                          int replicas) {
  std::vector<SampleRange> share;
  for (int index = coordinate.replica; index < static_cast<int>(batches.size()); index += replicas)
    share.push_back(batches[index]);
  return share;
}

}  // namespace

std::vector<double> ScheduleRunner::answers(const Samples& data, std::span<const int> samples, int most_samples,
                                            std::int64_t most_tokens) {
  FROSTPIPE_CHECK(!has_begun(), "an evaluation has the pipeline to itself");
  finish_sends();
  const auto size = static_cast<std::size_t>(parts().stages.begin()->second->answer_size());
  std::vector<double> answers(samples.size() * size, 0.0);
  // Samples of one length together: see attention.h.
  std::vector<int> by_length(samples.size());  // index in `samples`
  std::iota(by_length.begin(), by_length.end(), 0);
  std::stable_sort(by_length.begin(), by_length.end(),
                   [&](int a, int b) { return data.tokens(samples[a]) < data.tokens(samples[b]); });
  std::vector<int> sorted;
  for (const int index : by_length) sorted.push_back(samples[index]);
  const std::vector<SampleRange> batches = share_of_replica(batches_of(data, sorted, most_samples, most_tokens),
                                                            coordinate_, phase_.layout.data_parallel_size);
  if (batches.empty()) return answers;
  const auto batch_of = [&](const Action& action) {
    const auto [begin, end] = batches[*action.micro_batch];
    return mini_batch(data, std::span(sorted).subspan(begin, end - begin), end - begin, 0);
  };
  const Schedule schedule = lower(forward_only(messages_.pipeline_rank_of_stage, static_cast<int>(batches.size())));
  const RankMessages messages = messages_of(schedule, coordinate_.pipeline_rank, messages_.ranks);
  SendsAhead ahead(kSendsAhead);
  const auto make = [&](const Action& receive) {
    const MiniBatch batch = batch_of(receive);
    return make_activation(std::accumulate(batch.lengths.begin(), batch.lengths.end(), std::int64_t{0}));
  };
  MessageExchange exchange(messages, /*first_tag=*/0, parts().groups, ahead,
                           {posted_receives(), [](const Action&) { return false; }, make});
  std::map<std::pair<int, int>, at::Tensor> inputs, outputs;  // by stage and batch
  for (const Action& action : schedule.body[coordinate_.pipeline_rank]) {
    const std::pair<int, int> place(action.stage, *action.micro_batch);
    if (action.kind == ActionKind::recv_forward) inputs[place] = exchange.receive(action);
    if (action.kind == ActionKind::send_forward) exchange.send(action, outputs.extract(place).mapped());
    if (action.kind != ActionKind::forward) continue;
    const MiniBatch batch = batch_of(action);
    at::Tensor output = parts().stages.at(action.stage)->evaluate(batch, std::move(inputs[place]));
    inputs.erase(place);
    if (action.stage + 1 < num_stages(schedule)) {
      (has_stage(action.stage + 1) ? inputs[{action.stage + 1, place.second}] : outputs[place]) = std::move(output);
      continue;
    }
    if (coordinate_.tensor > 0) continue;  // the first tensor rank says the same
    const double* found = output.data_ptr<double>();
    for (std::size_t i = 0; i < batch.samples.size(); ++i, found += size) {
      const int index = by_length[static_cast<std::size_t>(batches[place.second].begin) + i];
      std::copy_n(found, size, answers.begin() + static_cast<std::ptrdiff_t>(index * size));
    }
  }
  ahead.finish();
  exchange.finish();
  return answers;
}

}  // namespace frostpipe
