// StageRunner's evaluation: batches of samples go forward through the pipeline, without a schedule.
#include <algorithm>
#include <deque>
#include <numeric>

#include "executor/runtime/stage_runner.h"

namespace frostpipe {
namespace {

constexpr std::size_t kBatchesAhead = 2;

}  // namespace

std::vector<double> StageRunner::answers(const Samples& data, std::span<const int> samples, int most_samples,
                                         std::int64_t most_tokens) {
  const auto size = static_cast<std::size_t>(compute_.answer_size());
  std::vector<double> answers(samples.size() * size, 0.0);
  const bool is_last = coordinate_.pipeline_rank + 1 == phase_.layout.pipeline_parallel_size;
  // Samples of one length together: see attention.h.
  std::vector<int> by_length(samples.size());  // index in `samples`
  std::iota(by_length.begin(), by_length.end(), 0);
  std::stable_sort(by_length.begin(), by_length.end(),
                   [&](int a, int b) { return data.tokens(samples[a]) < data.tokens(samples[b]); });
  std::vector<int> sorted;
  for (const int index : by_length) sorted.push_back(samples[index]);
  std::deque<Transfer> sends;
  const std::vector<SampleRange> batches = batches_of(data, sorted, most_samples, most_tokens);
  for (int index = coordinate_.replica; index < static_cast<int>(batches.size());
       index += phase_.layout.data_parallel_size) {
    const auto [begin, end] = batches[index];
    const MiniBatch batch = mini_batch(data, std::span(sorted).subspan(begin, end - begin), end - begin, 0);
    at::Tensor activation;
    const std::string what = "evaluation of batch " + std::to_string(index);
    if (coordinate_.pipeline_rank > 0) {
      activation =
          compute_.make_activation(std::accumulate(batch.lengths.begin(), batch.lengths.end(), std::int64_t{0}));
      groups_.forward.receive(activation, neighbour(-1), index, what).wait();
    }
    activation = compute_.evaluate(batch, std::move(activation));
    if (!is_last) {
      sends.push_back(groups_.forward.send(activation, neighbour(1), index, what));
      if (sends.size() > kBatchesAhead) {
        sends.front().wait();
        sends.pop_front();
      }
      continue;
    }
    const double* found = activation.data_ptr<double>();
    for (std::size_t i = 0; i < batch.samples.size(); ++i, found += size) {
      const int place = by_length[static_cast<std::size_t>(begin) + i];
      std::copy_n(found, size, answers.begin() + static_cast<std::ptrdiff_t>(place * size));
    }
  }
  for (Transfer& transfer : sends) transfer.wait();
  return answers;
}

}  // namespace frostpipe
