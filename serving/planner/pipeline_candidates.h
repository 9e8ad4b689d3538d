#pragma once
#include <vector>

#include "serving/planner/serving_problem.h"

namespace frostpipe {

/// A pool of a pipeline without its size.
struct CandidatePool {
  int first_block = 0, end_block = 0;
  int device_class = 0;  // index into ServingProblem::classes
  int share = 1;
  /// Of one virtual device: the batch by its time, and no more than its part of the server's card lets in and out.
  double requests_per_second = 0;
  bool operator==(const CandidatePool&) const = default;
};

/// A pipeline without the sizes of its pools.
struct CandidatePipeline {
  int batch_size = 1;
  Nanoseconds batch_building_ns = 0;
  std::vector<CandidatePool> pools;
  bool operator==(const CandidatePipeline&) const = default;
};

/// Whether nothing that a pipeline of `other` can do is out of reach of one of `one` on the same devices: the same
/// classes in the same order, and in every place `one` divides a device into a multiple of other's virtual devices
/// that are together at least as quick.
bool dominates(const CandidatePipeline& one, const CandidatePipeline& other);

/// All pipelines of a model of at most most_partitions pools whose planned batches are answered within the objective's
/// budget (latency_budget_ns), building at `building_requests_per_second` (0: in no time) included, that fit into the
/// devices' memory, and that no other one dominates. Where most_partitions is more than 2, neighbouring pools are of
/// different classes unless memory does not hold both in one. By classes, then as found: deterministic. A pool's
/// limits, with G devices to a server and s its share, in requests per second of a virtual device:
///   batch / compute time,  1 / (s G transfer time of a request in),  the same of a request out
std::vector<CandidatePipeline> pipeline_candidates(const ServingProblem& problem, const ModelToServe& model,
                                                   double building_requests_per_second);

/// Whether any of its times are of a class, of a share that pools may have.
bool has_times(const ServingProblem& problem, const ModelToServe& model);

/// Time that one request's bytes occupy the cards of a sender and a receiver of these classes: of the slower one.
Nanoseconds transfer_ns(const DeviceClass& from, const DeviceClass& to, Bytes bytes);

/// Why a model has no pipeline: the least latency that any device, or pipeline, reaches, or memory; a sentence's end.
std::string why_no_candidate(const ServingProblem& problem, const ModelToServe& model);

}  // namespace frostpipe
