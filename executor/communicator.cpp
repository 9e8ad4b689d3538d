#include "executor/communicator.h"

#include <ATen/ATen.h>
#include <c10/util/Logging.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <future>
#include <new>
#include <system_error>
#include <thread>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "executor/heartbeat.h"
#include "executor/job/peer_connections.h"
#include "executor/link_pacer.h"
#include "executor/local_group.h"
#include "profiles/error.h"
#include "profiles/system_reason.h"

namespace frostpipe {
namespace {

/// First line of a LibTorch or Gloo message, without the C++ stack that may follow.
std::string first_line(const std::exception& error) {
  std::string text = error.what();
  text = text.substr(0, text.find('\n'));
  const std::size_t source_end = text.starts_with('[') ? text.find("] ") : std::string::npos;  // Gloo: [file:line]
  return source_end == std::string::npos ? text : text.substr(source_end + 2);
}

template <typename Call>
auto guarded(int self, const std::string& what, Call call) {
  try {
    return call();
  } catch (const RuntimeFailure&) {
    throw;  // out of memory, say
  } catch (const InternalError&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::system_error&) {
    throw;  // no more threads: this rank's own failure
  } catch (const std::exception& error) {
    wait_for_the_culprit();
    throw PeerLost(fmt::format("rank {}: {}: {}", self, what, first_line(error)));
  }
}

std::shared_future<c10::intrusive_ptr<c10d::Work>> ready(c10::intrusive_ptr<c10d::Work> work) {
  std::promise<c10::intrusive_ptr<c10d::Work>> promise;
  promise.set_value(std::move(work));
  return promise.get_future().share();
}

at::Tensor host_memory_for(const at::Tensor& tensor) {
  return at::empty(tensor.sizes(), tensor.options().device(at::kCPU));
}

/// There when this returns.
at::Tensor host_copy_of(const at::Tensor& tensor) { return host_memory_for(tensor).copy_(tensor); }

/// c10d warns line by line of every connection that breaks; what broke it is for us to say, in one sentence. A user's
/// own choice is kept.
void keep_c10d_quiet() {
  setenv("TORCH_CPP_LOG_LEVEL", "ERROR", /*overwrite=*/0);
  c10::initLogging();
}

}  // namespace

struct Group::Link {
  c10::intrusive_ptr<c10d::Backend> backend;
  /// Of a message: Gloo's own limit is the one that ranks connect within. NCCL's stays: with another one the host would
  /// wait.
  std::chrono::milliseconds longest_wait() const {
    return backend->getBackendName() == "gloo" ? std::chrono::milliseconds(std::chrono::minutes(30)) : kNoTimeout;
  }
};

struct Transfer::State {
  std::shared_future<c10::intrusive_ptr<c10d::Work>> work;  // there at once, but for a paced message
  at::Tensor tensor;
  std::chrono::milliseconds longest_wait;
  int self;
  std::string what;
  at::Tensor received = {};  // in host memory, to be copied to `tensor`; undefined where there is nothing to copy
};

void Transfer::wait() {
  guarded(state_->self, state_->what, [&] { state_->work.get()->wait(state_->longest_wait); });
  if (!state_->received.defined()) return;
  state_->tensor.copy_(state_->received);
  state_->received = at::Tensor();
}

const at::Tensor& Transfer::tensor() const { return state_->tensor; }

int Group::index_of(int rank) const {
  const auto found = std::find(ranks_.begin(), ranks_.end(), rank);
  FROSTPIPE_CHECK(found != ranks_.end(), "messages go to members of the group");
  return static_cast<int>(found - ranks_.begin());
}

Transfer Group::send(const at::Tensor& tensor, int to_rank, int tag, std::string what) {
  what += fmt::format(" to rank {}", to_rank);
  Transfer transfer;
  transfer.state_ = guarded(self_, what, [&] {
    const at::Tensor contiguous = through_host_ ? host_copy_of(tensor) : tensor.contiguous();
    const auto send_now = [link = link_, contiguous, to = index_of(to_rank), tag] {
      std::vector<at::Tensor> list{contiguous};
      return link->backend->send(list, to, tag);
    };
    if (!pacer_)
      return std::make_shared<Transfer::State>(
          Transfer::State{ready(send_now()), contiguous, link_->longest_wait(), self_, what});
    const auto sending = std::make_shared<std::packaged_task<c10::intrusive_ptr<c10d::Work>()>>(send_now);
    pacer_->send(to_rank, static_cast<Bytes>(contiguous.nbytes()), [sending] { (*sending)(); });
    return std::make_shared<Transfer::State>(
        Transfer::State{sending->get_future().share(), contiguous, link_->longest_wait(), self_, what});
  });
  return transfer;
}

Transfer Group::receive(at::Tensor into, int from_rank, int tag, std::string what) {
  what += fmt::format(" from rank {}", from_rank);
  Transfer transfer;
  transfer.state_ = guarded(self_, what, [&] {
    const at::Tensor received = through_host_ ? host_memory_for(into) : at::Tensor();
    std::vector<at::Tensor> list{through_host_ ? received : into};
    return std::make_shared<Transfer::State>(
        Transfer::State{ready(link_->backend->recv(list, index_of(from_rank), tag)), into, link_->longest_wait(), self_,
                        what, received});
  });
  return transfer;
}

void Group::all_reduce_sum(std::vector<at::Tensor> tensors, const std::string& what) {
  if (ranks_.size() < 2) return;
  guarded(self_, what, [&] {
    if (pacer_) return paced_all_reduce(tensors);
    std::vector<at::Tensor> summed = tensors;
    if (through_host_) std::transform(tensors.begin(), tensors.end(), summed.begin(), host_copy_of);
    std::vector<c10::intrusive_ptr<c10d::Work>> works;
    for (at::Tensor& tensor : summed) {
      std::vector<at::Tensor> list{tensor};
      works.push_back(link_->backend->allreduce(list));
    }
    for (auto& work : works) work->wait();
    for (std::size_t i = 0; through_host_ && i < tensors.size(); ++i) tensors[i].copy_(summed[i]);
  });
}

/// All in one buffer, and behind it when each rank came: microseconds of the hosts' common clock in two halves that a
/// float holds exactly.
void Group::paced_all_reduce(const std::vector<at::Tensor>& tensors) {
  using std::chrono::microseconds;
  constexpr std::int64_t kHalf = 1 << 22;
  const auto now =
      std::chrono::duration_cast<microseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
  const auto num_ranks = static_cast<std::int64_t>(ranks_.size());
  Bytes bytes = 0;
  std::vector<at::Tensor> parts;
  for (const at::Tensor& tensor : tensors) {
    bytes += static_cast<Bytes>(tensor.nbytes());
    parts.push_back(tensor.reshape({-1}));
  }
  at::Tensor arrivals = at::zeros({num_ranks, 2}, tensors.front().options());
  arrivals.select(0, index_of(self_)).copy_(at::tensor({now / kHalf, now % kHalf}, at::kLong));
  parts.push_back(arrivals.reshape({-1}));
  at::Tensor all = at::cat(parts);
  std::vector<at::Tensor> list{all};
  link_->backend->allreduce(list)->wait();
  std::int64_t offset = 0;
  for (const at::Tensor& tensor : tensors) {
    tensor.copy_(all.narrow(0, offset, tensor.numel()).view_as(tensor));
    offset += tensor.numel();
  }
  arrivals = all.narrow(0, offset, 2 * num_ranks).to(at::kDouble).view({num_ranks, 2});
  const double last =
      arrivals.select(1, 0).mul(static_cast<double>(kHalf)).add(arrivals.select(1, 1)).max().item<double>();
  const auto last_arrival = std::chrono::steady_clock::time_point(microseconds(static_cast<std::int64_t>(last)));
  std::this_thread::sleep_until(last_arrival + std::chrono::nanoseconds(pacer_->all_reduce_ns(ranks_, bytes)));
}

void Group::broadcast(at::Tensor tensor, int from_rank, const std::string& what) {
  if (ranks_.size() < 2) return;
  guarded(self_, what, [&] {
    std::vector<at::Tensor> list{through_host_ ? host_copy_of(tensor) : tensor};
    c10d::BroadcastOptions options;
    options.rootRank = index_of(from_rank);
    link_->backend->broadcast(list, options)->wait();
    if (through_host_ && from_rank != self_) tensor.copy_(list[0]);
  });
}

void Group::barrier() {
  if (ranks_.size() < 2) return;
  guarded(self_, "barrier", [&] { link_->backend->barrier()->wait(); });
}

struct Communicator::State {
  RankEnvironment self;
  ComputeDevice* device = nullptr;
  std::shared_ptr<PeerConnections> peers;  // null where our launcher did not make them
  c10::intrusive_ptr<c10d::Store> store;   // by which other groups find their ranks
  std::unique_ptr<Heartbeat> heartbeat;
  std::filesystem::path store_folder;  // of a store in a file; empty on all ranks but the first
  bool through_host = false;
  int num_groups = 0;
  Group everyone, movers;
  std::string posted;                // by this rank
  std::unique_ptr<LinkPacer> pacer;  // its thread ends first

