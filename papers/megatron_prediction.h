#pragma once
#include <cstdint>

#include "base/units.h"

namespace frostpipe {

constexpr double kHalfBytes = 2;  // of a value in fp16 or bf16
/// Bytes that an update moves per parameter: it reads the gradient in 16 bits, and reads and writes the weight in 16
/// bits, the master weight and two moments in fp32.
constexpr double kOptimizerBytesPerParameter = 30;
constexpr Nanoseconds kMessageLatencyNs = 20'000;

/// The largest product of stages and micro-batches of a published run; larger ones do not occur and would take long to
/// simulate.
constexpr std::int64_t kMaxStagePasses = 1'000'000;

/// A run that trains a GPT with Megatron-LM: fp16 with fp32 Adam, 1F1B (interleaved if virtual_stages > 1), nodes of 8
/// devices, all-reduces of tensor ranks within a node if they fit.
struct MegatronRun {
  int hidden = 0, heads = 0, layers = 0, tokens = 2048, vocabulary = 51200;
  int tensor_parallel_size = 1, data_parallel_size = 1, pipeline_parallel_size = 1, virtual_stages = 1;
  int global_batch_size = 1, micro_batch_size = 1;
  bool recomputes = true;  // every layer's forward runs again before its backward; otherwise its activations are kept
  /// Between nodes each of the t tensor ranks sends 1 / t of an activation, which is gathered on arrival.
  bool scatter_gather = false;
  /// The embedding and the head each count as a layer on their rank, so that layers + 2 are divided by the ranks.
  bool embeddings_count_as_layers = false;
  double gradient_bytes = 2;  // per parameter, in the replicas' reduction
};

/// The device, and constants fitted to measured runs, one for each named term.
struct MegatronConstants {
  double peak_flops = 312e12;                 // A100, 16 bit
  double memory_bytes_per_second = 1.555e12;  // A100 of 40 GB; 2.04e12 for 80 GB
  // The constants below were fitted to every second available row of vTrain's published runs, by random search. Rows of
  // one node weigh four times as much as rows of several nodes, and all measurements of one node from which rows were
  // derived weigh the same. The speeds of memory and links and iteration_ns are from an earlier such fit, which
  // assumed that runs of one node recompute; the others were fitted again.
  double gemm_efficiency = 0.82;    // of peak_flops, for a large matrix product; attention's products reach half of it
  double gemm_half_flops = 15.4e9;  // a product of this size reaches half of that
  double memory_efficiency = 1;
  double unaligned_efficiency = 1;  // factor for products in which hidden / t is not a multiple of 64
  /// Factor for products with the vocabulary if a tensor rank has an odd number of its columns. In 16 bits, every
  /// second row then begins at an address that is not a multiple of 4 bytes, for which an A100 has no asynchronous
  /// copies.
  double odd_vocabulary_efficiency = 0.417;
  Nanoseconds launch_ns =
      1'338'000;  // least time of a layer's forward, for its launches; 1.6 times as long for the backward
  double nvlink_bytes_per_second = 304e9;   // of a ring within a node
  Nanoseconds tree_step_ns = 68'700;        // of each of the 2 log2(t) steps of the tree of an all-reduce
  double network_bytes_per_second = 132e9;  // out of a node
  double card_bytes_per_second = 0;         // out of one device's own network card; 0 = out of the node
  /// Every pass blocks until its message has been exchanged, as in the Megatron of 2021 and 2022. This matters if there
  /// are few micro-batches.
  bool waits_for_messages = false;
  Nanoseconds iteration_ns = 944'000;  // constant time of each iteration
};

/// Returns the time of one iteration. Gradients are reduced after the last backward; embedding and vocabulary products
/// are on the first and last stage. Throws InvalidInput unless all sizes are at least 1, the stages divide the layers,
/// replicas x micro-batch size divides the global batch, there is one stage per rank where embeddings count as layers,
/// and stages x micro-batches are at most kMaxStagePasses.
Nanoseconds predict_iteration_ns(const MegatronRun& run, const MegatronConstants& constants);

/// Returns the operations of one iteration with full recomputation, 96 B s l h^2 (1 + s / (6 h) + V / (16 l h)), for
/// global batch B, s tokens, l layers, hidden size h and vocabulary V (Narayanan et al. 2021, equation 3).
double iteration_flops(const MegatronRun& run);

}  // namespace frostpipe
