// Oracle: the header's specification, observed at the client's end of a pair of sockets.
#include "serving/server/http/client_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <thread>

#include "tests/serving/server/http/tls_client.h"

namespace frostpipe {
namespace {

using namespace std::chrono_literals;

class ClientSocketTest : public testing::Test {
 protected:
  ClientSocketTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    server_ = Descriptor(ends[0]);
    client_ = Descriptor(ends[1]);
  }
  void send(const std::string& bytes) const {
    EXPECT_EQ(::send(client_.number(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }

  Descriptor server_, client_;
};

TEST_F(ClientSocketTest, TheServersOwnTimeIsNotTheClients) {
  std::chrono::milliseconds most_silent{};
  ClientSocket socket(std::move(server_), nullptr, 5s, [&](bool, std::chrono::milliseconds silent) {
    most_silent = std::max(most_silent, silent);
    std::this_thread::sleep_for(200ms);  // as if other threads had the cores
    return false;
  });
  send("POST / HTTP/1.1\r\nContent-Length: 60000\r\n\r\n" + std::string(60'000, ' '));
  ASSERT_EQ(socket.receive_head(), ClientSocket::Head::complete);
  socket.allow(60'000);
  std::array<char, 4096> bytes{};
  const auto begin = std::chrono::steady_clock::now();
  while (socket.body_bytes() < 60'000) ASSERT_GT(socket.read(bytes.data(), bytes.size()), 0);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 600ms);
  EXPECT_LT(most_silent, 300ms);
}

TEST_F(ClientSocketTest, NoHandshakeIsMadeWithAClientThatHasLeft) {
  send(test::client_hello());
  shutdown(client_.number(), SHUT_WR);
  {
    ClientSocket socket(std::move(server_), test::tls_identity().get(), 5s, [](bool, auto) { return false; });
    EXPECT_EQ(socket.receive_head(), ClientSocket::Head::none);
  }
  char byte = 0;
  EXPECT_LE(recv(client_.number(), &byte, 1, 0), 0);
}

}  // namespace
}  // namespace frostpipe
