#pragma once
#include <c10/util/intrusive_ptr.h>

#include <string>

namespace c10d {
class Backend;
class Store;
}  // namespace c10d

namespace frostpipe {

/// Makes a Gloo group for ranks that frostpipe's launcher did not connect. It serves the CPU device, and control
/// messages on every device. Its sockets are bound to this rank's numeric `address`. Sums are added in the order of
/// ranks, as in a local group (executor/communication/local_group.h), so a run has the same bits under every launcher.
/// A wait without a limit ends after half an hour; lost ranks are found by heartbeat.
///
/// abort() may be called by any thread and closes all connections: waits on this rank and on its peers fail at once, as
/// do later calls.
c10::intrusive_ptr<c10d::Backend> make_gloo_group(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                                  const std::string& address);

}  // namespace frostpipe
