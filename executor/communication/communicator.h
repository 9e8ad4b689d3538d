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

/// The groups of the ranks that train in a phase; rebuilt at each reconfiguration.
struct ActiveGroups {
  // Between pipeline ranks, to a higher or a lower one. Each kind and direction keeps its order in a group of its own;
  // those without messages are empty.
  Group activations_up, activations_down;
  Group gradients_up, gradients_down;
  Group tied_up, tied_down;  // this replica's ends of the model; empty where they exchange nothing
  Group replicas;            // of the ranks that hold the same of this rank's stages
  Group tensor;              // of the tensor ranks that share them; empty where there is one
  Group norm;                // all ranks that train: the global gradient norm
};

/// Connection of this rank to the job. Ranks that our launcher has started talk over the sockets that it gave them
/// (local_group.h) and, on GPUs of their own, by NCCL. Others find each other by a store at the master's address, watch
/// each other by a heartbeat, and talk by Gloo or NCCL.
class Communicator {
 public:
  /// Called by all ranks of a round. `rendezvous`: of ranks that others have launched, with their store; it outlives
  /// this object. Where they pass none, there is one round, and the loss of a rank ends all.
  static std::unique_ptr<Communicator> connect(const RankEnvironment& self, ComputeDevice& device,
                                               StoreRendezvous* rendezvous = nullptr);
  /// The other ranks no longer expect this one's heartbeat; if it ends early, they see their connections to it close.
  ~Communicator();

  int rank() const;
  int world_size() const;
  /// To which this rank's sockets are bound; "" where our launcher has connected the ranks.
  const std::string& address() const;
  /// Some rank shares its device with another one: messages between devices are staged in host memory.
  bool uses_host_staging() const;
  /// All ranks, host memory: decisions and figures.
  Group& control_group();
  /// All ranks, device memory: weights that move.
  Group& weight_transfer_group();
  /// On emulated devices, from the next group on that is formed, and for moves at once: messages and reductions between
  /// devices take the times of `cluster`'s links for `shrink` times their bytes. Until then they take none.
  void emulate_links(const Cluster& cluster, int shrink);
  /// Called by all ranks; those that the phase leaves idle get empty groups. Pipeline ranks that train nothing have no
  /// part in the gradient norm. `ties_ends`: both ends of the model exchange gradients of tied parameters.
  ActiveGroups form(const Phase& phase, bool ties_ends = false);
  /// Text from `from_rank` to all.
  std::string broadcast(const std::string& text, int from_rank);
  /// A text of every rank, to all; by rank.
  std::vector<std::string> gather(const std::string& text);
  /// Sum over all ranks of equally long lists.
  std::vector<double> sum(std::vector<double> values);
  /// A device waits for messages that others never send until its groups end: when this rank loses a connection, or
  /// gives all up. Then it goes on, without them. Throws PeerLost if that has happened; to be called when the device
  /// has been synchronized. Messages through host memory fail by themselves: then it does nothing.
  void require_whole() const;
  /// Ends all connections to other ranks: whoever waits at one, here or at its other end, gets an error at once. After
  /// a loss ranks would otherwise wait for each other in a ring that nobody breaks. Any thread may call it.
  void sever();
  /// A line for whoever looks, without waiting for anybody: some rank writes it, and another reads what was written
  /// last, "" before that.
  void post(const std::string& line);
  std::string posted();

 private:
  Communicator();
  void open_store_in_file();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace frostpipe
