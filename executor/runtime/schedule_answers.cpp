// ScheduleRunner's evaluation: batches of samples pass forward through the stages.
#include <algorithm>
#include <functional>
#include <numeric>

#include "base/error.h"
#include "executor/runtime/schedule_runner.h"
#include "plan/reroute.h"
#include "plan/stages.h"

namespace frostpipe {
namespace {

constexpr std::size_t kSendsAhead = 2;  // per stage

/// Returns the indices in `samples` in the order of their lengths, since attention.h computes consecutive samples of
/// one length together.
std::vector<int> sorted_by_length(const Samples& data, std::span<const int> samples) {
  std::vector<int> indices(samples.size());
  std::iota(indices.begin(), indices.end(), 0);
  std::ranges::stable_sort(indices, {}, [&](int index) { return data.tokens(samples[index]); });
  return indices;
}

/// Returns a schedule of `batches` forwards of each replica, in which the phase's ranks have the same lists as in
/// training (layout_of_lists).
Schedule forwards_of(const Phase& phase, int batches) {
  std::vector<int> pipeline_ranks;
  for (int stage = 0; stage < num_stages(phase); ++stage) pipeline_ranks.push_back(pipeline_rank_of(phase, stage));
  const Schedule forwards = forward_only(pipeline_ranks, batches);
  return lower(phase.layout.vacant.empty() ? forwards : written_out(forwards, phase.layout));
}

}  // namespace

/// A forward pass of batches through all stages; the replicas share the batches.
struct ScheduleRunner::ForwardPass {
  int num_batches = 0;
  std::function<std::int64_t(int batch)> tokens;  // 0: the batch is skipped
  std::function<at::Tensor(StageCompute& stage, int batch, at::Tensor input)> compute;
  std::function<void(int batch, const at::Tensor& output)> take;  // receives the last stage's output on the first
                                                                  // tensor rank
};

void ScheduleRunner::pass_forward(const ForwardPass& pass) {
  FROSTPIPE_CHECK(!has_begun(), "an evaluation has the pipeline to itself");
  finish_sends();
  reset_graphs();  // a memory limit holds during evaluation too
  const int replicas = phase_.layout.data_parallel_size;
  const int of_each = (pass.num_batches + replicas - 1) / replicas;
  const auto batch_of = [&](const Action& action) {
    const int number = place_.replica * of_each + *action.micro_batch;
    return number % of_each * replicas + number / of_each;
  };
  // In the last turn some replicas may have no batch.
  const auto tokens_of = [&](const Action& action) {
    const int batch = batch_of(action);
    return batch < pass.num_batches ? pass.tokens(batch) : 0;
  };
  const auto is_left_out = [&](const Action& action) { return tokens_of(action) == 0; };
  const auto make = [&](const Action& receive) { return make_activation(tokens_of(receive)); };
  const Schedule schedule = forwards_of(phase_, of_each);
  const RankMessages messages = messages_of(schedule, place_.pipeline_rank, messages_.ranks, messages_.part);
  SendsAhead ahead(kSendsAhead);
  MessageExchange exchange(messages, /*first_tag=*/0, parts().groups, ahead, {posted_receives(), is_left_out, make});
  std::map<std::pair<int, int>, at::Tensor> inputs, outputs;  // by stage and micro-batch
  for (const Action& action : schedule.body[place_.pipeline_rank]) {
    if (is_left_out(action)) continue;
    const std::pair<int, int> place(action.stage, *action.micro_batch);
    if (action.kind == ActionKind::recv_forward) inputs[place] = exchange.receive(action);
    if (action.kind == ActionKind::send_forward) exchange.send(action, outputs.extract(place).mapped());
    if (action.kind != ActionKind::forward) continue;
    at::Tensor output = pass.compute(*parts().stages.at(action.stage), batch_of(action), std::move(inputs[place]));
    inputs.erase(place);
    if (action.stage + 1 < num_stages(schedule))
      (has_stage(action.stage + 1) ? inputs[{action.stage + 1, place.second}] : outputs[place]) = std::move(output);
    else if (place_.tensor == 0)  // other tensor ranks have the same output
      pass.take(batch_of(action), output);
  }
  ahead.finish();
  exchange.finish();
}

std::vector<double> ScheduleRunner::answers(const Samples& data, std::span<const int> samples, int max_samples,
                                            std::int64_t max_tokens) {
  const std::vector<std::size_t> begins = answer_begins(data, samples, parts().stages.begin()->second->answer_shape());
  std::vector<double> answers(begins.back(), 0.0);
  const std::vector<int> by_length = sorted_by_length(data, samples);
  std::vector<int> sorted;
  for (const int index : by_length) sorted.push_back(samples[index]);
  const std::vector<SampleRange> batches = batches_of(data, sorted, max_samples, max_tokens);
  if (batches.empty()) return answers;
  const auto batch_of = [&](int batch) {
    const auto [begin, end] = batches[batch];
    return mini_batch(data, std::span(sorted).subspan(begin, end - begin), end - begin, 0);
  };
  pass_forward({.num_batches = static_cast<int>(batches.size()),
                .tokens =
                    [&](int batch) {
                      const MiniBatch of_it = batch_of(batch);
                      return std::accumulate(of_it.lengths.begin(), of_it.lengths.end(), std::int64_t{0});
                    },
                .compute = [&](StageCompute& stage, int batch,
                               at::Tensor input) { return stage.evaluate(batch_of(batch), std::move(input)); },
                .take =
                    [&](int batch, const at::Tensor& output) {
                      const double* found = output.data_ptr<double>();
                      for (int i = batches[batch].begin; i < batches[batch].end; ++i) {
                        const std::size_t begin = begins[by_length[i]], size = begins[by_length[i] + 1] - begin;
                        std::copy_n(found, size, answers.begin() + static_cast<std::ptrdiff_t>(begin));
                        found += size;
                      }
                    }});
  return answers;
}

std::vector<double> ScheduleRunner::next_tokens(std::span<const MicroBatch> slices) {
  std::vector<std::int64_t> begins{0};  // first text of each slice
  for (const MicroBatch& slice : slices) begins.push_back(begins.back() + slice.size());
  std::vector<double> found(begins.back(), 0.0);
  pass_forward({.num_batches = static_cast<int>(slices.size()),
                .tokens = [&](int batch) { return slices[batch].num_tokens(); },
                .compute = [&](StageCompute& stage, int batch,
                               at::Tensor input) { return stage.next_tokens(slices[batch], std::move(input)); },
                .take =
                    [&](int batch, const at::Tensor& output) {
                      std::copy_n(output.data_ptr<std::int64_t>(), output.numel(), found.begin() + begins[batch]);
                    }});
  return found;
}

}  // namespace frostpipe
