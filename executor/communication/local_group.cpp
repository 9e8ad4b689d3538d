#include "executor/communication/local_group.h"

#include <ATen/ops/add.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <memory>
#include <span>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <utility>

#include "base/error.h"
#include "base/process/shared_memory.h"
#include "executor/device/ordered_sum.h"

namespace frostpipe {
namespace {

using Milliseconds = std::chrono::milliseconds;

/// All-reduces up to this size send every tensor to every rank, and each rank adds all; larger ones give each rank a
/// slice to add.
constexpr std::int64_t kLargestWholeExchange = 16 << 10;
/// All-reduces from this size on exchange slices through shared memory, if it is available.
constexpr std::int64_t kSmallestShared = 256 << 10;
/// This bit is set in the tags of collectives, and not in those of messages.
constexpr std::uint32_t kCollective = std::uint32_t{1} << 31;

std::span<std::byte> bytes_of(const at::Tensor& tensor) {
  FROSTPIPE_CHECK(tensor.is_contiguous() && tensor.device().is_cpu(),
                  "local groups take contiguous tensors in host memory");
  return {static_cast<std::byte*>(tensor.data_ptr()), static_cast<std::size_t>(tensor.nbytes())};
}

std::shared_ptr<const void> owner_of(const at::Tensor& tensor) { return std::make_shared<at::Tensor>(tensor); }

void wait_for(const std::vector<Message>& messages, Milliseconds limit) {
  for (const Message& message : messages) message.wait(limit);
}

class SentOrReceived final : public c10d::Work {
 public:
  explicit SentOrReceived(Message message) : message_(std::move(message)) {}
  bool wait(Milliseconds limit) override {
    message_.wait(limit);
    return true;
  }
  bool isCompleted() override { return message_.is_done(); }

 private:
  Message message_;
};

class LocalGroup final : public c10d::Backend {
 public:
  LocalGroup(std::shared_ptr<PeerConnections> connections, std::uint32_t group, std::vector<int> ranks, int index)
      : Backend(index, static_cast<int>(ranks.size())),
        connections_(std::move(connections)),
        group_(group),
        ranks_(std::move(ranks)) {}

  const std::string getBackendName() const override { return "local"; }

  c10::intrusive_ptr<c10d::Work> send(std::vector<at::Tensor>& tensors, int to, int tag) override {
    return c10::make_intrusive<SentOrReceived>(start_to_send(tensors.at(0), to, static_cast<std::uint32_t>(tag)));
  }

  c10::intrusive_ptr<c10d::Work> recv(std::vector<at::Tensor>& tensors, int from, int tag) override {
    return c10::make_intrusive<SentOrReceived>(start_to_receive(tensors.at(0), from, static_cast<std::uint32_t>(tag)));
  }

  c10::intrusive_ptr<c10d::Work> broadcast(std::vector<at::Tensor>& tensors,
                                           const c10d::BroadcastOptions& options) override {
    const std::uint32_t tag = next_collective();
    const int root = static_cast<int>(options.rootRank);
    if (rank_ != root) return work_of({start_to_receive(tensors.at(0), root, tag)});
    std::vector<Message> messages;
    for_all_others([&](int other) { messages.push_back(start_to_send(tensors.at(0), other, tag)); });
    return work_of(std::move(messages));
  }

  /// Adds in the order of ranks, so that every rank gets the same bits.
  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors,
                                           const c10d::AllreduceOptions& options) override {
    FROSTPIPE_CHECK(options.reduceOp == c10d::ReduceOp::SUM, "local groups sum");
    FROSTPIPE_CHECK(tensors.at(0).is_contiguous(), "a sum is in place");
    const at::Tensor flat = tensors.at(0).view({-1});
    const auto bytes = static_cast<std::int64_t>(flat.nbytes());
    if (bytes <= kLargestWholeExchange) return exchange_whole(flat);
    if (bytes < kSmallestShared || shares_no_memory_) return start_sum_by_slices(flat, next_exchange());
    return work_that([this, flat](Milliseconds limit) {
      // An earlier all-reduce may have found out meanwhile that there is no shared memory.
      if (!shares_no_memory_ && make_room(flat, limit)) return sum_in_shared_memory(flat, limit);
      start_sum_by_slices(flat, next_exchange())->wait(limit);
    });
  }

