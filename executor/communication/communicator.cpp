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
#include <set>
#include <system_error>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "base/error.h"
#include "base/system_reason.h"
#include "executor/communication/emulated_links.h"
#include "executor/communication/guarded.h"
#include "executor/communication/heartbeat.h"
#include "executor/communication/host_paths.h"
#include "executor/communication/local_group.h"
#include "executor/communication/process_groups.h"
#include "executor/communication/store_rendezvous.h"
#include "executor/device/gloo_group.h"
#include "executor/elastic/addresses.h"
#include "executor/elastic/peer_connections.h"
#include "plan/stages.h"

namespace frostpipe {
namespace {

/// c10d prints a warning for every connection that breaks, and an error for one that breaks while ranks connect. The
/// cause is reported by frostpipe in one sentence instead. A user's own choice of the level is kept.
void keep_c10d_quiet() {
  setenv("TORCH_CPP_LOG_LEVEL", "FATAL", /*overwrite=*/0);
  c10::initLogging();
}

using Pairs = std::set<std::pair<MeshCoordinate, MeshCoordinate>>;

/// The longest that a rank waits for another one to make a NCCL communicator with it. That takes a second or two, and
/// the other rank may first have to make two others. After a loss, a rank that waits in vain still stops in time.
constexpr std::chrono::seconds kMaxConnecting{kStopLimitSeconds - 3};

/// Returns the pairs of coordinates that exchange activations and gradients, the lower pipeline rank first.
Pairs communicating_pairs(const Phase& phase) {
  Pairs pairs;
  const ParallelLayout& layout = phase.layout;
  const int turns =
      layout.vacant.empty() ? 1 : phase.num_micro_batches;  // the stand-ins for lost ranks differ between micro-batches
  const auto add = [&](int stage, int other) {
    const auto [lower, upper] = std::minmax({pipeline_rank_of(phase, stage), pipeline_rank_of(phase, other)});
    if (lower == upper) return;
    for (int replica = 0; replica < layout.data_parallel_size; ++replica)
      for (int tensor = 0; tensor < layout.tensor_parallel_size; ++tensor)
        for (int micro_batch = 0; micro_batch < turns; ++micro_batch)
          pairs.emplace(runner_of(layout, lower, replica, micro_batch, tensor),
                        runner_of(layout, upper, replica, micro_batch, tensor));
  };
  for (int stage = 0; stage + 1 < num_stages(phase); ++stage) add(stage, stage + 1);
  return pairs;
}

/// Sorts even lower pipeline ranks first, so that the pairs of a long pipeline connect in two parallel rounds, rather
/// than each after the one below it.
std::vector<Pairs::value_type> even_lower_ranks_first(const Pairs& pairs) {
  std::vector<Pairs::value_type> ordered(pairs.begin(), pairs.end());
  std::ranges::stable_partition(ordered, [](const auto& pair) { return pair.first.pipeline_rank % 2 == 0; });
  return ordered;
}

/// Returns the first and the last pipeline rank of each replica and tensor rank, in that order; nothing if both are the
/// same.
Pairs ends_of(const Phase& phase) {
  const auto [lower, upper] = std::minmax({pipeline_rank_of(phase, 0), pipeline_rank_of(phase, num_stages(phase) - 1)});
  Pairs ends;
  if (lower == upper) return ends;
  const ParallelLayout& layout = phase.layout;
  for (int replica = 0; replica < layout.data_parallel_size; ++replica)
    for (int tensor = 0; tensor < layout.tensor_parallel_size; ++tensor)
      ends.emplace(MeshCoordinate{lower, replica, tensor}, MeshCoordinate{upper, replica, tensor});
  return ends;
}

int rank_at(const ParallelLayout& layout, const MeshCoordinate& at) {
  return rank_of(layout, at.pipeline_rank, at.replica, at.tensor);
}

bool sends_activations_down(const Phase& phase) {
  for (int stage = 0; stage + 1 < num_stages(phase); ++stage)
    if (pipeline_rank_of(phase, stage + 1) < pipeline_rank_of(phase, stage)) return true;
  return false;
}

}  // namespace

struct Communicator::State {
  RankEnvironment self;
  ComputeDevice* device = nullptr;
  std::shared_ptr<PeerConnections> peers;  // null unless frostpipe's launcher made the connections
  std::string address;                     // address of this rank's own sockets; "" if frostpipe's launcher made them
  c10::intrusive_ptr<c10d::Store> store;   // through which process groups find their ranks
  StoreRendezvous* rendezvous = nullptr;   // null if frostpipe's launcher made the connections
  std::unique_ptr<StoreRendezvous> own_rendezvous;
  std::filesystem::path store_folder;  // folder of a FileStore; empty on all ranks but the first
  bool host_staging = false;
  int num_groups = 0;
  std::vector<int> nodes;  // by rank; empty: all are on one
  Group control_group, weight_transfer_group;
  std::string posted;                    // last line that this rank has posted
  std::unique_ptr<EmulatedLinks> links;  // set for an emulated device
  std::shared_ptr<ProcessGroups> process_groups =
      std::make_shared<ProcessGroups>();  // the thread of `peers` has it too

