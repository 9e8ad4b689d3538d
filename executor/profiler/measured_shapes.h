#pragma once
#include <compare>
#include <optional>
#include <vector>

#include "executor/execute.h"
#include "executor/models/folder/model_folder.h"
#include "profiles/profile.h"

namespace frostpipe {

/// Of a micro-batch: tokens of each sample, as a token slice after `context` others where that is not 0.
struct Shape {
  int samples = 1, tokens = 1, context = 0;
  auto operator<=>(const Shape&) const = default;
};

/// Shapes of the micro-batches to measure, and what the data asks of a run.
struct Shapes {
  std::vector<int> tokens;           // per sample
  std::vector<int> sizes;            // samples
  std::vector<int> data_lengths;     // tokens of the samples to train on, ascending; empty without data
  double learned_part = 1;           // of a causal model's tokens, those that have a loss
  bool has_one_length = false;       // of all samples; without data known of pictures alone
  std::optional<Workload> workload;  // with data
  std::vector<int> slices;           // lengths of token slices; empty where none are measured
  std::vector<Shape> all() const;
};

/// Reads the data, which may give `folder` its task.
Shapes shapes_to_measure(const MeasureOptions& options, ModelFolder& folder);

}  // namespace frostpipe
