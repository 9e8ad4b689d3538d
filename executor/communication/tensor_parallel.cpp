#include "executor/communication/tensor_parallel.h"

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <numeric>
#include <utility>

#include "executor/communication/group.h"
#include "executor/device/to_device.h"

namespace frostpipe {

void TensorParallel::sum(at::Tensor tensor) const {
  group.all_reduce_sum({std::move(tensor)}, "sum over the tensor ranks");
}

std::vector<double> TensorParallel::sum(std::vector<double> values) const {
  const at::Tensor sums = to_device(at::tensor(values, at::kDouble), device);
  sum(sums);
  const at::Tensor host = sums.to(at::kCPU);
  return {host.data_ptr<double>(), host.data_ptr<double>() + host.numel()};
}

at::Tensor TensorParallel::gather(const at::Tensor& own) const {
  std::vector<std::int64_t> sizes = own.sizes().vec();
  sizes.insert(sizes.begin(), slice.of);
  at::Tensor all = at::zeros(sizes, own.options());
  all.select(0, slice.begin).copy_(own);
  sum(all);
  return all;
}

std::int64_t RankRows::begin() const {
  return std::accumulate(of_each.begin(), of_each.begin() + ranks->slice.begin, std::int64_t{0});
}

std::int64_t RankRows::num_rows(std::int64_t own) const {
  return are_split() ? std::accumulate(of_each.begin(), of_each.end(), std::int64_t{0}) : own;
}

at::Tensor RankRows::own(const at::Tensor& all) const { return are_split() ? all.narrow(0, begin(), count()) : all; }

at::Tensor RankRows::gathered(const at::Tensor& own) const {
  return are_split() ? ranks->group.all_gather(own, of_each, "all-gather over the tensor ranks") : own;
}

at::Tensor RankRows::scattered_sum(const at::Tensor& all) const {
  return are_split() ? ranks->group.reduce_scatter_sum(all, of_each, "reduce-scatter over the tensor ranks") : all;
}

RankRows rows_of_tokens(std::int64_t tokens, const TensorRanks& ranks) {
  RankRows rows{.ranks = ranks};
  if (!ranks || !ranks->sequence_parallel) return rows;
  for (int tensor = 0; tensor < ranks->slice.of; ++tensor) {
    const TensorSlice slice = slice_of(tensor, ranks->slice.of);
    rows.of_each.push_back(slice.end_in(tokens) - slice.begin_in(tokens));
  }
  return rows;
}

}  // namespace frostpipe
