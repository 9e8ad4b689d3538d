// ScheduleRunner's evaluation: batches of samples go forward through the stages.
#include <algorithm>
#include <numeric>

#include "executor/runtime/schedule_runner.h"
#include "plan/reroute.h"
#include "plan/stages.h"
#include "profiles/error.h"

namespace frostpipe {
namespace {

constexpr std::size_t kSendsAhead = 2;  // of a stage

/// Indices in `samples`; those of one length together: see attention.h.
std::vector<int> sorted_by_length(const Samples& data, std::span<const int> samples) {
  std::vector<int> indices(samples.size());
  std::iota(indices.begin(), indices.end(), 0);
  std::ranges::stable_sort(indices, {}, [&](int index) { return data.tokens(samples[index]); });
  return indices;
}

/// Of a phase: `batches` forwards of each replica, with the lists that its ranks train by.
Schedule forwards_of(const Phase& phase, int batches) {
  std::vector<int> pipeline_ranks;
  for (int stage = 0; stage < num_stages(phase); ++stage) pipeline_ranks.push_back(pipeline_rank_of(phase, stage));
  const Schedule forwards = forward_only(pipeline_ranks, batches);
  return lower(phase.layout.vacant.empty() ? forwards : written_out(forwards, phase.layout));
}

}  // namespace

std::vector<double> ScheduleRunner::answers(const Samples& data, std::span<const int> samples, int most_samples,
                                            std::int64_t most_tokens) {
  FROSTPIPE_CHECK(!has_begun(), "an evaluation has the pipeline to itself");
  finish_sends();
  reset_graphs();  // a memory limit holds in an evaluation too
  const auto size = static_cast<std::size_t>(parts().stages.begin()->second->answer_size());
  std::vector<double> answers(samples.size() * size, 0.0);
  const std::vector<int> by_length = sorted_by_length(data, samples);
  std::vector<int> sorted;
  for (const int index : by_length) sorted.push_back(samples[index]);
  const std::vector<SampleRange> batches = batches_of(data, sorted, most_samples, most_tokens);
  if (batches.empty()) return answers;
  const int replicas = phase_.layout.data_parallel_size;
  const int of_each = (static_cast<int>(batches.size()) + replicas - 1) / replicas;
  // Replicas take turns; the last turn may not be everybody's.
  const auto range_of = [&](const Action& action) {
    const int number = place_.replica * of_each + *action.micro_batch;
    const std::size_t index = static_cast<std::size_t>(number % of_each) * replicas + number / of_each;
    return index < batches.size() ? batches[index] : SampleRange{};
  };
  const auto is_left_out = [&](const Action& action) { return range_of(action) == SampleRange{}; };
  const auto batch_of = [&](const Action& action) {
    const auto [begin, end] = range_of(action);
    return mini_batch(data, std::span(sorted).subspan(begin, end - begin), end - begin, 0);
  };
  const Schedule schedule = forwards_of(phase_, of_each);
  const RankMessages messages = messages_of(schedule, place_.pipeline_rank, messages_.ranks);
  SendsAhead ahead(kSendsAhead);
  const auto make = [&](const Action& receive) {
    const MiniBatch batch = batch_of(receive);
    return make_activation(std::accumulate(batch.lengths.begin(), batch.lengths.end(), std::int64_t{0}));
  };
  MessageExchange exchange(messages, /*first_tag=*/0, parts().groups, ahead, {posted_receives(), is_left_out, make});
  std::map<std::pair<int, int>, at::Tensor> inputs, outputs;  // by stage and batch
  for (const Action& action : schedule.body[place_.pipeline_rank]) {
    if (is_left_out(action)) continue;
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
    if (place_.tensor > 0) continue;  // the first tensor rank says the same
    const double* found = output.data_ptr<double>();
    for (std::size_t i = 0; i < batch.samples.size(); ++i, found += size) {
      const int index = by_length[static_cast<std::size_t>(range_of(action).begin) + i];
      std::copy_n(found, size, answers.begin() + static_cast<std::ptrdiff_t>(index * size));
    }
  }
  ahead.finish();
  exchange.finish();
  return answers;
}

}  // namespace frostpipe
