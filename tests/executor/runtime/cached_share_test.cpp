// Oracle: entries written by hand: sample s has s + 1 tokens, whose rows hold 10 s + the token.
#include "executor/runtime/cached_share.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "executor/cache/store/activation_store.h"
#include "executor/communication/communicator.h"
#include "tests/executor/ranks.h"
#include "tests/executor/test_device.h"

namespace frostpipe {
namespace {

using Ints = std::vector<int>;

constexpr std::int64_t kHidden = 2;
constexpr int kBoundary = 3;

at::Tensor rows_of(int sample) {
  return (at::arange(sample + 1, at::kFloat) + 10 * sample).unsqueeze(1).repeat({1, kHidden});
}
at::Tensor nothing_of(int sample) { return at::zeros({sample + 1, kHidden}, at::kFloat); }

/// A cache for four samples, with entries of some, and room for the first ones.
struct FilledCache {
  explicit FilledCache(const Ints& written, int room = 4) {
    constexpr Bytes kMaxOfAnEntry = 64;
    std::vector<CacheableSample> samples;
    ActivationStoreOptions options{.entry_bytes = {}, .memory_bytes = room * kMaxOfAnEntry, .disk_folder = {}};
    for (int sample = 0; sample < 4; ++sample) {
      samples.push_back({.tokens = sample + 1, .key = static_cast<std::uint64_t>(100 + sample)});
      options.entry_bytes.push_back(ActivationCache::entry_bytes(sample + 1, kHidden, at::kFloat));
    }
    store = ActivationStore::create(options, "cached_share_test-" + std::to_string(getpid()));
    cache = std::make_unique<ActivationCache>(store.get(), samples, Ints{0, 1, 2, 3}, kHidden, at::kFloat,
                                              at::TensorOptions().dtype(at::kFloat));
    cache->set_boundary({.layer = kBoundary, .key = 7});
    std::vector<at::Tensor> rows;
    for (const int sample : written) rows.push_back(rows_of(sample));
    cache->write(written, at::cat(rows));
  }
  std::unique_ptr<ActivationStore> store;
  std::unique_ptr<ActivationCache> cache;
};

class CachedShareTest : public testing::Test {
 protected:
  const Ints order_{3, 2, 0, 1};
  const MiniBatch batch_{.samples = order_, .lengths = {4, 3, 1, 2}};
  const FilledCache filled_{{0, 2}};
  const std::unique_ptr<ActivationCache>& cache_ = filled_.cache;
};

/// Rows of cached samples may have any value, since they are not read.
TEST_F(CachedShareTest, WritesThoseAloneThatAreMissing) {
  EXPECT_EQ(cache_->missing(order_), (Ints{0, 3})) << "samples 3 and 1";
  cache_->write(order_, at::cat({rows_of(3), nothing_of(2), nothing_of(0), rows_of(1)}));
  EXPECT_EQ(cache_->missing(order_), Ints{});
  EXPECT_EQ(cache_->counts().written, 2 + 2);
  EXPECT_TRUE(at::equal(cache_->take(order_, kBoundary).activations,
                        at::cat({rows_of(3), rows_of(2), rows_of(0), rows_of(1)})));
  cache_->set_boundary({.layer = kBoundary + 1, .key = 8});
  EXPECT_EQ(cache_->missing(order_), (Ints{0, 1, 2, 3})) << "of another boundary";
}

TEST(CachesThatAreTooSmall, MissNothingThatTheyHaveNoRoomFor) {
  const FilledCache filled({0}, /*room=*/3);
  EXPECT_EQ(filled.cache->missing(Ints{3, 2, 1, 0}), (Ints{1, 2})) << "sample 3 has no place, 0 is there";
}

TEST_F(CachedShareTest, HandsOutTheRowsOfEachMicroBatch) {
  CachedShare share(cache_.get(), kBoundary);
  share.begin_iteration(batch_, {1, 4}, nullptr, {});
  const CachedRows first = share.rows({1, 3}), second = share.rows({3, 4});
  EXPECT_EQ(first.layers, (Ints{kBoundary, kBoundary}));
  EXPECT_TRUE(at::equal(first.activations, at::cat({rows_of(2), rows_of(0)})));
  EXPECT_EQ(second.layers, (Ints{0})) << "sample 1 was never written";
  EXPECT_TRUE(at::equal(second.activations, nothing_of(1)));
}

TEST_F(CachedShareTest, ReadingAheadGivesTheSameRows) {
  const Ints before{1};
  const MiniBatch earlier{.samples = before, .lengths = {2}};
  CachedShare share(cache_.get(), kBoundary);
  share.begin_iteration(earlier, {0, 1}, &batch_, {0, 2});
  share.begin_iteration(batch_, {0, 2}, nullptr, {});
  const CachedRows rows = share.rows({0, 2});
  EXPECT_EQ(rows.layers, (Ints{0, kBoundary}));
  EXPECT_TRUE(at::equal(rows.activations, at::cat({nothing_of(3), rows_of(2)})));
}

TEST_F(CachedShareTest, EntriesFromAfterTheStageAreNotFound) {
  CachedShare share(cache_.get(), kBoundary - 1);
  share.begin_iteration(batch_, {0, 4}, nullptr, {});
  const CachedRows rows = share.rows({0, 4});
  EXPECT_EQ(rows.layers, (Ints{0, 0, 0, 0}));
  EXPECT_FALSE(rows.activations.defined());
}

/// Sample 2 is found by both tensor ranks, sample 0 only by the first: both compute it, and count it as computed.
RANK_TEST(CachedShareOfTensorRanks, HasWhatAllOfThemHaveFound, 2) {
  const std::unique_ptr<ComputeDevice> device = test::test_device(self.local_rank);
  const std::unique_ptr<Communicator> communicator = Communicator::connect(self, *device);
  const Phase phase{.layout = {.tensor_parallel_size = 2}, .partition = {{0, 1}}};
  ActiveGroups groups = communicator->form(phase);
  const FilledCache filled(self.rank == 0 ? Ints{0, 2} : Ints{2});
  CachedShare share(filled.cache.get(), kBoundary,
                    c10::make_intrusive<TensorParallel>(groups.tensor, slice_of(self.rank, 2), device->torch_device()));
  const Ints samples{0, 2};
  const MiniBatch batch{.samples = samples, .lengths = {1, 3}};
  share.begin_iteration(batch, {0, 2}, nullptr, {});
  CHECK_RANK((share.rows({0, 2}).layers == Ints{0, kBoundary}), "layers");
  CHECK_RANK((filled.cache->counts().found == std::map<int, std::int64_t>{{0, 1}, {kBoundary, 1}}), "counts");
}

}  // namespace
}  // namespace frostpipe
