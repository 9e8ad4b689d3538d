// LibTorch's operators for tensors on a fake GPU are the CPU's, on the same bytes. They refuse what a real GPU refuses:
// host tensors among device tensors, except single values and indices.
#include <ATen/EmptyTensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/executor/fake_gpu/fake_graphs.h"
#include "tests/executor/fake_gpu/fake_kernels.h"
#include "tests/executor/fake_gpu/fake_memory.h"
#include "tests/executor/fake_gpu/fake_runtime.h"

namespace frostpipe::test {
namespace {

constexpr c10::DispatchKeySet kCuda(c10::DispatchKey::CUDA);

void* address_of_storage(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl()->mutable_data();
}

}  // namespace

at::Tensor for_kernels(const at::Tensor& tensor) {
  const std::size_t bytes = tensor.unsafeGetTensorImpl()->unsafe_storage().nbytes();
  c10::Storage storage(c10::Storage::use_byte_size_t(), bytes,
                       at::DataPtr(FakeMemory::for_kernels(address_of_storage(tensor)), at::kCPU),
                       c10::GetAllocator(at::kCPU), /*resizable=*/true);
  at::Tensor same = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU), tensor.dtype());
  same.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
  if (tensor.dim() == 0)
    same.unsafeGetTensorImpl()->set_wrapped_number(tensor.unsafeGetTensorImpl()->is_wrapped_number());
  return same;
}

namespace {

at::Tensor on_gpu(const at::Tensor& result) {
  const at::TensorOptions options =
      result.options().device(at::kCUDA, static_cast<at::DeviceIndex>(current_fake_gpu()));
  const at::Tensor copy = at::empty_strided(result.sizes(), result.strides(), options);
  if (copy.numel() > 0) for_kernels(copy).copy_(result);
  return copy;
}

/// One call of an operator, with CPU tensors in place of its device tensors.
class Call {
 public:
  Call(const c10::OperatorHandle& op, torch::jit::Stack& stack) : op_(op), stack_(stack) {}

  void run() {
    const auto& schema = op_.schema();
    const std::size_t count = schema.arguments().size();
    const torch::jit::Stack arguments = torch::jit::pop(stack_, count);
    torch::jit::Stack kernel_stack = stand_ins(arguments);
    op_.callBoxedForDispatchKey(c10::DispatchKey::CPU, kernel_stack);
    for (Pair& pair : pairs_) follow(pair);
    for (c10::IValue& result : kernel_stack) stack_.push_back(from_kernels(result));
    if (waits()) FakeStream::wait();
    if (FakeCapture::is_open()) note(stand_ins(arguments));
  }

 private:
  torch::jit::Stack stand_ins(const torch::jit::Stack& arguments) {
    torch::jit::Stack stand_ins;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const c10::AliasInfo* const alias = op_.schema().arguments()[i].alias_info();
      stand_ins.push_back(stand_in(arguments[i], alias && alias->isWrite()));
    }
    return stand_ins;
  }

  /// Repeats the call, with the current addresses of its results.
  void note(const torch::jit::Stack& arguments) {
    FakeCapture::add([op = op_, arguments, results = results_] {
      torch::jit::Stack stack = arguments;
      op.callBoxedForDispatchKey(c10::DispatchKey::CPU, stack);
      auto to = results.begin();
      for (const c10::IValue& result : stack) {
        for (const at::Tensor& tensor : tensors_of(result)) {
          if (to->defined()) to->copy_(tensor);
          ++to;
        }
      }
    });
  }

  static std::vector<at::Tensor> tensors_of(const c10::IValue& value) {
    if (value.isTensor()) return {value.toTensor()};
    return value.isTensorList() ? value.toTensorVector() : std::vector<at::Tensor>{};
  }

  struct Pair {
    at::Tensor own, of_kernels;
    bool is_written;
  };

  bool waits() const {
    static const std::set<std::string> names{"aten::_local_scalar_dense",
                                             "aten::equal",
                                             "aten::nonzero",
                                             "aten::masked_select",
                                             "aten::_unique2",
                                             "aten::unique_dim",
                                             "aten::bincount",
                                             "aten::repeat_interleave"};
    return names.contains(op_.schema().name()) || has_host_indices_;
  }

  /// A GPU accepts host tensors for these arguments.
  bool takes_host_tensors() const {
    static const std::set<std::string> names{"aten::index", "aten::index_put_", "aten::_index_put_impl_"};
    return names.contains(op_.schema().name());
  }

  at::Tensor stand_in(const at::Tensor& tensor, bool is_written, bool is_in_list = false) {
    if (!tensor.defined()) return tensor;
    if (!tensor.is_cuda()) {
      has_host_indices_ |= takes_host_tensors();
      TORCH_CHECK((tensor.dim() == 0 && !is_in_list) || takes_host_tensors(), op_.schema().name(),
                  ": Expected all tensors to be on the same device, but found at least two devices, cuda and cpu");
      return FakeCapture::is_open() ? tensor.clone() : tensor;  // a launch copies the value
    }
    pairs_.push_back({tensor, for_kernels(tensor), is_written});
    return pairs_.back().of_kernels;
  }