  c10::intrusive_ptr<c10d::Work> allgather(std::vector<std::vector<at::Tensor>>& all, std::vector<at::Tensor>& own,
                                           const c10d::AllgatherOptions&) override {
    return start_gather(own.at(0), all.at(0), next_exchange());
  }

  /// Adds in the order of ranks, as allreduce() does.
  c10::intrusive_ptr<c10d::Work> reduce_scatter(std::vector<at::Tensor>& own, std::vector<std::vector<at::Tensor>>& all,
                                                const c10d::ReduceScatterOptions& options) override {
    FROSTPIPE_CHECK(options.reduceOp == c10d::ReduceOp::SUM, "local groups sum");
    return start_scatter_of_sums(own.at(0), all.at(0), next_exchange());
  }

  /// A dissemination barrier: in round k each rank waits for the rank 2^k before it.
  c10::intrusive_ptr<c10d::Work> barrier(const c10d::BarrierOptions&) override {
    const std::uint32_t tag = next_collective();
    return work_that([this, tag](Milliseconds limit) {
      for (int distance = 1; distance < size_; distance *= 2) {
        const Message here = start_to_receive(at::Tensor(), (rank_ + size_ - distance) % size_, tag);
        const Message there = start_to_send(at::Tensor(), (rank_ + distance) % size_, tag);
        wait_for({here, there}, limit);
      }
    });
  }

 private:
  Message start_to_send(const at::Tensor& tensor, int to, std::uint32_t tag) {
    if (!tensor.defined()) return connections_->send(ranks_.at(to), {group_, tag}, {}, nullptr);
    return connections_->send(ranks_.at(to), {group_, tag}, bytes_of(tensor), owner_of(tensor));
  }

  Message start_to_receive(const at::Tensor& tensor, int from, std::uint32_t tag) {
    if (!tensor.defined()) return connections_->receive(ranks_.at(from), {group_, tag}, {}, nullptr);
    return connections_->receive(ranks_.at(from), {group_, tag}, bytes_of(tensor), owner_of(tensor));
  }

  static c10::intrusive_ptr<c10d::Work> work_of(std::vector<Message> messages) {
    return work_that([messages = std::move(messages)](Milliseconds limit) { wait_for(messages, limit); });
  }

  static Finish waiting_for(const Message& message) {
    return [message](Milliseconds limit) { message.wait(limit); };
  }

  std::uint32_t next_collective() { return kCollective | (num_collectives_++ & ~kCollective); }

  template <class Visit>
  void for_all_others(Visit visit) const {
    for (int step = 1; step < size_; ++step) visit((rank_ + step) % size_);
  }

  /// Starts to receive all other ranks' counterparts of `own` into scratch memory. Returns them by index, with `own`
  /// among them, and adds the messages to `arriving`.
  std::vector<at::Tensor> start_to_collect(const at::Tensor& own, std::uint32_t tag, std::vector<Message>& arriving) {
    std::vector<at::Tensor> parts(static_cast<std::size_t>(size_), own);
    for_all_others([&](int other) {
      parts[other] = scratch_like(own);
      arriving.push_back(start_to_receive(parts[other], other, tag));
    });
    return parts;
  }

  c10::intrusive_ptr<c10d::Work> exchange_whole(const at::Tensor& flat) {
    const std::uint32_t tag = next_collective();
    std::vector<Message> arriving, leaving;
    std::vector<at::Tensor> parts = start_to_collect(flat, tag, arriving);
    for_all_others([&](int other) { leaving.push_back(start_to_send(flat, other, tag)); });
    return work_that([parts = std::move(parts), arriving = std::move(arriving), leaving = std::move(leaving),
                      flat](Milliseconds limit) {
      wait_for(arriving, limit);
      wait_for(leaving, limit);
      add_up(parts, flat);
    });
  }

  Exchange next_exchange() {
    const std::uint32_t tag = next_collective();
    Exchange exchange{.index = rank_, .size = size_};
    exchange.start_to_send = [this, tag](const at::Tensor& tensor, int to) {
      return waiting_for(start_to_send(tensor, to, tag));
    };
    exchange.start_to_receive = [this, tag](const at::Tensor& tensor, int from) {
      return waiting_for(start_to_receive(tensor, from, tag));
    };
    return exchange;
  }

