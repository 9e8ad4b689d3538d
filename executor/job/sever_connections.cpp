#include "executor/job/sever_connections.h"

#include <sys/socket.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace frostpipe {

void sever_connections() {
  std::vector<int> descriptors;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", none)) descriptors.push_back(std::atoi(entry.path().filename().c_str()));
  for (const int descriptor : descriptors) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size) != 0) continue;  // no socket
    int type = 0, listens = 0;
    size = sizeof type;
    getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &size);
    getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size);
    if ((address.ss_family == AF_INET || address.ss_family == AF_INET6) && type == SOCK_STREAM && !listens) shutdown(descriptor, SHUT_RDWR);
  }
}

}  // namespace frostpipe
