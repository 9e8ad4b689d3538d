#pragma once
#include <ATen/core/Tensor.h>

#include <span>

#include "executor/communication/tensor_parallel.h"
#include "executor/models/micro_batch.h"
#include "executor/models/parameter.h"
#include "profiles/transformer/parameters.h"

namespace frostpipe {

/// Runs layer number `layer`. `input` is the activation of the layer before, [tokens, hidden]; undefined for the
/// embedding. Returns [tokens, hidden], or the head's logits: classes [samples, labels] or [tokens, labels], start and
/// end of the answer [tokens, 2], the vocabulary [tokens, vocabulary].
///
/// Activations use autograd as usual. Gradients of matrices are added directly into their buffers, without temporaries
/// of a weight's size unless the buffers have a higher precision, and for the embedding without one of the vocabulary's
/// size.
///
/// `tensor_ranks` divide the layer: `parameters` are this rank's part. `input` and output are the same on all ranks,
/// except that each has only its own part of the vocabulary's logits. With sequence parallelism `input` and output,
/// except logits, have only this rank's tokens (rows_of_tokens), and the caller must sum the gradients of whole
/// parameters over the tensor ranks; a frozen layer must then run without a graph (no-grad mode, or an input that needs
/// no gradient).
at::Tensor forward_layer(const TransformerConfig& config, int layer, std::span<const Parameter> parameters,
                         const at::Tensor& input, const MicroBatch& batch, const TensorRanks& tensor_ranks = {});

}  // namespace frostpipe
