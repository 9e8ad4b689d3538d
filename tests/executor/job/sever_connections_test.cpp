// Oracle: POSIX: a reader of a connection that is shut down reads its end.
#include "executor/job/sever_connections.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <thread>

namespace frostpipe {
namespace {

TEST(SeverConnections, ReleasesWhoeverReadsFromATcpConnectionAndLeavesOthersAlone) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  ASSERT_EQ(connect(client, reinterpret_cast<sockaddr*>(&address), size), 0);
  const int server = accept(listener, nullptr, nullptr);
  ssize_t got = -2;
  std::thread reader([&] {
    char byte = 0;
    got = ::read(server, &byte, 1);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  std::array<int, 2> pair{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair.data()), 0);
  sever_connections();
  reader.join();
  EXPECT_EQ(got, 0);
  EXPECT_EQ(write(pair[0], "x", 1), 1) << "the line to the launcher stays";
  for (const int descriptor : {listener, client, server, pair[0], pair[1]}) close(descriptor);
}

}  // namespace
}  // namespace frostpipe
