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

/// Makes a process group for ranks of one host, over the sockets that the launcher gave them. It supports send,
/// receive, broadcast, all-reduce (sum), all-gather, reduce-scatter and barrier of contiguous tensors in host memory.
/// Making a group sends no messages. `group` must be unique among the groups of `connections`; `ranks` are ranks of the
/// job, and this process is `ranks[index]`.
c10::intrusive_ptr<c10d::Backend> make_local_group(std::shared_ptr<PeerConnections> connections, std::uint32_t group,
                                                   std::vector<int> ranks, int index);

}  // namespace frostpipe
