// Oracle: this test's clock around the whole call, and a speed that no memory can have.
#include "executor/profiler/measure_cache.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include "tests/executor/ranks.h"

namespace frostpipe::test {
namespace {

constexpr std::int64_t kHidden = 64;
constexpr int kTokens = 32;
constexpr Bytes kEntry = Bytes{kTokens} * kHidden * 4;

/// The time of an entry of the requested size.
double price_ns(const Link& speed) {
  return static_cast<double>(speed.latency_ns + transfer_occupancy_ns(speed, kEntry));
}

/// Each rank reads and writes its 32 entries 9 times; at least 5 of the times are not below the median.
RANK_TEST(MeasureCache, EntriesTakeNoLongerThanTheCallTook, 2) {
  const std::unique_ptr<ComputeDevice> device = make_device("cpu", self.local_rank);
  const std::unique_ptr<Communicator> communicator = Communicator::connect(self, *device);
  const auto begin = std::chrono::steady_clock::now();
  const std::optional<CacheSpeed> found = measure_cache(*communicator, kHidden, kTokens, at::TensorOptions());
  const double own = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
  const double mean = communicator->sum({own}).front() / self.world_size;
  CHECK_RANK(found.has_value(), "there is host memory");
  const double read = price_ns(found->read), write = price_ns(found->write);
  CHECK_RANK(5 * 32 * (read + write) <= mean, fmt::format("{} and {} ns of {}", read, write, mean));
  constexpr double kNanosecondsPerByte = 1e-3;  // a terabyte in a second
  CHECK_RANK(std::min(read, write) >= kEntry * kNanosecondsPerByte, fmt::format("{} and {} ns", read, write));
  for (const std::string& text : communicator->gather(fmt::format("{} {}", read, write)))
    CHECK_RANK(text == fmt::format("{} {}", read, write), "the same on all ranks");
}

/// Rank 1 cannot open another file, so it cannot open the store.
RANK_TEST(MeasureCache, NoRankHasOneIfOneRankCannot, 2) {
  const std::unique_ptr<ComputeDevice> device = make_device("cpu", self.local_rank);
  const std::unique_ptr<Communicator> communicator = Communicator::connect(self, *device);
  rlimit usual{};
  getrlimit(RLIMIT_NOFILE, &usual);
  rlimit none = usual;
  none.rlim_cur = 3;
  if (self.rank == 1) setrlimit(RLIMIT_NOFILE, &none);
  const bool has_cache = measure_cache(*communicator, kHidden, kTokens, at::TensorOptions()).has_value();
  setrlimit(RLIMIT_NOFILE, &usual);  // the leak checker opens files at the end
  CHECK_RANK(!has_cache, "none on any rank");
}

}  // namespace
}  // namespace frostpipe::test
