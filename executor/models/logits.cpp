#include "executor/models/logits.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <limits>
#include <optional>
#include <vector>

#include "executor/models/collectives/collectives.h"
#include "executor/models/functions.h"
#include "executor/models/products.h"

namespace frostpipe {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::tensor_list;

/// Returns the dtype in which to compute: at least single precision.
at::ScalarType precise(at::ScalarType type) { return type == at::kDouble ? at::kDouble : at::kFloat; }

/// Divides the tokens into parts of nearly equal size.
std::vector<TokenRange> parts_of(const Logits& logits, std::int64_t tokens) {
  const std::int64_t num_parts = (tokens + logits.part_tokens - 1) / logits.part_tokens;
  std::vector<TokenRange> parts;
  for (std::int64_t i = 0; i < num_parts; ++i) parts.push_back({tokens * i / num_parts, tokens * (i + 1) / num_parts});
  return parts;
}

at::Tensor part_of(const at::Tensor& all, const TokenRange& tokens) {
  return all.narrow(0, tokens.begin, tokens.count());
}

Targets part_of(const Targets& all, const TokenRange& tokens) {
  return {part_of(all.tokens, tokens), all.vocab_size, all.ignored};
}

/// Computes the logits of some rows of x, without a graph.
at::Tensor computed(const Logits& logits, const at::Tensor& x) {
  if (logits.are_there()) return x;
  const at::Tensor& bias = logits.bias.value;
  const at::Tensor product =
      times_transposed(x, logits.weight.value, bias.defined() ? std::optional(bias.to(x.scalar_type())) : std::nullopt);
  return logits.soft_cap > 0 ? product.div_(logits.soft_cap).tanh_().mul_(logits.soft_cap) : product;
}

/// The arguments of cross_entropy_sum(), kept from its forward to its backward.
struct LossCall : torch::CustomClassHolder {
  LossCall(Logits of, Targets of_targets, at::Tensor of_tokens, double smoothing, TensorRanks of_ranks)
      : logits(std::move(of)),
        targets(std::move(of_targets)),
        weights(std::move(of_tokens)),
        label_smoothing(smoothing),
        ranks(std::move(of_ranks)) {}

  /// Returns the sum for all rows of x. If `gradient`, that of the sum, is defined, also adds to the parameters'
  /// gradients and writes x's gradient into `of_x`, which must be zero, if it is defined. Tokens without a loss take no
  /// time.
  at::Tensor sum(const at::Tensor& x, const at::Tensor& gradient, const at::Tensor& of_x) const {
    const at::Tensor with_loss = tokens_with_loss();
    const at::Tensor losses = at::empty({with_loss.size(0)}, weights.options());
    for (const TokenRange& range : parts_of(logits, with_loss.size(0))) {
      const at::Tensor tokens = part_of(with_loss, range);
      const auto of_part = [&tokens](const at::Tensor& all) { return all.index_select(0, tokens); };
      const at::Tensor part = of_part(x), said = computed(logits, part), weight = of_part(weights);
      const CrossEntropies found =
          cross_entropies(said, {of_part(targets.tokens), targets.vocab_size, targets.ignored}, label_smoothing,
                          gradient.defined() ? weight * gradient : at::Tensor(), ranks);
      part_of(losses, range).copy_(found.losses * weight);
      if (!gradient.defined()) continue;
      if (logits.soft_cap > 0) found.gradient.mul_(said.div_(logits.soft_cap).square_().neg_().add_(1));
      if (logits.weight.gradient.defined()) add_transposed_times(logits.weight.gradient, found.gradient, part);
      if (const at::Tensor& sum = logits.bias.gradient; sum.defined())
        sum.add_(found.gradient.sum(0, /*keepdim=*/false, sum.scalar_type()));
      if (of_x.defined()) of_x.index_copy_(0, tokens, times(found.gradient, logits.weight.value));
    }
    return losses.sum();
  }

  /// On a GPU returns all tokens, since the host does not know which have a loss.
  at::Tensor tokens_with_loss() const {
    const at::Tensor& tokens = targets.tokens;
    return tokens.is_cpu() ? tokens.ne(targets.ignored).nonzero().squeeze(1)
                           : at::arange(tokens.size(0), tokens.options());
  }

  Logits logits;
  Targets targets;
  at::Tensor weights;
  double label_smoothing;
  TensorRanks ranks;
  at::Tensor value{};  // the forward's output, without its graph
};

struct LossOfVocabulary : Function<LossOfVocabulary> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& /*x*/, const at::Tensor& /*weight*/,
                            const c10::intrusive_ptr<LossCall>& call) {
    at::Tensor sum = at::full({}, std::numeric_limits<double>::quiet_NaN(), call->weights.options());
    call->value = sum.variable_data();
    context->saved_data["call"] = c10::IValue::make_capsule(call);
    return sum;
  }
  static tensor_list backward(AutogradContext* context, const tensor_list& gradients) {
    const auto call = c10::static_intrusive_pointer_cast<LossCall>(context->saved_data["call"].toCapsule());
    context->saved_data.erase("call");
    const RankRows& rows = call->logits.rows;
    const at::Tensor x = rows.gathered(call->logits.x);
    at::Tensor of_x = context->needs_input_grad(0) ? at::zeros_like(x) : at::Tensor();
    call->value.copy_(call->sum(x, gradients[0], of_x));
    if (of_x.defined()) of_x = rows.scattered_sum(of_x);
    return {of_x, at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor Logits::all() const {
  if (are_there()) return x;
  const at::Tensor product = project_columns(x, weight, bias, rows);
  return soft_cap > 0 ? at::tanh(product / soft_cap) * soft_cap : product;
}

at::Tensor cross_entropy_sum(const Logits& logits, const Targets& targets, const at::Tensor& weights,
                             double label_smoothing, const TensorRanks& ranks) {
  const at::ScalarType type = precise(logits.x.scalar_type());
  const at::Tensor precisely = weights.to(type);
  if (logits.are_there())
    return (at::cross_entropy_loss(logits.x.to(type), targets.tokens, {}, at::Reduction::None, targets.ignored,
                                   label_smoothing) *
            precisely)
        .sum();
  Logits without_graph = logits;
  without_graph.x = logits.x.detach();
  const auto call = c10::make_intrusive<LossCall>(std::move(without_graph), targets, precisely, label_smoothing, ranks);
  if (at::GradMode::is_enabled() && (logits.x.requires_grad() || logits.weight.value.requires_grad()))
    return LossOfVocabulary::apply(logits.rows.are_split() ? logits.x : copy_to(ranks, logits.x), logits.weight.value,
                                   call);
  const at::NoGradGuard no_grad;
  return call->sum(logits.rows.gathered(call->logits.x), at::Tensor(), at::Tensor());
}

TokenPredictions predictions_of(const Logits& logits, const Targets& targets, const TensorRanks& ranks) {
  const at::NoGradGuard no_grad;
  const at::Tensor x = logits.rows.gathered(logits.x);
  std::vector<at::Tensor> own;
  for (const TokenRange& tokens : parts_of(logits, x.size(0))) {
    const at::Tensor said = computed(logits, part_of(x, tokens));
    own.push_back(own_predictions(said.to(precise(said.scalar_type())), part_of(targets, tokens), ranks));
  }
  return all_predictions(at::cat(own, 1), targets, ranks);
}

}  // namespace frostpipe
