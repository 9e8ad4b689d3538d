#pragma once
#include <vector>

#include "serving/planner/serving_problem.h"

namespace frostpipe {

/// A pool of a pipeline, without its size.
struct CandidatePool {
  int first_block = 0, end_block = 0;
  int device_class = 0;  // index into ServingProblem::classes
  int share = 1;
  /// Throughput of one virtual device, limited by its compute time and by its part of the server's network card, in and
  /// out.
  double requests_per_second = 0;
  bool operator==(const CandidatePool&) const = default;
};

/// A pipeline, without the sizes of its pools.
struct CandidatePipeline {
  int batch_size = 1;
  Nanoseconds batch_building_ns = 0;
  std::vector<CandidatePool> pools;
  bool operator==(const CandidatePipeline&) const = default;
};

/// True if a pipeline of `one` can do everything that a pipeline of `other` can on the same devices: it has the same
/// classes in the same order, and at every position `one` divides a device into a multiple of other's virtual devices,
/// which together are at least as fast.
bool dominates(const CandidatePipeline& one, const CandidatePipeline& other);

/// Returns all pipelines of a model with at most max_partitions pools whose planned batches, including their building
/// at `building_requests_per_second` (0: in no time), meet the objective's budget (latency_budget_ns), that fit into
/// the devices' memory, and that no other one dominates. If max_partitions is more than 2, adjacent pools have
/// different classes unless memory requires two of one. The order is deterministic: by classes, then as the enumeration
/// finds them. A virtual device's throughput in requests per second is the least of, with G devices per server and s
/// the pool's share:
///   batch / compute time,  1 / (s G transfer time of a request in),  the same of a request out
std::vector<CandidatePipeline> pipeline_candidates(const ServingProblem& problem, const ModelToServe& model,
                                                   double building_requests_per_second);

/// True if the model has times on one of the problem's classes, for a share that pools may have.
bool has_times(const ServingProblem& problem, const ModelToServe& model);

/// Returns how long one request's bytes occupy the network cards of a sender and a receiver of these classes: the time
/// of the slower card.
Nanoseconds transfer_ns(const DeviceClass& from, const DeviceClass& to, Bytes bytes);

/// Explains why a model has no pipeline, as the end of a sentence: the least latency of any device or pipeline, or
/// memory.
std::string why_no_candidate(const ServingProblem& problem, const ModelToServe& model);

}  // namespace frostpipe
