// Oracle: the sent bytes, and their order.
#include "executor/elastic/peer_connections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <thread>

namespace frostpipe {
namespace {

using namespace std::chrono_literals;
using ByteString = std::vector<std::byte>;

/// All ranks of a job in this process, each connected to every other one.
std::vector<std::unique_ptr<PeerConnections>> connected(int num_ranks, const std::function<void()>& on_loss = {}) {
  std::vector<std::vector<Descriptor>> sockets(num_ranks);
  for (auto& of_rank : sockets) of_rank.resize(num_ranks);
  for (int one = 0; one < num_ranks; ++one) {
    for (int other = one + 1; other < num_ranks; ++other) {
      std::array<int, 2> ends{};
      EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
      sockets[one][other] = Descriptor(ends[0]);
      sockets[other][one] = Descriptor(ends[1]);
    }
  }
  std::vector<std::unique_ptr<PeerConnections>> ranks;
  for (int rank = 0; rank < num_ranks; ++rank)
    ranks.push_back(std::make_unique<PeerConnections>(rank, std::move(sockets[rank]),
                                                      rank == 0 ? on_loss : std::function<void()>()));
  return ranks;
}

/// All threads that begin after this object is made run on one core while it exists.
class OneCore {
 public:
  OneCore() {
    EXPECT_EQ(sched_getaffinity(0, sizeof before_, &before_), 0);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    EXPECT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  }
  ~OneCore() { sched_setaffinity(0, sizeof before_, &before_); }

