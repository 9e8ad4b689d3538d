#include "plan/batch.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace frostpipe {

namespace {

/// Returns piece `part`: the first num_samples % num_parts pieces have one sample more.
SampleRange piece(int num_samples, int num_parts, int part) {
  FROSTPIPE_CHECK(num_samples >= 0 && num_parts >= 1 && part >= 0 && part < num_parts,
                  "callers name an existing piece");
  const int size = num_samples / num_parts;
  const int num_larger = num_samples % num_parts;
  const int begin = part * size + std::min(part, num_larger);
  return {begin, begin + size + (part < num_larger ? 1 : 0)};
}

/// Fills the pieces from the last to the first, each up to `most` tokens, and returns where they begin. In no cut into
/// pieces of at most `most` tokens does the k-th piece begin earlier. The result is empty if num_parts pieces do not
/// suffice.
std::vector<int> earliest_begins(std::span<const std::int64_t> lengths, int num_parts, std::int64_t most) {
  std::vector<int> begins(num_parts);
  int sample = static_cast<int>(lengths.size());
  for (int part = num_parts; part-- > 0;) {
    for (std::int64_t sum = 0; sample > 0 && sum + lengths[sample - 1] <= most;) sum += lengths[--sample];
    begins[part] = sample;
  }
  return sample == 0 ? begins : std::vector<int>();
}

/// Returns the tokens of the longest piece in the cut that makes the longest piece shortest.
std::int64_t shortest_bottleneck(std::span<const std::int64_t> lengths, int num_parts) {
  std::int64_t low = lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
  std::int64_t high = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (earliest_begins(lengths, num_parts, middle).empty()) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace

std::vector<SampleRange> split_by_length(std::span<const std::int64_t> lengths, int num_parts) {
  FROSTPIPE_CHECK(num_parts >= 1, "a mini-batch is cut into at least one piece");
  const int num_samples = static_cast<int>(lengths.size());
  const std::int64_t most = shortest_bottleneck(lengths, num_parts);
  const std::vector<int> begins = earliest_begins(lengths, num_parts, most);
  std::int64_t left = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  std::vector<SampleRange> pieces;
  int end = 0;
  for (int part = 0; part < num_parts; ++part) {
    const int begin = end, parts_left = num_parts - part;
    const int needed = parts_left > 1 ? begins[part + 1] : num_samples;  // the following pieces have no room for more
    std::int64_t sum = 0;
    while (end < num_samples && (end < needed || sum * parts_left < left) && sum + lengths[end] <= most)
      sum += lengths[end++];
    left -= sum;
    pieces.push_back({begin, end});
  }
  return pieces;
}

std::int64_t longest_mini_batch_tokens(int num_samples, const SampleLengths& lengths) {
  constexpr double kDeviations = 6;
  const double sum = lengths.mean * num_samples + kDeviations * lengths.deviation * std::sqrt(num_samples);
  return std::min(static_cast<std::int64_t>(std::ceil(sum)), std::int64_t{num_samples} * lengths.longest);
}

std::int64_t longest_piece_tokens(int num_samples, std::int64_t tokens, int longest_tokens, int num_parts) {
  FROSTPIPE_CHECK(num_parts >= 1, "a mini-batch is cut into at least one piece");
  // Fill the pieces in turn, each up to c tokens. If samples are left over, each piece together with the sample after
  // it exceeds c, and only the last of these samples is in no piece: tokens + (num_parts - 1) longest > num_parts c.
  const std::int64_t filled = (tokens + (num_parts - 1) * std::int64_t{longest_tokens}) / num_parts;
  const std::int64_t max_samples = (std::int64_t{num_samples} + num_parts - 1) / num_parts;
  return std::min(filled, max_samples * longest_tokens);
}

std::vector<SampleRange> split_evenly(int num_samples, int num_parts) {
  FROSTPIPE_CHECK(num_parts >= 1, "a mini-batch is cut into at least one piece");
  std::vector<SampleRange> pieces;
  pieces.reserve(num_parts);
  for (int part = 0; part < num_parts; ++part) pieces.push_back(piece(num_samples, num_parts, part));
  return pieces;
}

SampleRange micro_batch_samples(int num_samples, int data_parallel_size, int num_micro_batches, int replica,
                                int micro_batch) {
  return piece(num_samples, data_parallel_size * num_micro_batches, replica * num_micro_batches + micro_batch);
}

}  // namespace frostpipe
