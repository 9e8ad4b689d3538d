#include "executor/communication/communicator.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Logging.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "executor/communication/guarded.h"
#include "executor/communication/heartbeat.h"
#include "executor/communication/link_pacer.h"
#include "executor/communication/local_group.h"
#include "executor/elastic/peer_connections.h"
#include "profiles/error.h"
#include "profiles/system_reason.h"

namespace frostpipe {
namespace {

/// c10d warns line by line of every connection that breaks; what broke it is for us to say, in one sentence. A user's
/// own choice is kept.
void keep_c10d_quiet() {
  setenv("TORCH_CPP_LOG_LEVEL", "ERROR", /*overwrite=*/0);
  c10::initLogging();
}

}  // namespace

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
    const auto found = std::find(ranks.begin(), ranks.end(), self.rank);
    if (found == ranks.end()) return {};
    const int size = static_cast<int>(ranks.size()), index = static_cast<int>(found - ranks.begin());
    if (size < 2) return Group(self.rank, std::move(ranks), nullptr, /*through_host=*/false);
    const bool in_host_memory = host_memory || through_host;
    c10::intrusive_ptr<c10d::Backend> backend;
    if (peers && (in_host_memory || device->torch_device().is_cpu())) {
      backend = make_local_group(peers, static_cast<std::uint32_t>(number), ranks, index);
    } else {
      backend = guarded(self.rank, "building a process group", [&] {
        const auto scoped =
            c10::make_intrusive<c10d::PrefixStore>(store_key(self, fmt::format("group/{}/", number)), store);
        return in_host_memory ? make_gloo_group(scoped, index, size) : device->make_group(scoped, index, size);
      });
    }
    Group group(self.rank, std::move(ranks), std::move(backend), !host_memory && through_host);
    if (!host_memory) group.pace(pacer.get());
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
  state_->movers.pace(state_->pacer.get());
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
  if (const auto place = find_place(layout, self.rank)) state.connect_pairs(layout, *place, groups);
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
