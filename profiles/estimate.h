#pragma once
#include <optional>
#include <string>
#include <vector>

#include "profiles/cluster.h"
#include "profiles/profile.h"

namespace frostpipe {

/// Shape of a Transformer whose every block is attention (4 h^2 weights) and MLP (2 h f), with biases and norms.
struct TransformerShape {
  std::string name;
  int blocks = 0;
  int hidden = 0;        // h
  int intermediate = 0;  // f
  int heads = 0;
  int tokens = 0;  // per sample
  std::int64_t embedding_parameters = 0;
  std::int64_t vocabulary = 0;       // of these, rows of h that tokens look up; 0 for images
  double embedding_flops = 0;        // of a forward, per sample
  int outputs = 0;                   // of the head
  bool head_on_every_token = false;  // language models, whose outputs are the vocabulary; else once per sample
  bool is_causal = false;            // a token looks at itself and those before it alone
};

/// "vit-b16" (197 tokens, 1000 classes), "bert-large" (384 tokens, question answering).
const std::vector<TransformerShape>& known_shapes();

/// A device by its sustained rates. Defaults: a Quadro RTX 5000 in fp32, whose peak of 11.2 TFLOP/s large matrix
/// products reach to about 70 %.
struct DeviceRates {
  double flops_per_second = 8e12;
  double bytes_per_second = 448e9;
  /// Per layer and pass: starting its kernels.
  Nanoseconds overhead_ns = 50'000;
};

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
};

struct Estimate {
  Profile profile;
  Cluster cluster;
};

/// A profile from counted operations, for a machine that is not here; nothing in it is measured. Forward, per sample:
/// attention 8 t h^2 + 4 t^2 h FLOP, MLP 4 t h f, head 2 h outputs; each half of a backward as much again. Kept until
/// backward, values per sample: attention 7 t h + 2 heads t^2, MLP 3 t h + 2 t f. A split backward is two such halves;
/// kept between them is what matrices have read and the gradients of what they gave, values per sample: attention
/// 6 t h, MLP 2 t h + 2 t f, head h + outputs a prediction.
///
/// A causal model's tokens look at themselves and those before them: 2 t (t + 1) h in place of 4 t^2 h. It also has the
/// token slices that a measured one has (slice_lengths). l tokens after c others: attention 8 l h^2 + 4 h (l c + l (l +
/// 1) / 2) FLOP and 2 heads l (c + l) values in place of 2 heads t^2, all else by l in place of t. Slices that make up
/// a sample have the sample's operations; each has the overhead of a pass.
///
/// Over n tensor ranks, as Megatron-LM cuts a model: each does 1 / n of the operations of attention, MLP and a language
/// model's head, has 1 / n of their matrices and of the vocabulary's table, and keeps 1 / n of what is not
/// [samples, t, h] around the layer (attention 4 t h + 2 heads t^2, or 4 t h between the halves of a backward, MLP
/// 2 t f, head its outputs). Norms, biases behind a sum, positions, projections of images and other heads are whole on
/// each. Attention and MLP each add an all-reduce of [samples, t, h] to forward and to input gradient, a table one to
/// its forward, a language model's head one to its input gradient and, for the loss, three of [samples, t] to its
/// forward: the maximum, the sum of exponentials and the target's logit.
///
/// With sequence parallelism (Korthikanti et al. 2022) each also keeps 1 / n of the [samples, t, h] around the layer;
/// of the halves of a backward, of what matrices have read. An all-gather and a reduce-scatter take the place of each
/// all-reduce, one in front of the matrices and one behind, and the backward gathers once more what they have read.
///
/// Update: 28 bytes a parameter (AdamW reads and writes weight, gradient and moments). Links: PCIe 3.0 x16 within a
/// node (10 us, 12 GB/s; collectives 10 GB/s), 40 Gbit/s InfiniBand between (20 us, 5 GB/s). Cache: 10 us an entry, 10
/// GB/s read, 5 GB/s written.
Estimate estimate(const TransformerShape& shape, const EstimateOptions& options);

/// Its ranks and links alone.
Cluster estimated_cluster(const EstimateOptions& options, const std::string& device_type);

}  // namespace frostpipe
