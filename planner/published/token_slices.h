#pragma once
#include <functional>
#include <vector>

#include "profiles/units.h"

namespace frostpipe {

/// How a sequence is cut for TeraPipe.
struct TokenSlices {
  std::vector<int> lengths;  // in the order of the tokens
  Nanoseconds time_ns = 0;   // of all sequences through all stages
  bool operator==(const TokenSlices&) const = default;
};

/// Time of one slice on one stage, forward and backward, when `context` tokens lie before it.
using SliceTime = std::function<Nanoseconds(int length, int context)>;

/// Minimises sequences x (sum of slice times) + (stages - 1) x (longest slice time), TeraPipe's objective for sequences
/// that follow each other (Li et al. 2021, equation 5), over all cuts at multiples of `step`: for each bound on the
/// longest slice a dynamic programme over prefixes. Bounds whose pipeline alone takes as long as the best so far are
/// left out, and of those less than `tolerance_ns` apart only the highest is tried (0 = all): it allows what the others
/// do and its longest slice is less than the tolerance longer, so that the result is at most (stages - 1) x tolerance
/// above the optimum; with 0 exact. Throws InvalidInput unless step divides tokens and all counts are positive.
TokenSlices slice_tokens(int tokens, int step, int stages, int sequences, const SliceTime& time,
                         Nanoseconds tolerance_ns = 0);

/// How a pipeline's batch is cut: batch slices of some sequences, each cut along its tokens.
struct BatchSlices {
  struct Slice {
    int sequences = 1;
    std::vector<int> lengths;  // of its token slices, in the order of the tokens
    bool operator==(const Slice&) const = default;
  };
  std::vector<Slice> slices;  // the larger ones first
  Nanoseconds time_ns = 0;
};

/// Time of one token slice of `sequences` sequences on one stage.
using BatchSliceTime = std::function<Nanoseconds(int sequences, int length, int context)>;

/// What slice_batch_and_tokens cuts.
struct BatchSlicing {
  int sequences = 1;
  int most_together = 1;  // sequences in a batch slice
  int tokens = 1;         // of a sequence
  int step = 1;
  int stages = 1;
  Nanoseconds tolerance_ns = 0;
};

/// TeraPipe's joint search (section 3.4): minimises sum of all slice times + (stages - 1) x (longest slice time) over
/// all ways to cut the sequences into batch slices of at most `most_together` sequences and each of these at multiples
/// of `step`: for each bound on the longest slice a dynamic programme over tokens for every size of a batch
/// slice, then one over sequences. Bounds are left out as by slice_tokens, with the same loss; exact with tolerance 0.
/// Throws as slice_tokens does.
BatchSlices slice_batch_and_tokens(const BatchSlicing& batch, const BatchSliceTime& time);

}  // namespace frostpipe
