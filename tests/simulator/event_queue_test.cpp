#include "simulator/event_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "profiles/error.h"

namespace frostpipe {
namespace {

using ::testing::ElementsAre;

TEST(EventQueue, RunsAnEventAtTimeZero) {
  EventQueue queue;
  int runs = 0;
  queue.schedule(0, [&] { ++runs; });
  queue.run();
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(queue.now(), 0);
}

TEST(EventQueue, RunsEventsInOrderOfTime) {
  EventQueue queue;
  std::vector<Nanoseconds> times;
  for (const Nanoseconds at : {30, 10, 20}) queue.schedule(at, [&] { times.push_back(queue.now()); });
  queue.run();
  EXPECT_THAT(times, ElementsAre(10, 20, 30));
}

TEST(EventQueue, KeepsTheOrderOfInsertionAtOneTime) {
  EventQueue queue;
  std::string order;
  for (const char name : std::string("abcdefgh")) queue.schedule(5, [&order, name] { order += name; });
  queue.run();
  EXPECT_EQ(order, "abcdefgh");
}

TEST(EventQueue, AnEventForNowRunsAfterThoseThatAlreadyWait) {
  EventQueue queue;
  std::string order;
  queue.schedule(5, [&] {
    order += 'a';
    queue.schedule(5, [&] { order += 'c'; });
  });
  queue.schedule(5, [&] { order += 'b'; });
  queue.run();
  EXPECT_EQ(order, "abc");
}

TEST(EventQueue, RefusesThePast) {
  EventQueue queue;
  queue.schedule(5, [&] { queue.schedule(4, [] {}); });
  EXPECT_THROW(queue.run(), InternalError);
}

}  // namespace
}  // namespace frostpipe
