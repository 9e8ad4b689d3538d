#pragma once
// Implementation header: how attention goes through packed samples. Include it from .cpp files only.
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

/// Calls visit(group number), without autograd: each thread has some of the groups, or, where those cannot be shared
/// out evenly, all threads share each.
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
    const at::NoGradGuard no_grad;  // known to this thread alone
    for (int group = parts[first].begin; group < parts[end - 1].end; ++group) visit(group);
  };
  const auto count = static_cast<std::int64_t>(parts.size());
  if (static_cast<double>(largest * count) <= kEven * static_cast<double>(sum)) {
    at::parallel_for(0, count, 1, run);
  } else {
    run(0, count);
  }
}

/// Of one group, [samples, heads or key heads, queries or tokens, size]
struct Heads {
  at::Tensor query, key, value;
};

/// What each query's head looks at, where several share a key's. [samples, key heads, tokens, size] -> [samples, heads,
/// tokens, size]
at::Tensor for_all_queries(const at::Tensor& of_key_heads, std::int64_t num_heads);

/// Views of a group's rows of an AttentionInput.
Heads heads_of(const AttentionInput& rows, const EqualLengths& group, const AttentionRule& rule);

/// attend() in one operation with its own backward, on the CPU, without dropout and soft caps: threads share the
/// samples instead of each sample's heads, and gradients are written where they belong.
at::Tensor attend_in_one(const AttentionInput& input, const std::vector<std::int64_t>& lengths,
                         const AttentionRule& rule);

/// attend() in one call for samples of any lengths, on a GPU, without dropout and soft caps and where no window hides
/// anything: by LibTorch's kernels that are told where each sample begins, of flash attention in bfloat16 and of
/// memory-efficient attention in float32.
at::Tensor attend_by_kernel(const AttentionInput& input, const MicroBatch& batch, const AttentionRule& rule);
/// There is a kernel for this type, number and size of heads and device.
bool has_kernel_for_packed(const AttentionInput& input, const AttentionRule& rule);

}  // namespace frostpipe
