#pragma once
#include <c10/util/intrusive_ptr.h>

#include <string>

namespace c10d {
class Backend;
class Store;
}  // namespace c10d

namespace frostpipe {

/// A Gloo group, for ranks that our launcher did not connect: the CPU device's, and the message group's on every
/// device. Its sockets are bound to this rank's `address`, a number. It adds in the order of ranks, as a local group
/// does (executor/communication/local_group.h): a run has the same bits under every launcher. Whoever waits without a
/// limit waits for half an hour: deaths are found by heartbeat.
///
/// Its abort(), which any thread may call, closes its connections: whoever waits here or at their other ends gets an
/// error at once, as does whoever asks for anything later.
c10::intrusive_ptr<c10d::Backend> make_gloo_group(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                                  const std::string& address);

}  // namespace frostpipe