  /// Returns the rows of all ranks, stacked by index.
  at::Tensor table_of(const at::Tensor& row, Milliseconds limit) {
    const at::Tensor table = at::zeros({size_, row.numel()}, row.options());
    table.select(0, rank_).copy_(row);
    exchange_whole(table.view({-1}))->wait(limit);
    return table;
  }

  /// Maps the shared memory of all ranks, with a slot for each rank's slice of `flat`. Returns false, on all ranks
  /// alike, if a rank has none or cannot map another's; it is not tried again then.
  bool make_room(const at::Tensor& flat, Milliseconds limit) {
    const std::int64_t longest = (flat.numel() + size_ - 1) / size_ * static_cast<std::int64_t>(flat.itemsize());
    if (longest <= slot_bytes_) return true;
    constexpr std::int64_t kCacheLine = 64;
    const std::int64_t slot_bytes = (longest + kCacheLine - 1) / kCacheLine * kCacheLine;
    const auto bytes = static_cast<std::size_t>(slot_bytes * size_);
    memory_.clear();
    std::optional<SharedMemory> own = SharedMemory::make(bytes);
    const SharedMemory::Address address = own ? own->address() : SharedMemory::Address{};
    const at::Tensor addresses =
        table_of(at::tensor({address.process, address.descriptor, address.file}, at::kLong), limit);
    bool is_whole = own.has_value();
    for (int index = 0; is_whole && index < size_; ++index) {
      const auto* const there = addresses.const_data_ptr<std::int64_t>() + index * addresses.size(1);
      std::optional<SharedMemory> found =
          index == rank_ ? std::move(own) : SharedMemory::open({there[0], there[1], there[2]}, bytes);
      is_whole = found.has_value();
      if (found) memory_.push_back(std::move(*found));
    }
    const at::Tensor have_all = table_of(at::tensor({is_whole ? 1 : 0}, at::kLong), limit);
    shares_no_memory_ = have_all.min().item<std::int64_t>() == 0;
    if (shares_no_memory_) memory_.clear();
    for (SharedMemory& memory : memory_) memory.close_file();  // all ranks have mapped it
    slot_bytes_ = shares_no_memory_ ? 0 : slot_bytes;
    return !shares_no_memory_;
  }

  /// Returns the slot for rank `index` in `owner`'s shared memory, as a tensor shaped like `slice`.
  at::Tensor slot(int owner, int index, const at::Tensor& slice) const {
    std::byte* const begin = memory_.at(static_cast<std::size_t>(owner)).bytes().data() + slot_bytes_ * index;
    return at::from_blob(begin, slice.sizes(), slice.options());
  }

  /// Does what start_sum_by_slices() does, through shared memory: a rank copies the other ranks' slices into the slots
  /// of its own memory, adds its own slice of all ranks, and leaves the sum in its own slot. That slot is written again
  /// only after all ranks have entered the next sum and so have read it.
  void sum_in_shared_memory(const at::Tensor& flat, Milliseconds limit) {
    const at::NoGradGuard no_grad;
    const std::vector<at::Tensor> slices = slices_of(flat, size_);
    const at::Tensor own = slices[rank_];
    for_all_others([&](int other) { slot(rank_, other, slices[other]).copy_(slices[other]); });
    barrier({})->wait(limit);
    at::Tensor sum = slot(rank_, rank_, own);
    const auto part_of = [&](int index) { return index == rank_ ? own : slot(index, rank_, own); };
    at::add_out(sum, part_of(0), part_of(1));
    for (int index = 2; index < size_; ++index) sum.add_(part_of(index));
    barrier({})->wait(limit);
    own.copy_(sum);
    for_all_others([&](int other) { slices[other].copy_(slot(other, other, slices[other])); });
  }

  std::shared_ptr<PeerConnections> connections_;
  std::uint32_t group_;
  std::vector<int> ranks_;
  std::uint32_t num_collectives_ = 0;
  std::vector<SharedMemory> memory_;  // of every rank, by index; mapped at the first large sum
  std::int64_t slot_bytes_ = 0;       // size of a slot in bytes
  bool shares_no_memory_ = false;
};

}  // namespace

c10::intrusive_ptr<c10d::Backend> make_local_group(std::shared_ptr<PeerConnections> connections, std::uint32_t group,
                                                   std::vector<int> ranks, int index) {
  return c10::make_intrusive<LocalGroup>(std::move(connections), group, std::move(ranks), index);
}

}  // namespace frostpipe
