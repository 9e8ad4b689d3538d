#pragma once
#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "executor/elastic/peer_connections.h"

namespace c10d {
class Backend;
}

namespace frostpipe {

/// A process group of ranks of one host, over the connections that the launcher gave them. Tensors are contiguous and
/// in host memory; it sends, receives, broadcasts, sums and waits (barrier). Making one takes no messages. `group` is a
/// number that no other group of these connections has; `ranks` are the job's, this one's is `ranks[index]`.
c10::intrusive_ptr<c10d::Backend> make_local_group(std::shared_ptr<PeerConnections> connections, std::uint32_t group,
                                                   std::vector<int> ranks, int index);

}  // namespace frostpipe