  /// NCCL connects two ranks at their first message and blocks the host meanwhile: done here in an order that no
  /// schedule can turn into a deadlock. Cheap elsewhere. Both ends of the pipeline may have tied parameters.
  void connect_pairs(const ParallelLayout& layout, const Place& place, ActiveGroups& groups) {
    const at::Tensor one = at::zeros({1}, at::TensorOptions().dtype(at::kFloat).device(device->torch_device()));
    const std::string what = "connecting pipeline neighbours";
    const int last = layout.pipeline_parallel_size - 1;
    const auto connect = [&](int lower, int upper) {
      const int below = rank_of(layout, lower, place.replica), above = rank_of(layout, upper, place.replica);
      if (place.position == lower) {
        groups.forward.send(one, above, 0, what).wait();
        groups.backward.receive(one, above, 0, what).wait();
      } else {
        groups.forward.receive(one, below, 0, what).wait();
        groups.backward.send(one, below, 0, what).wait();
      }
    };
    for (const int lower : {place.position - 1, place.position})
      if (lower >= 0 && lower < last) connect(lower, lower + 1);
    if (last > 1 && (place.position == 0 || place.position == last)) connect(0, last);
    groups.norm.all_reduce_sum({one}, "connecting for the gradient norm");
    groups.replicas.all_reduce_sum({one}, "connecting replicas");
    device->synchronize();
  }

