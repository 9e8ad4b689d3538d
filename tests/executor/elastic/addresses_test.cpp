// Oracle: getsockname for sockets of this test on loopback; messages written by hand. A port does not answer if its
// queue is full: the system then drops new connections.
#include "executor/elastic/addresses.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"

namespace frostpipe {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr ConnectLimits kShort{.unanswered = 300ms, .refused = 600ms};

std::string address_of(const Descriptor& socket) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  getsockname(socket.number(), reinterpret_cast<sockaddr*>(&address), &size);
  return inet_ntoa(address.sin_addr);
}

Descriptor listening_at(const std::string& address) {
  Descriptor socket = bound_socket(address, 0);
  listen(socket.number(), 8);
  return socket;
}

template <typename Action>
std::string failure_of(const Action& action) {
  try {
    action();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "none";
}

std::string failure_of_waiting(const std::string& host, int port) {
  return failure_of([&] {
    wait_for_listener(1, {host, port, "where rank 0 listens", "Has it been started?"}, kShort);
  });
}

TEST(OwnAddress, IsThatOfTheWayToTheMaster) {
  EXPECT_EQ(own_address({.master_address = "127.0.0.1"}), "127.0.0.1");
  EXPECT_EQ(own_address({.master_address = "localhost", .is_on_one_host = true}), "127.0.0.1");
  EXPECT_EQ(own_address({.master_address = "10.77.0.1", .is_on_one_host = true}), "127.0.0.1")
      << "a job of one host is nobody else's business";
  EXPECT_EQ(own_address({.master_address = "127.0.0.2"}), "127.0.0.2");
  EXPECT_EQ(own_address({.master_address = "localhost"}), "127.0.0.1") << "whoever says so means it";
}

TEST(OwnAddress, IsThatOfTheInterfaceThatWasAskedFor) {
  EXPECT_EQ(own_address({.interface = "lo"}), "127.0.0.1");
  EXPECT_EQ(own_address({.is_on_one_host = true, .interface = "127.0.0.3"}), "127.0.0.3");
  const std::string failure = failure_of([] { own_address({.interface = "lo7"}); });
  EXPECT_THAT(failure, HasSubstr("--interface (or GLOO_SOCKET_IFNAME): must be an interface of host " + host_name()));
  EXPECT_THAT(failure, HasSubstr("lo (127.0.0.1)"));
  EXPECT_THAT(failure, HasSubstr(", is lo7"));
}

TEST(OwnAddress, AnUnknownMasterIsNamed) {
  EXPECT_THAT(failure_of([] { own_address({.rank = 3, .master_address = "no-such-host.invalid"}, kShort); }),
              HasSubstr("rank 3 on host " + host_name() + ": MASTER_ADDR: no-such-host.invalid is not known here ("));
}

// The master's address determines which address of an interface is used, except in a job of one host, or if an address
// is given.
TEST(OwnAddress, ANamedInterfaceNeedsAKnownMaster) {
  RankEnvironment self{.rank = 3, .master_address = "no-such-host.invalid", .interface = "lo"};
  const Clock::time_point begin = Clock::now();
  EXPECT_THAT(failure_of([&] { own_address(self, kShort); }),
              HasSubstr("rank 3 on host " + host_name() + ": MASTER_ADDR: no-such-host.invalid is not known here ("));
  EXPECT_GE(Clock::now() - begin, kShort.unanswered) << "its name may come yet";
  self.interface = "127.0.0.3";
  EXPECT_EQ(own_address(self, kShort), "127.0.0.3");
  self.interface = "lo";
  self.is_on_one_host = true;
  EXPECT_EQ(own_address(self, kShort), "127.0.0.1");
}

TEST(StoreAddress, IsLoopbackInAJobOfOneHost) {
  for (const int rank : {0, 1}) {
    EXPECT_EQ(store_address({.rank = rank, .master_address = "n7", .is_on_one_host = true}), "127.0.0.1");
    EXPECT_EQ(store_address({.rank = rank, .master_address = "n7", .is_on_one_host = true, .interface = "127.0.0.3"}),
              "127.0.0.1");
    EXPECT_EQ(store_address({.rank = rank, .master_address = "n7", .is_on_one_host = true, .store_is_external = true}),
              "n7")
        << "the agent listens where it wants";
  }
}

TEST(StoreAddress, IsTheMastersWhateverTheInterface) {
  for (const std::string interface : {"", "127.0.0.3"}) {
    EXPECT_EQ(store_address({.rank = 0, .master_address = "127.0.0.2", .interface = interface}), "127.0.0.2");
    EXPECT_EQ(store_address({.rank = 1, .master_address = "127.0.0.2", .interface = interface}), "127.0.0.2");
  }
  EXPECT_EQ(store_address({.rank = 1, .master_address = "n7"}), "n7") << "a rank that hosts none need not know it yet";
}

TEST(BoundSocket, IsAtThatAddressAlone) {
  const Descriptor socket = listening_at("127.0.0.2");
  EXPECT_EQ(address_of(socket), "127.0.0.2");
  EXPECT_EQ(failure_of_waiting("127.0.0.2", port_of(socket)), "none");
  EXPECT_THAT(failure_of_waiting("127.0.0.1", port_of(socket)), HasSubstr("Connection refused"));
  EXPECT_EQ(failure_of([&] { bound_socket("127.0.0.2", port_of(socket)); }),
            "127.0.0.2:" + std::to_string(port_of(socket)) + " of host " + host_name() +
                " cannot be listened on: Address already in use");
}

TEST(BoundSocket, MayHaveAnIpv6Address) {
  if (const Descriptor probe(socket(AF_INET6, SOCK_STREAM, 0)); !probe.is_open()) GTEST_SKIP() << "no IPv6 here";
  const Descriptor socket = listening_at("::1");
  EXPECT_EQ(failure_of_waiting("::1", port_of(socket)), "none");
  EXPECT_EQ(own_address({.master_address = "::1"}), "::1");
  EXPECT_EQ(with_port("::1", 7), "[::1]:7");
}

TEST(WaitForListener, APortThatIsRefusedIsNamedAndWaitedFor) {
  const Descriptor socket = bound_socket("127.0.0.1", 0);
  testing::internal::CaptureStderr();
  EXPECT_EQ(failure_of_waiting("127.0.0.1", port_of(socket)),
            "rank 1 on host " + host_name() + " cannot reach 127.0.0.1:" + std::to_string(port_of(socket)) +
                ", where rank 0 listens: Connection refused for 0.6 s. Has it been started?");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("Connection refused for 0.3 s; waiting for 0.6 s. Has it been started?"));
}

