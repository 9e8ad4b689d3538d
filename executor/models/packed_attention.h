#pragma once
// Implementation header: attention over packed samples. Include it from .cpp files only.
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "executor/models/attention.h"
#include "plan/batch.h"

namespace frostpipe {

/// Consecutive samples of one length.
struct EqualLengths {
  std::int64_t first_sample = 0, samples = 0, length = 0, first_token = 0;
  std::int64_t tokens() const { return samples * length; }
};

std::vector<EqualLengths> groups_of(const std::vector<std::int64_t>& lengths);

/// Calls visit(group number), without autograd: each thread processes some of the groups or, if they cannot be divided
/// evenly, all threads work on each.
template <class Visit>
void for_groups(const std::vector<EqualLengths>& groups, Visit visit) {
  constexpr double kEven = 1.25;
  std::vector<std::int64_t> tokens;
  std::int64_t sum = 0, largest = 0;
  for (const EqualLengths& group : groups) {
    tokens.push_back(group.tokens());
    sum += group.tokens();
  }
  const auto parts = split_by_length(tokens, at::get_num_threads());
  for (const SampleRange& part : parts) {
    std::int64_t own = 0;
    for (int group = part.begin; group < part.end; ++group) own += tokens[group];
    largest = std::max(largest, own);
  }
  const auto run = [&](std::int64_t first, std::int64_t end) {
    const at::NoGradGuard no_grad;  // is thread-local
    for (int group = parts[first].begin; group < parts[end - 1].end; ++group) visit(group);
  };
  const auto count = static_cast<std::int64_t>(parts.size());
  if (static_cast<double>(largest * count) <= kEven * static_cast<double>(sum)) {
    at::parallel_for(0, count, 1, run);
  } else {
    run(0, count);
  }
}

/// The heads of one group, [samples, heads or key heads, queries or tokens, size].
struct Heads {
  at::Tensor query, key, value;
};

/// Repeats key heads for all query heads that share them. [samples, key heads, tokens, size] -> [samples, heads,
/// tokens, size]
at::Tensor for_all_queries(const at::Tensor& of_key_heads, std::int64_t num_heads);

/// Returns views by head of `rows`, an AttentionInput that has the rows of `group` only.
Heads heads_of(const AttentionInput& rows, const EqualLengths& group, const AttentionRule& rule);

/// Computes attend() as one operation with its own backward, on the CPU, without dropout and soft caps. Threads divide
/// the samples instead of each sample's heads, and gradients are written in place.
at::Tensor attend_in_one(const AttentionInput& input, const std::vector<std::int64_t>& lengths,
                         const AttentionRule& rule);

/// Computes attend() in one call for samples of any lengths, on a GPU, without dropout and soft caps and if no window
/// masks anything. Uses LibTorch's variable-length kernels: flash attention in bfloat16 and memory-efficient attention
/// in float32.
at::Tensor attend_by_kernel(const AttentionInput& input, const MicroBatch& batch, const AttentionRule& rule);
/// True if there is a kernel for this dtype, number and size of heads, and device.
bool has_kernel_for_packed(const AttentionInput& input, const AttentionRule& rule);

}  // namespace frostpipe
