#include "base/event_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"

namespace frostpipe {
namespace {

using ::testing::ElementsAre;
using Queue = EventQueue<std::function<void()>>;

TEST(EventQueue, RunsAnEventAtTimeZero) {
  Queue queue;
  int runs = 0;
  queue.schedule(0, [&] { ++runs; });
  queue.run([](const auto& event) { event(); });
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(queue.now(), 0);
}

TEST(EventQueue, RunsEventsInOrderOfTime) {
  Queue queue;
  std::vector<Nanoseconds> times;
  for (const Nanoseconds at : {30, 10, 20}) queue.schedule(at, [&] { times.push_back(queue.now()); });
  queue.run([](const auto& event) { event(); });
  EXPECT_THAT(times, ElementsAre(10, 20, 30));
}

TEST(EventQueue, KeepsTheOrderOfInsertionAtOneTime) {
  Queue queue;
  std::string order;
  for (const char name : std::string("abcdefgh")) queue.schedule(5, [&order, name] { order += name; });
  queue.run([](const auto& event) { event(); });
  EXPECT_EQ(order, "abcdefgh");
}

TEST(EventQueue, AnEventForNowRunsAfterThoseThatAlreadyWait) {
  Queue queue;
  std::string order;
  queue.schedule(5, [&] {
    order += 'a';
    queue.schedule(5, [&] { order += 'c'; });
  });
  queue.schedule(5, [&] { order += 'b'; });
  queue.run([](const auto& event) { event(); });
  EXPECT_EQ(order, "abc");
}

TEST(EventQueue, RefusesThePast) {
  Queue queue;
  queue.schedule(5, [&] { queue.schedule(4, [] {}); });
  EXPECT_THROW(queue.run([](const auto& event) { event(); }), InternalError);
}

TEST(EventQueue, AClockThatRunsByItselfHandsOverWhatIsDueHoweverLate) {
  Queue queue;
  std::vector<std::pair<char, Nanoseconds>> done;
  const auto note = [&](char name) { return [&, name] { done.emplace_back(name, queue.now()); }; };
  queue.schedule(5, note('b'));
  queue.schedule(3, note('a'));
  queue.schedule(9, note('c'));
  const auto handle = [](const auto& event) { event(); };
  queue.advance_to(2, handle);
  EXPECT_TRUE(done.empty());
  EXPECT_EQ(queue.next_ns(), 3);
  queue.advance_to(8, handle);
  EXPECT_EQ(done, (std::vector<std::pair<char, Nanoseconds>>{{'a', 8}, {'b', 8}}));
  EXPECT_EQ(queue.next_ns(), 9);
  queue.advance_to(9, handle);
  EXPECT_EQ(done.back(), std::pair('c', Nanoseconds{9}));
  EXPECT_EQ(queue.next_ns(), std::nullopt);
  EXPECT_THROW(queue.advance_to(8, handle), InternalError);
}

}  // namespace
}  // namespace frostpipe