 private:
  cpu_set_t before_{};
};

/// Bytes that encode their source.
ByteString content(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  ByteString bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

TEST(PeerConnections, MessagesOfAnySizeArriveWholeInBothDirectionsAtOnce) {
  const auto ranks = connected(2);
  for (const std::size_t size : {0, 1, 1000, 20'000'000}) {
    const ByteString up = content(size, 1), down = content(size, 2);
    ByteString got_up(size), got_down(size);
    const Message messages[] = {ranks[0]->send(1, {7, 0}, up, nullptr), ranks[1]->send(0, {7, 0}, down, nullptr),
                                ranks[1]->receive(0, {7, 0}, got_up, nullptr),
                                ranks[0]->receive(1, {7, 0}, got_down, nullptr)};
    for (const Message& message : messages) message.wait();
    EXPECT_TRUE(got_up == up && got_down == down) << size;
  }
}

TEST(PeerConnections, AChannelKeepsItsOrderAndWaitsForNoOther) {
  const auto ranks = connected(2);
  const ByteString first = content(300, 1), second = content(200, 2), other = content(100, 3);
  ByteString got_first(300), got_second(200), got_other(100);
  const Message sent[] = {ranks[0]->send(1, {1, 0}, first, nullptr), ranks[0]->send(1, {1, 0}, second, nullptr),
                          ranks[0]->send(1, {1, 5}, other, nullptr)};
  ranks[1]->receive(0, {1, 5}, got_other, nullptr).wait();
  ranks[1]->receive(0, {1, 0}, got_first, nullptr).wait();
  ranks[1]->receive(0, {1, 0}, got_second, nullptr).wait();
  EXPECT_TRUE(got_first == first && got_second == second && got_other == other);
  for (const Message& message : sent) message.wait();
}

TEST(PeerConnections, ASenderIsHeldUpUntilItsReceiverAsks) {
  const auto ranks = connected(2);
  const ByteString sent = content(10, 1);
  ByteString got(10);
  const Message message = ranks[0]->send(1, {1, 0}, sent, nullptr);
  EXPECT_THROW(message.wait(20ms), std::runtime_error);
  EXPECT_FALSE(message.is_done());
  ranks[1]->receive(0, {1, 0}, got, nullptr).wait();
  message.wait();
  EXPECT_EQ(got, sent);
}

TEST(PeerConnections, MemoryIsKeptAliveUntilTheMessageIsDoneAndNoLonger) {
  const auto ranks = connected(2);
  auto sent = std::make_shared<ByteString>(content(1000, 1));
  const std::weak_ptr<ByteString> alive = sent;
  const Message message = ranks[0]->send(1, {1, 0}, *sent, sent);
  sent.reset();
  EXPECT_FALSE(alive.expired());
  ByteString got(1000);
  ranks[1]->receive(0, {1, 0}, got, nullptr).wait();
  message.wait();
  EXPECT_TRUE(alive.expired());
  EXPECT_EQ(got, content(1000, 1));
}

/// The error message with which waiting for a message ends; "" = it has been received.
std::string error_of(const Message& message) {
  try {
    message.wait(5s);
    return "";
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

TEST(PeerConnections, WaitsForALostRankFail) {
  auto ranks = connected(3);
  ByteString got(10), large(20'000'000);
  const Message from_gone = ranks[0]->receive(1, {1, 0}, got, nullptr),
                to_gone = ranks[2]->send(1, {1, 0}, large, nullptr);
  ranks[1].reset();
  EXPECT_EQ(error_of(from_gone), "the other end has closed the connection");
  EXPECT_EQ(error_of(to_gone), "the other end has closed the connection");
  EXPECT_NE(error_of(ranks[0]->send(1, {1, 0}, got, nullptr)), "") << "and at once from then on";
  const Message to_third = ranks[0]->send(2, {1, 0}, got, nullptr);
  EXPECT_EQ(error_of(ranks[2]->receive(0, {1, 0}, std::span(large).first(10), nullptr)), "") << "the others go on";
  EXPECT_EQ(error_of(to_third), "");
}

TEST(PeerConnections, TheCallbackIsCalledForTheFirstLossOnly) {
  std::atomic<int> losses = 0;
  auto ranks = connected(4, [&losses] { ++losses; });
  ByteString got(1);
  for (int lost = 1; lost < 4; ++lost) {
    const Message waits = ranks[0]->receive(lost, {0, 0}, got, nullptr);
    EXPECT_EQ(losses, lost == 1 ? 0 : 1);
    ranks[lost].reset();
    EXPECT_NE(error_of(waits), "");
    for (int tries = 0; losses == 0 && tries < 1000; ++tries) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(losses, 1);
  }
}

TEST(PeerConnections, SeveringReleasesBothEnds) {
  const auto ranks = connected(2);
  ByteString got(10);
  ByteString got_there(10);
  const Message here = ranks[0]->receive(1, {1, 0}, got, nullptr),
                there = ranks[1]->receive(0, {1, 0}, got_there, nullptr);
  ranks[0]->close_connections();
  EXPECT_NE(error_of(here), "");
  EXPECT_NE(error_of(there), "");
}

TEST(PeerConnections, AMessageOfAnotherSizeThanWhatIsReceivedFails) {
  const auto ranks = connected(2);
  const ByteString sent(10);
  ByteString got(11);
  const Message received = ranks[1]->receive(0, {1, 0}, got, nullptr),
                message = ranks[0]->send(1, {1, 0}, sent, nullptr);
  EXPECT_THAT(error_of(message), testing::HasSubstr("10 bytes was sent where one of 11 is received"));
  EXPECT_NE(error_of(received), "");
}

TEST(PeerConnections, BytesThatAreNoMessagesLoseTheConnectionAndNothingElse) {
  for (const unsigned seed : {1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U}) {
    std::array<int, 2> ends{};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    std::vector<Descriptor> sockets(2);
    sockets[1] = Descriptor(ends[0]);
    PeerConnections rank(0, std::move(sockets));
    ByteString got(10), garbage = content(4096, seed);
    garbage[0] = std::byte(seed % 4);  // an existing kind of frame, or the next number
    garbage[1] = garbage[2] = garbage[3] = std::byte(0);
    const Message message = rank.receive(1, {1, 0}, got, nullptr);
    EXPECT_EQ(write(ends[1], garbage.data(), garbage.size()), 4096);
    shutdown(ends[1], SHUT_WR);
    EXPECT_NE(error_of(message), "");
    close(ends[1]);
  }
}

TEST(PeerConnections, ARankWithoutASocketIsLostFromTheBeginning) {
  PeerConnections rank(0, std::vector<Descriptor>(2));
  ByteString bytes(10);
  EXPECT_EQ(error_of(rank.receive(1, {1, 0}, bytes, nullptr)), "the launcher could not hand over the connection");
  EXPECT_EQ(error_of(rank.send(1, {1, 0}, bytes, nullptr)), "the launcher could not hand over the connection");
  rank.post("step 1");
  EXPECT_EQ(rank.posted(), "step 1");
  rank.close_connections();
}

TEST(PeerConnections, ALineIsSeenByAllAndTheLastOneStays) {
  const auto ranks = connected(3);
  EXPECT_EQ(ranks[0]->posted(), "");
  ranks[1]->post("step 1");
  ranks[1]->post("step 2");
  for (const auto& rank : ranks) {
    for (int tries = 0; rank->posted() != "step 2" && tries < 1000; ++tries) std::this_thread::sleep_for(5ms);
    EXPECT_EQ(rank->posted(), "step 2");
  }
}

TEST(PeerConnections, ThreeRanksSendThousandsOfMessagesInAnyOrder) {
  const auto ranks = connected(3);
  constexpr int kChannels = 4, kMessages = 300;
  const auto size_of = [](unsigned seed) { return std::size_t{(seed * 2654435761U) % 5000}; };
  const auto seed_of = [](int from, int to, int channel, int index) {
    return static_cast<unsigned>(((from * 3 + to) * kChannels + channel) * kMessages + index);
  };
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int self = 0; self < 3; ++self) {
    for (int channel = 0; channel < kChannels; ++channel) {
      threads.emplace_back([&, self, channel] {
        for (int index = 0; index < kMessages; ++index) {
          std::vector<ByteString> sent(3), got(3);
          std::vector<Message> messages;
          for (int other = 0; other < 3; ++other) {
            if (other == self) continue;
            sent[other] = content(size_of(seed_of(self, other, channel, index)), seed_of(self, other, channel, index));
            got[other].resize(size_of(seed_of(other, self, channel, index)));
            messages.push_back(
                ranks[self]->send(other, {1, static_cast<std::uint32_t>(channel)}, sent[other], nullptr));
            messages.push_back(
                ranks[self]->receive(other, {1, static_cast<std::uint32_t>(channel)}, got[other], nullptr));
          }
          for (const Message& message : messages) message.wait();
          for (int other = 0; other < 3; ++other) {
            const unsigned seed = seed_of(other, self, channel, index);
            if (other != self && got[other] != content(size_of(seed), seed)) ++wrong;
          }
        }
      });
    }
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

/// A thread that sends while another thread of its rank is writing leaves its message to that thread; every message
/// must still be written. On one core, a thread loses the core in the middle of a write.
TEST(PeerConnections, ThreadsOfOneCoreWriteWhatTheyLeaveEachOther) {
  const OneCore one_core;
  const auto ranks = connected(2);
  constexpr unsigned kThreads = 4, kMessages = 400;
  std::vector<std::thread> threads;
  std::atomic<int> num_equal = 0;
  for (unsigned i = 0; i < 2 * kThreads; ++i) {
    threads.emplace_back([&, rank = static_cast<int>(i % 2), channel = MessageChannel{1, i / 2}] {
      for (unsigned k = 0; k < kMessages; ++k) {
        const ByteString sent = content(64, k);
        ByteString got(64);
        const Message here = ranks[rank]->receive(1 - rank, channel, got, nullptr);
        ranks[rank]->send(1 - rank, channel, sent, nullptr).wait();
        here.wait();
        num_equal += got == sent ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_equal, 2 * kThreads * kMessages);
}

}  // namespace
}  // namespace frostpipe
