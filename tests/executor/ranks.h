#pragma once
#include <functional>
#include <string>

#include "executor/elastic/membership.h"

namespace frostpipe::test {

/// A distributed test: every rank calls it; a false CHECK_RANK or an exception fails the test.
using RankTest = std::function<void(const RankEnvironment&)>;

/// Registers a body under a name; the test program started with RANK set runs the one that FROSTPIPE_RANK_TEST names.
struct RegisterRankTest {
  RegisterRankTest(std::string name, RankTest body);
};

/// Starts `num_ranks` processes of this program that run `name`; true if all of them passed.
bool passes_on_ranks(const std::string& name, int num_ranks);

/// Throws with place and text; the rank then ends with a message.
void fail_rank(const char* file, int line, const std::string& text);

}  // namespace frostpipe::test

#define CHECK_RANK(condition, text)                                                                            \
  do {                                                                                                         \
    if (!(condition)) ::frostpipe::test::fail_rank(__FILE__, __LINE__, std::string(#condition ": ") + (text)); \
  } while (false)
