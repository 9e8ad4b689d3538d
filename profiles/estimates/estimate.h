#pragma once
#include <optional>
#include <string>
#include <vector>

#include "profiles/cluster.h"
#include "profiles/estimates/estimated_model.h"
#include "profiles/hardware.h"
#include "profiles/profile.h"

namespace frostpipe {

struct EstimateOptions {
  DeviceRates rates;
  int num_nodes = 1;
  int ranks_per_node = 8;
  int global_batch_size = 256;
  int num_samples = 6144;
  std::optional<Bytes> memory_limit_bytes;
  std::string device_type = "estimated";
  std::vector<int> tensor_parallel_sizes = {1};  // ascending; a node's collectives are in the layers' times
  bool sequence_parallel = false;                // tensor ranks also with sequence parallelism
  int expert_parallel_size = 1;                  // replicas that share out experts, each a part of all
};

struct Estimate {
  Profile profile;
  Cluster cluster;
};

/// A profile from counted operations, for a machine that is not here; nothing in it is measured. What layers do and
/// keep says layer_work; each half of a backward does as much as a forward, and each pass has the overhead of one.
///
/// A causal language model also has the token slices that a measured one has (slice_lengths). Slices that make up a
/// sample have the sample's operations.
///
/// Over n tensor ranks, as Megatron-LM cuts a model: each does 1 / n of the operations of attention, MLP and a language
/// model's head, has 1 / n of their matrices and of the vocabulary's table, and keeps 1 / n of what is not
/// [samples, tokens, hidden] around the layer (queries, keys, values, probabilities, the MLP's inner values, logits).
/// Norms, biases behind a sum, positions, projections of images and other heads are whole on each. Attention and MLP
/// each add an all-reduce of [samples, tokens, hidden] to forward and to input gradient, a table one to its forward, a
/// language model's head one to its input gradient and, for the loss, three of [samples, tokens] to its forward: the
/// maximum, the sum of exponentials and the target's logit.
///
/// With sequence parallelism (Korthikanti et al. 2022) each also keeps 1 / n of the [samples, tokens, hidden] around
/// the layer; of the halves of a backward, of what matrices have read. An all-gather and a reduce-scatter take the
/// place of each all-reduce, one in front of the matrices and one behind, and the backward gathers once more what they
/// have read.
///
/// Where replicas share out experts, tokens go to those that have theirs and back: two all-to-alls in the forward of an
/// MLP of experts and two in its backward, of [samples, tokens, hidden] for each expert that a token goes through; over
/// the links of a node where such replicas fit on one, else over those between nodes. Each computes as many tokens as
/// it has itself, which a router that keeps loads even is trained for.
///
/// Update: 28 bytes a parameter (AdamW reads and writes weight, gradient and moments). Links: PCIe 3.0 x16 within a
/// node (10 us, 12 GB/s; collectives 10 GB/s), 40 Gbit/s InfiniBand between (20 us, 5 GB/s). Cache: 10 us an entry, 10
/// GB/s read, 5 GB/s written.
///
/// Throws InvalidInput for an expert-parallel size that does not divide the model's experts.
Estimate estimate(const EstimatedModel& model, const EstimateOptions& options);

/// Its ranks and links alone.
Cluster estimated_cluster(const EstimateOptions& options, const std::string& device_type);

}  // namespace frostpipe
