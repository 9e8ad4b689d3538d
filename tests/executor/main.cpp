#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <stdexcept>

#include "base/error.h"
#include "base/process/end_process.h"
#include "executor/elastic/launch.h"
#include "tests/executor/ranks.h"
#include "tests/executor/test_device.h"

namespace frostpipe::test {
namespace {

/// Longer than any rank test takes under a sanitizer. Ranks that wait for each other still send heartbeats.
constexpr unsigned kLongestSeconds = 300;

std::map<std::string, RankTest>& registered() {
  static std::map<std::string, RankTest> tests;
  return tests;
}

/// The exit code of a process that is a rank of a rank test.
int run_on_rank(Membership& membership) {
  alarm(kLongestSeconds);
  const RankEnvironment self = membership.next_round()->self;
  try {
    registered().at(std::getenv("FROSTPIPE_RANK_TEST"))(self);
    return 0;
  } catch (const PeerLost& error) {
    std::fprintf(stderr, "rank %d: %s\n", self.rank, error.what());
    return kPeerLostExitCode;  // the launcher names the rank that failed first
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", self.rank, error.what());
    return 1;
  }
}

/// The exit code of this process.
int run(int argc, char** argv) {
  if (const std::unique_ptr<Membership> membership = Membership::join()) return run_on_rank(*membership);
  testing::InitGoogleTest(&argc, argv);
  if (const char* const device = std::getenv("FROSTPIPE_TEST_DEVICE")) reason_without_device(device);
  return RUN_ALL_TESTS();
}

}  // namespace

RegisterRankTest::RegisterRankTest(std::string name, RankTest body) {
  if (registered().emplace(name, std::move(body)).second) return;
  std::fprintf(stderr, "two rank tests are called %s\n", name.c_str());
  std::abort();
}

bool is_rank_test(const std::string& name) { return registered().contains(name); }

bool passes_on_ranks(const std::string& name, int num_ranks) {
  setenv("FROSTPIPE_RANK_TEST", name.c_str(), 1);
  return launch_local_ranks({.command = {std::filesystem::read_symlink("/proc/self/exe")}, .num_ranks = num_ranks}) ==
         0;
}

void fail_rank(const char* file, int line, const std::string& text) {
  throw std::runtime_error(std::string(file) + ":" + std::to_string(line) + ": " + text);
}

}  // namespace frostpipe::test

int main(int argc, char** argv) { frostpipe::end_process(frostpipe::test::run(argc, argv)); }