  c10::IValue stand_in(const c10::IValue& value, bool is_written) {
    if (value.isTensor()) return stand_in(value.toTensor(), is_written);
    if (value.isTensorList()) {
      std::vector<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector())
        list.push_back(stand_in(tensor, is_written, /*is_in_list=*/true));
      return list;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorList().vec())
        list.push_back(tensor ? std::optional(stand_in(*tensor, is_written, /*is_in_list=*/true)) : std::nullopt);
      return list;
    }
    if (value.isDevice() && value.toDevice().is_cuda()) return c10::Device(at::kCPU);
    return value;
  }

  /// A kernel may have changed the size of its output.
  static void follow(const Pair& pair) {
    if (!pair.is_written || pair.own.sizes() == pair.of_kernels.sizes()) return;
    pair.own.resize_(pair.of_kernels.sizes());
    for_kernels(pair.own).copy_(pair.of_kernels);
  }

  at::Tensor from_kernels(const at::Tensor& result) {
    results_.emplace_back();
    if (!result.defined()) return result;
    for (const Pair& pair : pairs_)
      if (result.unsafeGetTensorImpl() == pair.of_kernels.unsafeGetTensorImpl()) return pair.own;
    for (const Pair& pair : pairs_) {
      if (!result.is_alias_of(pair.of_kernels)) continue;
      at::Tensor view = pair.own.detach();
      view.unsafeGetTensorImpl()->set_sizes_and_strides(result.sizes(), result.strides(), result.storage_offset());
      return view;
    }
    const at::Tensor copy = on_gpu(result);
    results_.back() = for_kernels(copy);
    return copy;
  }

  c10::IValue from_kernels(const c10::IValue& value) {
    if (value.isTensor()) return from_kernels(value.toTensor());
    if (value.isTensorList()) {
      std::vector<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(from_kernels(tensor));
      return list;
    }
    return value;
  }

  const c10::OperatorHandle& op_;
  torch::jit::Stack& stack_;
  std::vector<Pair> pairs_;
  std::vector<at::Tensor> results_;  // of kernels, if they are separate tensors
  bool has_host_indices_ = false;    // they are copied to the device, and the host waits
};

void run_on_fake_gpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) { Call(op, *stack).run(); }

at::Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                 std::optional<at::Device> device, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  const c10::DeviceGuard guard(
      device->has_index() ? *device : at::Device(at::kCUDA, static_cast<at::DeviceIndex>(current_fake_gpu())));
  return at::detail::empty_generic(size, &FakeMemory::allocator(), kCuda, dtype.value_or(at::kFloat), format);
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout>, std::optional<at::Device> device, std::optional<bool>) {
  const c10::DeviceGuard guard(
      device->has_index() ? *device : at::Device(at::kCUDA, static_cast<at::DeviceIndex>(current_fake_gpu())));
  return at::detail::empty_strided_generic(size, stride, &FakeMemory::allocator(), kCuda, dtype.value_or(at::kFloat));
}

/// A copy between devices, or between the host and a device: the host waits, unless it asked not to and its memory is
/// page-locked.
at::Tensor& copy(at::Tensor& to, const at::Tensor& from, bool non_blocking) {
  const auto same = [](const at::Tensor& tensor) { return tensor.is_cuda() ? for_kernels(tensor) : tensor; };
  if (to.numel() == 0) return to;
  same(to).copy_(same(from));
  if (to.is_cuda() && from.is_cuda()) {
    if (FakeCapture::is_open()) FakeCapture::add([to = same(to), from = same(from)] { to.copy_(from); });
    return to;
  }
  const at::Tensor& host = to.is_cuda() ? from : to;
  const bool goes_on = non_blocking && host.is_contiguous() && FakePinnedMemory::has(host.const_data_ptr());
  if (!goes_on) {
    FakeStream::wait();
  } else if (to.is_cuda()) {
    FakeStream::will_read(host.const_data_ptr(), host.nbytes());
  } else {
    FakeStream::will_write(host.mutable_data_ptr(), host.nbytes());
  }
  return to;
}

const at::Tensor& resize(const at::Tensor& tensor, at::IntArrayRef size, std::optional<at::MemoryFormat>) {
  auto* const own = tensor.unsafeGetTensorImpl();
  const std::size_t needed =
      at::detail::computeStorageNbytesContiguous(size, tensor.itemsize(), tensor.storage_offset());
  if (needed > own->unsafe_storage().nbytes()) {
    c10::StorageImpl& storage = *own->unsafe_storage().unsafeGetStorageImpl();
    const c10::DeviceGuard guard(tensor.device());
    c10::DataPtr larger = FakeMemory::allocator().allocate(needed);
    TORCH_CHECK(storage.nbytes() == 0 || !FakeCapture::is_open(), "the fake captures no tensor that grows");
    if (storage.nbytes() > 0)
      std::memcpy(FakeMemory::for_kernels(larger.get()), FakeMemory::for_kernels(storage.data()), storage.nbytes());
    storage.set_data_ptr_noswap(std::move(larger));
    storage.set_nbytes(needed);
  }
  own->set_sizes_contiguous(size);
  return tensor;
}

void record_stream(at::Tensor&, at::Stream) {}

TORCH_LIBRARY_IMPL(_, CUDA, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_fake_gpu>());
}

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("empty.memory_format", empty);
  library.impl("empty_strided", empty_strided);
  library.impl("copy_", copy);
  library.impl("resize_", resize);
  library.impl("as_strided", at::native::as_strided_tensorimpl);
  library.impl("view", at::native::view);
  library.impl("_reshape_alias", at::native::_reshape_alias);
  library.impl("record_stream", record_stream);
}

}  // namespace
}  // namespace frostpipe::test
