#include "executor/models/collectives/collectives.h"

namespace frostpipe {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::tensor_list;

struct CopyToTensorRanks : Function<CopyToTensorRanks> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const TensorRanks& ranks) {
    save(*context, {.ranks = ranks});
    return x.view_as(x);
  }
  static tensor_list backward(AutogradContext* context, const tensor_list& gradients) {
    const at::Tensor sum = gradients[0].clone(at::MemoryFormat::Contiguous);
    saved_rows(*context).ranks->sum(sum);
    return {sum, at::Tensor()};
  }
};

struct SumOverTensorRanks : Function<SumOverTensorRanks> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& partial, const TensorRanks& ranks) {
    context->mark_dirty({partial});
    ranks->sum(partial.detach());
    return partial;
  }
  static tensor_list backward(AutogradContext*, const tensor_list& gradients) { return {gradients[0], at::Tensor()}; }
};

struct ScatterSum : Function<ScatterSum> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& partial, const RankRows& rows) {
    save(*context, rows);
    return rows.scattered_sum(partial.detach());
  }
  static tensor_list backward(AutogradContext* context, const tensor_list& gradients) {
    return {saved_rows(*context).gathered(gradients[0]), at::Tensor()};
  }
};

struct AllRows : Function<AllRows> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& own, const RankRows& rows) {
    save(*context, rows);
    return rows.gathered(own.detach());
  }
  static tensor_list backward(AutogradContext* context, const tensor_list& gradients) {
    return {saved_rows(*context).own(gradients[0]), at::Tensor()};
  }
};

struct SharedRows : Function<SharedRows> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& own, const RankRows& rows) {
    save(*context, rows);
    return rows.gathered(own.detach());
  }
  static tensor_list backward(AutogradContext* context, const tensor_list& gradients) {
    return {saved_rows(*context).scattered_sum(gradients[0].contiguous()), at::Tensor()};
  }
};

}  // namespace

at::Tensor copy_to(const TensorRanks& ranks, const at::Tensor& x) {
  return ranks && x.requires_grad() ? CopyToTensorRanks::apply(x, ranks) : x;
}

at::Tensor sum_over(const RankRows& rows, const at::Tensor& partial) {
  if (rows.are_split()) return ScatterSum::apply(partial, rows);
  return rows.ranks ? SumOverTensorRanks::apply(partial, rows.ranks) : partial;
}

at::Tensor all_of(const RankRows& rows, const at::Tensor& own) {
  return rows.are_split() ? AllRows::apply(own, rows) : own;
}

at::Tensor shared_rows(const RankRows& rows, const at::Tensor& own) {
  return rows.are_split() ? SharedRows::apply(own, rows) : copy_to(rows.ranks, own);
}

void save(AutogradContext& context, const RankRows& rows) {
  if (!rows.ranks) return;
  context.saved_data["ranks"] = c10::IValue::make_capsule(rows.ranks);
  context.saved_data["rows"] = rows.of_each;
}

RankRows saved_rows(AutogradContext& context) {
  const auto ranks = context.saved_data.find("ranks");
  if (ranks == context.saved_data.end()) return {};
  return {.ranks = c10::static_intrusive_pointer_cast<TensorParallel>(ranks->second.toCapsule()),
          .of_each = context.saved_data["rows"].toIntVector()};
}

}  // namespace frostpipe
