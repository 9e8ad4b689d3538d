#pragma once
#include "plan/plan.h"
#include "profiles/cluster.h"
#include "profiles/profile.h"

namespace frostpipe {

/// The predicted effect of freezing only the embedding.
struct EmbeddingFreeze {
  double parameter_share = 0;             // the embedding's fraction of the model's parameters
  Nanoseconds baseline_iteration_ns = 0;  // of the plan's first phase, with the same tokens
  Nanoseconds iteration_ns = 0;  // of the best phase with frozen embedding, on the same ranks with the same schedule
  bool operator==(const EmbeddingFreeze&) const = default;
};

/// Predicts the effect for the plan's first phase, with `tokens` tokens per sample; 0 = as planned. The first phase
/// with its own partition and a frozen embedding is one of the candidates for the best phase.
EmbeddingFreeze freeze_embedding_alone(const TrainingPlan& plan, int tokens, const Profile& profile,
                                       const Cluster& cluster);

}  // namespace frostpipe
