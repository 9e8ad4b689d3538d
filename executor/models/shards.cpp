#include "executor/models/shards.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace frostpipe {
namespace {

using Share = ParameterSpec::Share;

/// A parameter as [outer, length, inner], of which tensor ranks divide the middle. If it is not divided, everything is
/// outer.
struct CutAxis {
  std::int64_t outer = 1, length = 1, inner = 1, unit = 1;
  bool is_shared = false;
  std::int64_t begin_of(const TensorSlice& slice) const { return is_shared ? unit * slice.begin_in(length / unit) : 0; }
  std::int64_t end_of(const TensorSlice& slice) const {
    return is_shared ? unit * slice.end_in(length / unit) : length;
  }
  std::int64_t length_of(const TensorSlice& slice) const { return end_of(slice) - begin_of(slice); }
};

CutAxis axis_of(const ParameterSpec& whole) {
  if (whole.share == Share::whole) return {.outer = whole.count()};
  const std::int64_t rows = whole.shape[0];
  if (whole.share == Share::columns)
    return {.outer = rows, .length = whole.shape[1], .inner = 1, .unit = whole.unit, .is_shared = true};
  return {.outer = whole.stacked,
          .length = rows / whole.stacked,
          .inner = whole.count() / rows,
          .unit = whole.unit,
          .is_shared = true};
}

/// Calls visit(view, begin, count) for each parameter of `part`: a view of its values in `flat`, which has the values
/// of `held`, and the range of the same values among the flat values of `part`.
template <class Visit>
void for_each_common(const std::vector<ParameterSpec>& layer, const at::Tensor& flat, const TensorSlice& held,
                     const ShardOfLayer& part, Visit visit) {
  std::int64_t offset = 0, part_offset = 0;
  for (const ParameterSpec& spec : layer) {
    const CutAxis axis = axis_of(spec);
    const std::int64_t length = axis.length_of(held), count = axis.outer * length * axis.inner;
    const std::int64_t part_length = axis.length_of(part.slice);
    if (part_length > 0 && (axis.is_shared || part.with_whole)) {
      const std::int64_t begin = axis.begin_of(part.slice) - axis.begin_of(held);
      FROSTPIPE_CHECK(begin >= 0 && begin + part_length <= length, "a part of a layer lies within what is held of it");
      const std::int64_t part_count = axis.outer * part_length * axis.inner;
      visit(flat.narrow(0, offset, count).view({axis.outer, length, axis.inner}).narrow(1, begin, part_length),
            part_offset, part_count);
      part_offset += part_count;
    }
    offset += count;
  }
  FROSTPIPE_CHECK(offset == flat.numel(), "a rank holds its part of every parameter of a layer");
}

/// Returns the values that the part contributes: all that it holds if it is the first, else only divided parameters.
ShardOfLayer brought_by(const LayerCollection& collection, std::size_t part) {
  return {.slice = collection.parts[part].slice, .with_whole = part == 0};
}

}  // namespace

ParameterSpec cut(ParameterSpec whole, const TensorSlice& slice) {
  if (whole.share == Share::whole) return whole;
  const std::int64_t length = axis_of(whole).length_of(slice);
  if (whole.share == Share::rows) {
    whole.shape[0] = whole.stacked * length;
  } else {
    whole.shape[1] = length;
  }
  return whole;
}

std::vector<ParameterSpec> cut(std::vector<ParameterSpec> whole, const TensorSlice& slice) {
  for (ParameterSpec& spec : whole) spec = cut(std::move(spec), slice);
  return whole;
}

std::int64_t count_of(const std::vector<ParameterSpec>& layer, const ShardOfLayer& part) {
  std::int64_t count = 0;
  for (const ParameterSpec& spec : layer)
    if (part.with_whole || spec.share != Share::whole) count += cut(spec, part.slice).count();
  return count;
}

at::Tensor taken(const std::vector<ParameterSpec>& layer, const at::Tensor& flat, const TensorSlice& held,
                 const ShardOfLayer& wanted) {
  const at::NoGradGuard no_grad;
  const at::Tensor values = at::empty({count_of(layer, wanted)}, flat.options());
  for_each_common(layer, flat, held, wanted, [&](const at::Tensor& view, std::int64_t offset, std::int64_t count) {
    values.narrow(0, offset, count).view(view.sizes()).copy_(view);
  });
  return values;
}

void put(const std::vector<ParameterSpec>& layer, at::Tensor flat, const TensorSlice& held, const at::Tensor& values,
         const ShardOfLayer& part) {
  const at::NoGradGuard no_grad;
  FROSTPIPE_CHECK(values.numel() == count_of(layer, part), "values are those of the part");
  for_each_common(layer, flat, held, part, [&](const at::Tensor& view, std::int64_t offset, std::int64_t count) {
    view.copy_(values.narrow(0, offset, count).view(view.sizes()));
  });
}

at::Tensor collect(const LayerCollection& collection, const at::Tensor& own, at::ScalarType type, Group& group) {
  const at::NoGradGuard no_grad;
  const int self = group.self();
  const std::vector<LayerPart>& parts = collection.parts;
  FROSTPIPE_CHECK(!parts.empty(), "a rank holds the layer");
  const bool has_part = std::ranges::any_of(parts, [&](const LayerPart& part) { return part.rank == self; });
  const at::Tensor host = has_part ? own.detach().to(at::kCPU, type) : at::Tensor();
  if (parts.size() == 1 && parts.front().rank == self && self == collection.to_rank) return host;
  at::Tensor whole;
  if (self == collection.to_rank)
    whole = at::empty({count_of(collection.whole, ShardOfLayer{})}, at::TensorOptions().dtype(type));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const ShardOfLayer part = brought_by(collection, i);
    if (count_of(collection.whole, part) == 0) continue;  // no parameter of this layer is divided
    const int tag = collection.tag + static_cast<int>(i);
    at::Tensor values;
    if (parts[i].rank == self) values = taken(collection.whole, host, parts[i].slice, part);
    if (parts[i].rank != self && self == collection.to_rank) {
      values = at::empty({count_of(collection.whole, part)}, at::TensorOptions().dtype(type));
      group.receive(values, parts[i].rank, tag, collection.what).wait();
    }
    if (self == collection.to_rank) {
      put(collection.whole, whole, {}, values, part);
    } else if (parts[i].rank == self) {
      group.send(values, collection.to_rank, tag, collection.what).wait();
    }
  }
  return whole;
}

}  // namespace frostpipe
