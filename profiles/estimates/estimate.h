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
  std::vector<int> tensor_parallel_sizes = {1};  // ascending; collectives within a node are part of the layers' times
  bool sequence_parallel = false;                // also estimate tensor ranks with sequence parallelism
  int expert_parallel_size = 1;                  // number of replicas over which experts are distributed
  DType dtype = DType::kFloat32;                 // of activations and gradients; weights are kept in float32
  LinkClass intra_node = {.point_to_point = {10'000, 12'000'000'000}, .collective = {10'000, 10'000'000'000}};
  LinkClass inter_node = {.point_to_point = {20'000, 5'000'000'000}, .collective = {20'000, 5'000'000'000}};
  std::string all_reduce = "ring";  // Communication::all_reduce
};

/// Takes the rates for options.dtype, memory, type and links from the hardware. Links carry 80 % of their peaks. Where
/// the hardware has a network card for each device, all-reduces are hierarchical, so that they use all cards of a node.
void apply(const Hardware& hardware, EstimateOptions& options);

struct Estimate {
  Profile profile;
  Cluster cluster;
};

/// Makes a profile and a cluster from counted operations, for a machine that is not available; nothing in them is
/// measured. layer_work counts the operations and saved values of layers. A backward takes twice as long as a forward:
/// half of it for gradients of weights and half for those of inputs, except that attention's products of queries, keys
/// and values have no weights and take 2.5 times as long, and that a language model's head computes everything in the
/// first half of a split backward. Operations other than matrix products take the time to read or write each kept
/// value 1.5 times, and twice as long in the backward. Each pass has the same overhead.
///
/// A causal language model also gets measurements of the token slices that a measured profile has (slice_lengths). The
/// slices of a sample together have the sample's operations.
///
/// Tensor ranks share a layer as in Megatron-LM: each of n does 1 / n of the operations of attention, MLP and a
/// language model's head, has 1 / n of their matrices and of the vocabulary's table, and keeps 1 / n of the layer's
/// values that are not [samples, tokens, hidden] (queries, keys, values, probabilities, the MLP's inner
/// values, logits). Norms, biases after a sum, positions, projections of images and other heads are whole on each rank.
/// Attention and MLP each add an all-reduce of [samples, tokens, hidden] to the forward and to the input gradient; a
/// table adds one to its forward; a language model's head adds one to its input gradient and, for the loss, three of
/// [samples, tokens] to its forward: the maximum, the sum of exponentials and the target's logit.
///
/// With sequence parallelism (Korthikanti et al. 2022) each rank also keeps only 1 / n of the [samples, tokens, hidden]
/// values around the layer; between the halves of a split backward this holds for the inputs of matrices. Each
/// all-reduce is replaced by an all-gather before the matrices and a reduce-scatter after them, and the backward
/// gathers the inputs of matrices once more.
///
/// With expert parallelism tokens go to the replicas that have their experts and back: two all-to-alls in the forward
/// of an MLP of experts and two in its backward, of [samples, tokens, hidden] for each expert that a token goes
/// through. Replicas of one node use its links and others those between nodes, at the same time. Each replica is
/// assumed to compute as many tokens as it has itself: the router is trained to balance loads.
///
/// An update moves 28 bytes per parameter (AdamW reads weight, gradient and moments, and writes all but the gradient),
/// or 30 if it also writes a copy of the weight in bfloat16. Links are PCIe 3.0 x16 within a node (10 us, 12 GB/s;
/// collectives 10 GB/s) and 40 Gbit/s InfiniBand between (20 us, 5 GB/s) unless the options say otherwise. The cache
/// takes 10 us per entry; it is read at 10 GB/s and written at 5 GB/s.
///
/// Throws InvalidInput for an expert-parallel size > 1 that does not divide the model's experts.
Estimate estimate(const EstimatedModel& model, const EstimateOptions& options);

/// Throws InvalidInput ("--tensor-parallel: ...") unless each of the tensor-parallel sizes divides the ranks of a node
/// and is at most max_tensor_ranks(), which is also what the executor requires. Heads need not divide evenly.
void require_tensor_ranks(const TransformerConfig& config, const EstimateOptions& options);

/// Returns only the cluster of an estimate, its ranks and links.
Cluster estimated_cluster(const EstimateOptions& options, const std::string& device_type);

}  // namespace frostpipe
