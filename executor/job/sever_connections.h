#pragma once

namespace frostpipe {

/// Shuts down every TCP connection of this process (not what listens for new ones), without closing it: whoever waits at one, here or at the other end, gets an error at once. After a loss collectives
/// would otherwise wait for each other in a ring that nobody breaks, each in a group that cannot be given up before it is through.
void sever_connections();

}  // namespace frostpipe
