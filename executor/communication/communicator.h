#pragma once
#include <memory>
#include <string>
#include <vector>

#include "executor/communication/group.h"
#include "executor/device/device.h"
#include "executor/elastic/membership.h"
#include "plan/plan.h"
#include "profiles/cluster.h"

namespace frostpipe {

class StoreRendezvous;

/// The process groups of the ranks that train in one phase. They are rebuilt at each reconfiguration.
struct ActiveGroups {
  // Messages between pipeline ranks, to a higher ("up") or a lower ("down") one. Each kind and direction has a process
  // group of its own, which keeps its order; a group that would carry no messages is empty.
  Group activations_up, activations_down;
  Group gradients_up, gradients_down;
  Group tied_up, tied_down;  // this replica's first and last stage, for tied parameters; may be empty
  Group replicas;            // data-parallel ranks, which hold the same stages and tensor slices as this rank
  Group tensor;              // tensor-parallel ranks of this rank's stages; empty if there is one
  Group norm;                // all ranks that train, for the global gradient norm; empty if p x t is 1
};

/// The connection of this rank to the job. Ranks that frostpipe's own launcher has started use the sockets that it gave
/// them (local_group.h), and NCCL if each has a GPU of its own. Other ranks find each other by a store at MASTER_ADDR,
/// watch each other by a heartbeat, and use Gloo or NCCL.
class Communicator {
 public:
  /// Must be called by all ranks of a rendezvous round. `rendezvous` belongs to ranks that another launcher has started
  /// and must outlive the communicator. If such ranks pass null, there is one round, and the loss of a rank ends the
  /// job. Throws RuntimeFailure if the ranks do not find each other, and InvalidInput with the reason if one of them
  /// has registered that it cannot take part.
  static std::unique_ptr<Communicator> connect(const RankEnvironment& self, ComputeDevice& device,
                                               StoreRendezvous* rendezvous = nullptr);
  /// Closes all connections; other ranks that still use theirs to this rank see them close.
  ~Communicator();

  int rank() const;
  int world_size() const;
  /// Returns the address to which this rank's sockets are bound; "" if frostpipe's launcher has connected the ranks.
  const std::string& address() const;
  /// True if some rank shares its device with another one. Messages between devices are then staged in host memory.
  bool uses_host_staging() const;
  /// Returns the group of all ranks for decisions and figures, in host memory.
  Group& control_group();
  /// Returns the group of all ranks for weights that move between ranks, in device memory.
  Group& weight_transfer_group();
  /// Makes messages and reductions between emulated devices take the times of `cluster`'s links for `shrink` times
  /// their bytes. This holds for groups formed later and, at once, for weight_transfer_group(). Without this call they
  /// take no time.
  void emulate_links(const Cluster& cluster, int shrink);
  /// Says on which node each rank is, by rank. All ranks must pass the same. Default: empty, all are on one node.
  void set_nodes(std::vector<int> nodes);
  const std::vector<int>& nodes() const;
  /// Forms the process groups of a phase. Must be called by all ranks; a rank that is idle in this phase gets empty
  /// groups. Pipeline ranks without trainable parameters are left out of the gradient norm. `ties_ends`: the first and
  /// the last stage exchange gradients of tied parameters.
  ActiveGroups form(const Phase& phase, bool ties_ends = false);
  /// Returns, on all ranks, the text that `from_rank` passes. Must be called by all ranks.
  std::string broadcast(const std::string& text, int from_rank);
  /// Returns the texts of all ranks, by rank. Must be called by all ranks.
  std::vector<std::string> gather(const std::string& text);
  /// Returns the elementwise sum over all ranks of lists of the same length. Must be called by all ranks.
  std::vector<double> sum(std::vector<double> values);
  /// Throws PeerLost if this rank has lost a connection or has given up its own. Call it when the device has been
  /// synchronized: after such a loss, GPU kernels that wait for messages are aborted and the device goes on without
  /// their data. Does nothing if messages go through host memory, since those fail by themselves.
  void require_whole() const;
  /// Closes all connections to other ranks. Every call that waits at one of them, on this rank or on the peer, fails at
  /// once; after a loss, ranks would otherwise wait for each other in a cycle. Any thread may call it.
  void close_connections();
  /// Posts a line of progress that another rank can read without any rank waiting for another. posted() returns the
  /// last line of any rank, "" if there is none; a line of this rank that it has not returned yet may come first.
  void post(const std::string& line);
  std::string posted();

 private:
  Communicator();
  void open_store_in_file();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace frostpipe
