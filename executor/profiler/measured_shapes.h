#pragma once
#include <compare>
#include <optional>
#include <vector>

#include "executor/execute.h"
#include "executor/models/folder/model_folder.h"
#include "profiles/profile.h"

namespace frostpipe {

/// The shape of a micro-batch: samples, and tokens of each. If `context` is not 0, it is a token slice after `context`
/// tokens.
struct Shape {
  int samples = 1, tokens = 1, context = 0;
  auto operator<=>(const Shape&) const = default;
};

/// The shapes of the micro-batches to measure, and the data's properties.
struct Shapes {
  std::vector<int> tokens;           // tokens per sample
  std::vector<int> sizes;            // samples per micro-batch
  std::vector<int> data_lengths;     // tokens of the training samples, ascending; empty without data
  double learned_part = 1;           // share of a causal model's tokens that have a loss
  bool has_one_length = false;       // all samples have one length; without data, true for pictures only
  std::optional<Workload> workload;  // set if there is data
  std::vector<int> slices;           // lengths of token slices; empty if none are measured
  /// Returns all shapes: whole samples of every length, and token slices in the middle of the longest sample.
  std::vector<Shape> all() const;
};

/// Reads the data, if there are any, and chooses the shapes. The data determine the task of `folder`.
Shapes shapes_to_measure(const MeasureOptions& options, ModelFolder& folder);

}  // namespace frostpipe