  /// NCCL connects two ranks at their first message and blocks the host meanwhile. The connections are therefore made
  /// here, in an order that cannot deadlock, whatever the schedule. This costs little with other backends.
  void connect_pairs(const Phase& phase, const MeshCoordinate& coordinate, ActiveGroups& groups) {
    const at::Tensor one = at::zeros({1}, at::TensorOptions().dtype(at::kFloat).device(device->torch_device()));
    const std::string what = "connecting pipeline neighbours";
    const auto pass_on = [&](Group& group, const MeshCoordinate& from, const MeshCoordinate& to) {
      if (group.ranks().empty()) return;
      require_connections();  // NCCL would connect again, and wait for a lost rank
      if (coordinate == from) group.send(one, rank_at(phase.layout, to), 0, what).wait();
      if (coordinate == to) group.receive(one, rank_at(phase.layout, from), 0, what).wait();
    };
    for (const auto& [lower, upper] :
         even_lower_ranks_first(communicating_pairs(phase))) {  // the same order on all ranks
      for (Group* group : {&groups.activations_up, &groups.gradients_up}) pass_on(*group, lower, upper);
      for (Group* group : {&groups.activations_down, &groups.gradients_down}) pass_on(*group, upper, lower);
    }
    for (const auto& [lower, upper] : ends_of(phase)) {
      pass_on(groups.tied_up, lower, upper);
      pass_on(groups.tied_down, upper, lower);
    }
    groups.norm.all_reduce_sum({one}, "connecting for the gradient norm");
    groups.replicas.all_reduce_sum({one}, "connecting replicas");
    groups.tensor.all_reduce_sum({one}, "connecting tensor ranks");
    device->synchronize();
  }

  ~State() {
    if (rendezvous) rendezvous->end_watch();
    std::error_code ignored;
    if (!store_folder.empty()) std::filesystem::remove_all(store_folder, ignored);
  }

  /// Must be called by every rank in the same order, members or not, so that the prefixes agree. All ranks call it at
  /// about the same time, so no rank waits long here.
  Group make_group(std::vector<int> ranks, bool host_memory) {
    const int number = num_groups++;
    const auto found = std::find(ranks.begin(), ranks.end(), self.rank);
    if (found == ranks.end()) return {};
    const int size = static_cast<int>(ranks.size()), index = static_cast<int>(found - ranks.begin());
    if (size < 2) return Group(self.rank, std::move(ranks), nullptr, /*host_staging=*/false);
    const bool in_host_memory = host_memory || host_staging;
    c10::intrusive_ptr<c10d::Backend> backend;
    if (peers && (in_host_memory || device->torch_device().is_cpu())) {
      backend = make_local_group(peers, static_cast<std::uint32_t>(number), ranks, index);
    } else {
      backend = guarded(self.rank, "building a process group", [&] {
        const auto scoped =
            c10::make_intrusive<c10d::PrefixStore>(store_key(self, fmt::format("group/{}/", number)), store);
        return in_host_memory ? make_gloo_group(scoped, index, size, address)
                              : device->make_group(scoped, index, size, address);
      });
      process_groups->add(backend);
      require_connections();
    }
    Group group(self.rank, std::move(ranks), std::move(backend), !host_memory && host_staging);
    if (VirtualClock* const clock = device->virtual_clock())
      group.keep_virtual_time(clock, host_memory ? nullptr : links.get());
    return group;
  }