TEST(WaitForListener, ReturnsOnceAProcessListens) {
  const Descriptor socket = bound_socket("127.0.0.1", 0);
  std::thread late([&] {
    std::this_thread::sleep_for(200ms);
    listen(socket.number(), 8);
  });
  EXPECT_EQ(failure_of_waiting("127.0.0.1", port_of(socket)), "none");
  late.join();
}

TEST(WaitForListener, APortThatIsSilentIsNamedInTime) {
  const Descriptor socket = bound_socket("127.0.0.1", 0);
  listen(socket.number(), 0);
  ASSERT_EQ(failure_of_waiting("127.0.0.1", port_of(socket)), "none") << "this one fills the queue";
  const Clock::time_point begin = Clock::now();
  EXPECT_THAT(failure_of_waiting("127.0.0.1", port_of(socket)),
              HasSubstr(", where rank 0 listens: no answer for 0.3 s. Does a firewall drop it?"));
  EXPECT_LT(Clock::now() - begin, 5s);
}

TEST(HostIdentity, LoopbackAddressesStandForHosts) {
  EXPECT_EQ(host_identity("127.0.0.1"), host_identity("10.77.0.1"));
  EXPECT_EQ(host_identity("127.0.0.1"), host_identity(""));
  EXPECT_NE(host_identity("127.0.0.1"), host_identity("127.0.0.2"));
  EXPECT_THAT(host_identity(""), testing::StartsWith(host_name() + " "));
  EXPECT_GT(host_identity("").size(), host_name().size() + 30) << "the boot's number, a UUID";
}

}  // namespace
}  // namespace frostpipe