  ~State() {
    std::error_code ignored;
    if (!store_folder.empty()) std::filesystem::remove_all(store_folder, ignored);
  }

  /// For ranks that our launcher did not connect. Some may have much to load. Each says whether it shares its device.
  void meet_at_store() {
    std::vector<std::string> arrivals;
    for (int rank = 0; rank < self.world_size; ++rank)
      arrivals.push_back(store_key(self, fmt::format("arrived/{}", rank)));
    store->set(arrivals[self.rank], std::vector<std::uint8_t>{device->is_shared()});
    store->wait(arrivals);
    for (const std::vector<std::uint8_t>& shares : store->multiGet(arrivals))
      through_host = through_host || shares.at(0) != 0;
  }

  /// Every rank calls this in the same order, members or not, so that prefixes agree. All come at the same time: making
  /// a group does not wait long for anybody.
  Group make_group(std::vector<int> ranks, bool host_memory) {
    const int number = num_groups++;
    Group group;
    const auto found = std::find(ranks.begin(), ranks.end(), self.rank);
    if (found == ranks.end()) return group;
    group.self_ = self.rank;
    group.ranks_ = std::move(ranks);
    const int size = static_cast<int>(group.ranks_.size()), index = group.index_of(self.rank);
    if (size < 2) return group;
    if (!host_memory) group.pacer_ = pacer.get();
    group.through_host_ = !host_memory && through_host;
    const bool in_host_memory = host_memory || through_host;
    if (peers && (in_host_memory || device->torch_device().is_cpu())) {
      group.link_ = std::make_shared<Group::Link>(
          Group::Link{make_local_group(peers, static_cast<std::uint32_t>(number), group.ranks_, index)});
      return group;
    }
    group.link_ = guarded(self.rank, "building a process group", [&] {
      const auto scoped =
          c10::make_intrusive<c10d::PrefixStore>(store_key(self, fmt::format("group/{}/", number)), store);
      return std::make_shared<Group::Link>(
          Group::Link{in_host_memory ? make_gloo_group(scoped, index, size) : device->make_group(scoped, index, size)});
    });
    return group;
  }
};

Communicator::Communicator() : state_(std::make_unique<State>()) {}

std::unique_ptr<Communicator> Communicator::connect(const RankEnvironment& self, ComputeDevice& device) {
  keep_c10d_quiet();
  std::unique_ptr<Communicator> communicator(new Communicator);
  State& state = *communicator->state_;
  state.self = self;
  state.device = &device;
  std::vector<int> all(self.world_size);
  for (int rank = 0; rank < self.world_size; ++rank) all[rank] = rank;
  if (self.world_size > 1 && self.peer_sockets) {
    state.peers = std::make_shared<PeerConnections>(self.rank, std::move(*self.peer_sockets));
  } else if (self.world_size > 1) {
    state.store = guarded(self.rank, fmt::format("connecting to {}:{}", self.master_address, self.master_port),
                          [&] { return connect_store(self, /*may_host=*/true); });
    state.heartbeat = std::make_unique<Heartbeat>(self);
    guarded(self.rank, "waiting for all ranks", [&] { state.meet_at_store(); });
  }
  state.everyone = state.make_group(all, /*host_memory=*/true);
  if (state.peers) {
    state.through_host = communicator->sum({device.is_shared() ? 1.0 : 0.0}).front() > 0;
    if (!device.torch_device().is_cpu() && !state.through_host) communicator->open_store_in_file();
  }
  state.movers = state.make_group(all, /*host_memory=*/false);
  return communicator;
}

Communicator::~Communicator() = default;

/// NCCL asks for a store: a file in a folder that nobody but this user can open.
void Communicator::open_store_in_file() {
  std::string folder;
  if (rank() == 0) {
    folder = (std::filesystem::temp_directory_path() / "frostpipe-XXXXXX").string();
    if (!mkdtemp(folder.data()))
      throw RuntimeFailure(fmt::format("{}: cannot be made: {}", folder, system_reason(errno)));
    state_->store_folder = folder;
  }
  folder = broadcast(folder, 0);
  state_->store = c10::make_intrusive<c10d::FileStore>(folder + "/store", world_size());
  state_->store->setTimeout(std::chrono::seconds(kSilenceLimitSeconds));
}

int Communicator::rank() const { return state_->self.rank; }
int Communicator::world_size() const { return state_->self.world_size; }
bool Communicator::talks_through_host() const { return state_->through_host; }
Group& Communicator::everyone() { return state_->everyone; }
Group& Communicator::movers() { return state_->movers; }

void Communicator::sever() {
  if (state_->peers) state_->peers->sever();
}

void Communicator::pace(const Cluster& cluster, int shrink) {
  state_->pacer = std::make_unique<LinkPacer>(cluster, shrink, rank());
  state_->movers.pacer_ = state_->pacer.get();
}

ActiveGroups Communicator::form(const ParallelLayout& layout, int first_trainable_position) {
  State& state = *state_;
  const RankEnvironment& self = state.self;
  std::vector<int> active, training;
  for (int position = 0; position < layout.pipeline_parallel_size; ++position) {
    for (const int rank : replicas_of(layout, position)) {
      active.push_back(rank);
      if (position >= first_trainable_position) training.push_back(rank);
    }
  }
  everyone().barrier();
  ActiveGroups groups;
  if (layout.pipeline_parallel_size > 1) {
    groups.forward = state.make_group(active, false);
    groups.backward = state.make_group(active, false);
    groups.norm = state.make_group(training, false);
  }
  for (int position = 0; position < layout.pipeline_parallel_size; ++position) {
    Group group = state.make_group(replicas_of(layout, position), false);
    if (!group.ranks().empty()) groups.replicas = std::move(group);
  }
  Place place;
  if (find_place(layout, self.rank, place)) state.connect_pairs(layout, place, groups);
  return groups;
}

std::string Communicator::broadcast(const std::string& text, int from_rank) {
  if (world_size() < 2) return text;
  at::Tensor size = at::full({1}, static_cast<std::int64_t>(text.size()), at::kLong);
  everyone().broadcast(size, from_rank, "broadcast of a decision");
  at::Tensor bytes = at::empty({size.item<std::int64_t>()}, at::kByte);
  if (rank() == from_rank) std::copy(text.begin(), text.end(), bytes.data_ptr<std::uint8_t>());
  everyone().broadcast(bytes, from_rank, "broadcast of a decision");
  const auto* data = reinterpret_cast<const char*>(bytes.data_ptr<std::uint8_t>());
  return {data, data + bytes.numel()};
}

std::vector<std::string> Communicator::gather(const std::string& text) {
  std::vector<std::string> texts;
  for (int from = 0; from < world_size(); ++from) texts.push_back(broadcast(from == rank() ? text : "", from));
  return texts;
}

void Communicator::post(const std::string& line) {
  state_->posted = line;
  if (state_->peers) return state_->peers->post(line);
  if (world_size() > 1)
    guarded(rank(), "posting progress", [&] { state_->store->set(store_key(state_->self, "progress"), line); });
}

std::string Communicator::posted() {
  if (state_->peers) return state_->peers->posted();
  if (world_size() < 2 || !state_->posted.empty()) return state_->posted;
  return guarded(rank(), "reading progress", [&] {
    if (!state_->store->check({store_key(state_->self, "progress")})) return std::string();
    const std::vector<std::uint8_t> line = state_->store->get(store_key(state_->self, "progress"));
    return std::string(line.begin(), line.end());
  });
}

std::vector<double> Communicator::sum(std::vector<double> values) {
  if (world_size() < 2 || values.empty()) return values;
  at::Tensor tensor = at::from_blob(values.data(), {static_cast<std::int64_t>(values.size())}, at::kDouble);
  everyone().all_reduce_sum({tensor}, "sum over all ranks");
  return values;
}

}  // namespace frostpipe
