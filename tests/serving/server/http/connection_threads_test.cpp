// Oracle: the order in the header's specification, observed at the other ends of the connections.
#include "serving/server/http/connection_threads.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/serving/server/http/raw_client.h"

namespace frostpipe {
namespace {

/// The server's end and the client's.
std::pair<Descriptor, Descriptor> connection() {
  std::array<int, 2> ends{};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

bool is_closed(const Descriptor& client) {
  pollfd asked{.fd = client.number(), .events = POLLRDHUP, .revents = 0};
  return poll(&asked, 1, 0) > 0;
}

TEST(ConnectionThreads, TheSilentOneIsClosedFirstAndThoseWithARequestAreServedFirst) {
  std::promise<void> begun, go_on;
  const std::shared_future<void> may_go_on = go_on.get_future().share();
  std::mutex mutex;
  std::vector<int> order;
  std::vector<Descriptor> clients;
  {
    // One is served, and three wait.
    ConnectionThreads threads(4, 1, [&](Descriptor socket) {
      if (order.empty()) begun.set_value();
      may_go_on.wait();
      char number = 0;
      const ssize_t got = recv(socket.number(), &number, 1, MSG_DONTWAIT);
      const std::lock_guard lock(mutex);
      order.push_back(got == 1 ? number : -1);
    });
    const auto add = [&](int number, bool says_something) {
      auto [server, client] = connection();
      const std::string head(128, static_cast<char>(number));
      if (says_something) {
        EXPECT_EQ(write(client.number(), head.data(), head.size()), 128);
      }
      clients.push_back(std::move(client));
      threads.add(std::move(server));
    };
    add(0, true);
    begun.get_future().wait();
    add(1, false);
    for (int number = 2; number < 4; ++number) add(number, true);
    std::this_thread::sleep_for(ConnectionThreads::kGrace);
    add(4, true);
    EXPECT_TRUE(is_closed(clients[1]));
    clients[3].close();
    add(5, true);
    EXPECT_FALSE(is_closed(clients.back())) << "it has the place of the one who has left";
    std::thread helper([&] {
      std::this_thread::sleep_for(ConnectionThreads::kGrace);
      go_on.set_value();
    });
    add(6, true);  // waits until another is served; `order` shows that it replaced none of them
    helper.join();
  }
  EXPECT_EQ(order, (std::vector<int>{0, 2, 4, 5, 6}));
}

TEST(ConnectionThreads, OneThatHasJustComeIsNotClosedForBeingSilent) {
  std::promise<void> go_on;
  const std::shared_future<void> may_go_on = go_on.get_future().share();
  std::vector<Descriptor> clients;
  {
    ConnectionThreads threads(9, 1, [&](const Descriptor&) { may_go_on.wait(); });  // eight wait
    for (int number = 0; number < 11; ++number) {
      if (number == 8) std::this_thread::sleep_for(ConnectionThreads::kGrace);
      auto [server, client] = connection();
      if (number < 8) {
        EXPECT_EQ(write(client.number(), "G", 1), 1);
      }
      clients.push_back(std::move(client));
      threads.add(std::move(server));
    }
    for (int number = 8; number < 11; ++number) EXPECT_FALSE(is_closed(clients[number])) << number;
    go_on.set_value();
  }
}

TEST(ConnectionThreads, AQuarterOfTheDescriptorsThatAreLeftIsKept) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const auto open = static_cast<rlim_t>(test::num_open_descriptors());
  rlimit low = before;
  low.rlim_cur = open + 100;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  const std::size_t wished = max_connections(1024), few = max_connections(10);
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_GE(wished, 72u);
  EXPECT_LE(wished, 75u);
  EXPECT_EQ(few, 10u);
}

}  // namespace
}  // namespace frostpipe
