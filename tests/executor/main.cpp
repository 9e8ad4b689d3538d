#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <stdexcept>

#include "executor/elastic/launch.h"
#include "tests/executor/ranks.h"

namespace frostpipe::test {
namespace {
std::map<std::string, RankTest>& registered() {
  static std::map<std::string, RankTest> tests;
  return tests;
}
}  // namespace

RegisterRankTest::RegisterRankTest(std::string name, RankTest body) {
  registered().emplace(std::move(name), std::move(body));
}

bool passes_on_ranks(const std::string& name, int num_ranks) {
  setenv("FROSTPIPE_RANK_TEST", name.c_str(), 1);
  return launch_local_ranks({.command = {std::filesystem::read_symlink("/proc/self/exe")}, .num_ranks = num_ranks}) ==
         0;
}

void fail_rank(const char* file, int line, const std::string& text) {
  throw std::runtime_error(std::string(file) + ":" + std::to_string(line) + ": " + text);
}

}  // namespace frostpipe::test

int main(int argc, char** argv) {
  using namespace frostpipe;
  if (const std::unique_ptr<Membership> membership = Membership::join()) {
    const RankEnvironment self = membership->next_round()->self;
    try {
      test::registered().at(std::getenv("FROSTPIPE_RANK_TEST"))(self);
      return 0;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "rank %d: %s\n", self.rank, error.what());
      return 1;
    }
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
