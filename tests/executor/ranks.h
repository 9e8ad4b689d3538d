#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "executor/elastic/membership.h"

namespace frostpipe::test {

/// The body of a distributed test, which every rank calls; a false CHECK_RANK or an exception fails the test.
using RankTest = std::function<void(const RankEnvironment&)>;

/// Registers a body under a name, RANK_TEST's "Suite.Name"; if the test program is started with RANK set, it runs the
/// body that FROSTPIPE_RANK_TEST names.
struct RegisterRankTest {
  RegisterRankTest(std::string name, RankTest body);
};

/// Returns whether a body has been registered under this name.
bool is_rank_test(const std::string& name);

/// Starts `num_ranks` processes of this program that run `name`; true if all of them passed.
bool passes_on_ranks(const std::string& name, int num_ranks);

/// Throws an error with place and text; the rank then ends with a message.
void fail_rank(const char* file, int line, const std::string& text);

}  // namespace frostpipe::test

#define CHECK_RANK(condition, text)                                                                            \
  do {                                                                                                         \
    if (!(condition)) ::frostpipe::test::fail_rank(__FILE__, __LINE__, std::string(#condition ": ") + (text)); \
  } while (false)

/// Defines the test `suite`.`name`, whose body every rank of a job runs: `self` says which rank it is. The jobs have as
/// many ranks as the numbers after the name say, one job after the other.
#define RANK_TEST(suite, name, ...)                                                                          \
  static void suite##_##name##_on_rank(const RankEnvironment& self);                                         \
  static const ::frostpipe::test::RegisterRankTest suite##_##name##_registered(#suite "." #name,             \
                                                                               suite##_##name##_on_rank);    \
  TEST(suite, name) {                                                                                        \
    for (const int num_ranks : {__VA_ARGS__})                                                                \
      EXPECT_TRUE(::frostpipe::test::passes_on_ranks(#suite "." #name, num_ranks)) << num_ranks << " ranks"; \
  }                                                                                                          \
  static void suite##_##name##_on_rank(const RankEnvironment& self)
