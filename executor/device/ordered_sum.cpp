#include "executor/device/ordered_sum.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>

#include <cstddef>
#include <memory>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>

namespace frostpipe {
namespace {

using Milliseconds = std::chrono::milliseconds;

class StartedWork final : public c10d::Work {
 public:
  explicit StartedWork(Finish finish) : finish_(std::move(finish)) {}
  bool wait(Milliseconds limit) override {
    if (finish_) std::exchange(finish_, nullptr)(limit);
    return true;
  }

 private:
  Finish finish_;
};

void finish_all(const std::vector<Finish>& started, Milliseconds limit) {
  for (const Finish& finish : started) finish(limit);
}

template <class Visit>
void for_all_others(const Exchange& exchange, Visit visit) {
  for (int step = 1; step < exchange.size; ++step) visit((exchange.index + step) % exchange.size);
}

/// Starts to exchange two tensors with another rank. Tensors without values are not sent.
void swap(const Exchange& exchange, int other, const at::Tensor& sent, const at::Tensor& received,
          std::vector<Finish>& started) {
  if (received.numel() > 0) started.push_back(exchange.start_to_receive(received, other));
  if (sent.numel() > 0) started.push_back(exchange.start_to_send(sent, other));
}

}  // namespace

c10::intrusive_ptr<c10d::Work> work_that(Finish finish) { return c10::make_intrusive<StartedWork>(std::move(finish)); }

at::Tensor scratch_like(const at::Tensor& tensor) {
  const std::shared_ptr<std::byte[]> memory(new std::byte[tensor.nbytes()]);
  return at::from_blob(
      memory.get(), tensor.sizes(), [memory](void*) {}, tensor.options());
}

std::vector<at::Tensor> slices_of(const at::Tensor& flat, int size) {
  std::vector<at::Tensor> slices;
  for (std::int64_t index = 0; index < size; ++index) {
    const std::int64_t begin = flat.numel() * index / size, end = flat.numel() * (index + 1) / size;
    slices.push_back(flat.narrow(0, begin, end - begin));
  }
  return slices;
}

void add_up(const std::vector<at::Tensor>& parts, const at::Tensor& own) {
  const at::NoGradGuard no_grad;
  at::Tensor sum = parts.front();
  for (std::size_t index = 1; index < parts.size(); ++index) sum.add_(parts[index]);
  if (!sum.is_same(own)) own.copy_(sum);
}

c10::intrusive_ptr<c10d::Work> start_gather(const at::Tensor& own, const std::vector<at::Tensor>& all,
                                            const Exchange& exchange) {
  const at::NoGradGuard no_grad;
  std::vector<Finish> started;
  for_all_others(exchange, [&](int other) { swap(exchange, other, own, all[other], started); });
  all[exchange.index].copy_(own);
  return work_that([started = std::move(started)](Milliseconds limit) { finish_all(started, limit); });
}

c10::intrusive_ptr<c10d::Work> start_scatter_of_sums(const at::Tensor& own, const std::vector<at::Tensor>& all,
                                                     const Exchange& exchange) {
  const at::NoGradGuard no_grad;
  own.copy_(all[exchange.index]);
  std::vector<at::Tensor> parts(all.size(), own);
  std::vector<Finish> started;
  for_all_others(exchange, [&](int other) {
    parts[other] = scratch_like(own);
    swap(exchange, other, all[other], parts[other], started);
  });
  return work_that([=, parts = std::move(parts), started = std::move(started)](Milliseconds limit) {
    finish_all(started, limit);
    add_up(parts, own);
  });
}

c10::intrusive_ptr<c10d::Work> start_sum_by_slices(const at::Tensor& flat, const Exchange& exchange) {
  const std::vector<at::Tensor> slices = slices_of(flat, exchange.size);
  const at::Tensor own = slices[exchange.index];
  const c10::intrusive_ptr<c10d::Work> sums = start_scatter_of_sums(own, slices, exchange);
  return work_that([=](Milliseconds limit) {
    sums->wait(limit);  // the sums overwrite what is sent
    start_gather(own, slices, exchange)->wait(limit);
  });
}

}  // namespace frostpipe