  void require_connections() const {
    if (process_groups->are_aborted() || (peers && !peers->are_open()))
      throw PeerLost(fmt::format("rank {}: the connection to another rank has ended", self.rank));
  }

  void close_connections() {
    if (peers) peers->close_connections();
    process_groups->abort();
  }
};

Communicator::Communicator() : state_(std::make_unique<State>()) {}

std::unique_ptr<Communicator> Communicator::connect(const RankEnvironment& self, ComputeDevice& device,
                                                    StoreRendezvous* rendezvous) {
  keep_c10d_quiet();
  std::unique_ptr<Communicator> communicator(new Communicator);
  State& state = *communicator->state_;
  state.self = self;
  state.device = &device;
  std::vector<int> all(self.world_size);
  for (int rank = 0; rank < self.world_size; ++rank) all[rank] = rank;
  if (self.world_size > 1 && self.peer_sockets) {
    state.peers = std::make_shared<PeerConnections>(self.rank, std::move(*self.peer_sockets),
                                                    [groups = state.process_groups] { groups->begin_abort(); });
  } else if (self.world_size > 1) {
    state.address = own_address(self);
    if (!rendezvous) {
      state.own_rendezvous = std::make_unique<StoreRendezvous>(RendezvousInfo{.self = self}, /*max_restarts=*/0);
      rendezvous = state.own_rendezvous.get();
    }
    state.self = rendezvous->connect();
    state.rendezvous = rendezvous;
    state.store = rendezvous->store();
    guarded(self.rank, "waiting for all ranks", [&] {
      rendezvous->register_rank();
      if (rendezvous->is_first_round()) require_paths_between_hosts(state.self, state.address, *rendezvous->store());
    });
  }
  state.control_group = state.make_group(all, /*host_memory=*/true);
  const std::string identity = device.identity();
  const std::vector<std::string> devices = communicator->gather(
      identity.empty() ? fmt::format("rank {}", self.rank) : host_identity(state.address) + " " + identity);
  state.host_staging = std::set(devices.begin(), devices.end()).size() < devices.size();
  if (state.peers && !device.torch_device().is_cpu() && !state.host_staging) communicator->open_store_in_file();
  state.weight_transfer_group = state.make_group(all, /*host_memory=*/false);
  if (state.rendezvous) state.rendezvous->watch([&state] { state.close_connections(); });
  return communicator;
}

Communicator::~Communicator() = default;

/// Makes the store that NCCL needs: a FileStore in a folder that only this user can open.
void Communicator::open_store_in_file() {
  std::string folder;
  if (rank() == 0) {
    folder = (std::filesystem::temp_directory_path() / "frostpipe-XXXXXX").string();
    if (!mkdtemp(folder.data()))
      throw RuntimeFailure(fmt::format("{}: cannot be made: {}; see TMPDIR", folder, system_reason(errno)));
    state_->store_folder = folder;
  }
  folder = broadcast(folder, 0);
  state_->store = c10::make_intrusive<c10d::FileStore>(folder + "/store", world_size());
  state_->store->setTimeout(kMaxConnecting);
}

int Communicator::rank() const { return state_->self.rank; }
int Communicator::world_size() const { return state_->self.world_size; }
const std::string& Communicator::address() const { return state_->address; }
bool Communicator::uses_host_staging() const { return state_->host_staging; }
const std::vector<int>& Communicator::nodes() const { return state_->nodes; }
void Communicator::set_nodes(std::vector<int> nodes) { state_->nodes = std::move(nodes); }
Group& Communicator::control_group() { return state_->control_group; }
Group& Communicator::weight_transfer_group() { return state_->weight_transfer_group; }

void Communicator::close_connections() { state_->close_connections(); }

void Communicator::require_whole() const {
  const bool go_through_host = state_->device->torch_device().is_cpu() || state_->host_staging;
  if (!go_through_host) state_->require_connections();
}

void Communicator::emulate_links(const Cluster& cluster, int shrink) {
  state_->links = std::make_unique<EmulatedLinks>(cluster, shrink, rank());
  state_->weight_transfer_group.keep_virtual_time(state_->device->virtual_clock(), state_->links.get());
}

ActiveGroups Communicator::form(const Phase& phase, bool ties_ends) {
  State& state = *state_;
  const ParallelLayout& layout = phase.layout;
  const std::vector<bool> trains = frostpipe::trains(phase);
  std::vector<int> active, training;
  for (int pipeline_rank = 0; pipeline_rank < layout.pipeline_parallel_size; ++pipeline_rank) {
    for (const int rank : all_ranks_of(layout, pipeline_rank)) {
      active.push_back(rank);
      if (trains[pipeline_rank]) training.push_back(rank);
    }
  }
  control_group().barrier();
  ActiveGroups groups;
  if (layout.pipeline_parallel_size > 1) {
    groups.activations_up = state.make_group(active, false);
    groups.gradients_down = state.make_group(active, false);
    if (sends_activations_down(phase)) {
      groups.activations_down = state.make_group(active, false);
      groups.gradients_up = state.make_group(active, false);
    }
  }
  if (layout.pipeline_parallel_size * layout.tensor_parallel_size > 1) groups.norm = state.make_group(training, false);
  const auto join = [&](Group& own, std::vector<int> ranks) {
    Group group = state.make_group(std::move(ranks), false);
    if (!group.ranks().empty()) own = std::move(group);
  };
  for (const auto& [lower, upper] : ties_ends ? ends_of(phase) : Pairs()) {
    join(groups.tied_up, {rank_at(layout, lower), rank_at(layout, upper)});
    join(groups.tied_down, {rank_at(layout, lower), rank_at(layout, upper)});
  }
  for (int pipeline_rank = 0; pipeline_rank < layout.pipeline_parallel_size; ++pipeline_rank) {
    for (int tensor = 0; tensor < layout.tensor_parallel_size; ++tensor)
      join(groups.replicas, replicas_of(layout, pipeline_rank, tensor));
    for (int replica = 0; layout.tensor_parallel_size > 1 && replica < layout.data_parallel_size; ++replica)
      join(groups.tensor, tensor_ranks_of(layout, pipeline_rank, replica));
  }
  if (const auto coordinate = find_coordinate(layout, state.self.rank)) state.connect_pairs(phase, *coordinate, groups);
  return groups;
}

std::string Communicator::broadcast(const std::string& text, int from_rank) {
  if (world_size() < 2) return text;
  at::Tensor size = at::full({1}, static_cast<std::int64_t>(text.size()), at::kLong);
  control_group().broadcast(size, from_rank, "broadcast of a decision");
  at::Tensor bytes = at::empty({size.item<std::int64_t>()}, at::kByte);
  if (rank() == from_rank) std::copy(text.begin(), text.end(), bytes.data_ptr<std::uint8_t>());
  control_group().broadcast(bytes, from_rank, "broadcast of a decision");
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
  if (world_size() < 2 || !state_->posted.empty()) return std::exchange(state_->posted, "");
  return guarded(rank(), "reading progress", [&] {
    if (!state_->store->check({store_key(state_->self, "progress")})) return std::string();
    const std::vector<std::uint8_t> line = state_->store->get(store_key(state_->self, "progress"));
    return std::string(line.begin(), line.end());
  });
}

std::vector<double> Communicator::sum(std::vector<double> values) {
  if (world_size() < 2 || values.empty()) return values;
  at::Tensor tensor = at::from_blob(values.data(), {static_cast<std::int64_t>(values.size())}, at::kDouble);
  control_group().all_reduce_sum({tensor}, "sum over all ranks");
  return values;
}

}  // namespace frostpipe
