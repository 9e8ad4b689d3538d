// Oracles: the effect of each column, computed by hand; the measured runs, if they are given.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "papers/published_suites.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using ::testing::HasSubstr;

constexpr double kGib = 1024.0 * 1024 * 1024;

/// 72 layers of 14,336 on 12 pipeline ranks of 8 tensor ranks, 4 replicas.
class Bloom : public test::ScratchFolderTest {
 protected:
  struct Line {
    std::string date = "2022-02-25", layers = "72", zero = "1", gradients = "fp16",
                partition = "transformer layers alone", seconds = "120", memory = "40", oom = "no";
  };
  static std::string line(const Line& one) {
    return one.date + ",14336," + one.layers + ",64,8,12,4," + one.zero + ",1,2048," + one.gradients + "," +
           one.partition + "," + one.seconds + "," + one.memory + "," + one.oom + ",\n";
  }
  PublishedTable table_of(const std::vector<Line>& lines) const {
    std::string rows =
        "date,hidden,layers,heads,tp,pp,dp,zero,micro_batch,global_batch,gradients,partition,seconds_per_iteration,"
        "max_memory_gb,oom,note\n";
    for (const Line& one : lines) rows += line(one);
    file("runs.csv", rows);
    return bloom_table(folder_.string());
  }
};

TEST_F(Bloom, EverySecondRowJudgesAndARepeatedOneIsTakenOnce) {
  const PublishedTable table = table_of({{}, {}, {.seconds = "121"}, {.seconds = "122"}});
  ASSERT_EQ(table.rows.size(), 6U);
  EXPECT_EQ(table.rows[0].group, "fitted on");
  EXPECT_EQ(table.rows[1].group, "judged on");
  EXPECT_EQ(table.rows[1].measured, 121);
  EXPECT_EQ(table.rows[2].group, "fitted on");
  EXPECT_EQ(table.rows[3].what, "memory [GiB]");
}

TEST_F(Bloom, IterationsTookLongerBeforeTheHostsWereTuned) {
  const PublishedTable table = table_of({{.memory = ""}, {.date = "2022-02-24", .seconds = "130", .memory = ""}});
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_NEAR(table.rows[1].predicted / table.rows[0].predicted, 1.057, 1e-9);
}

TEST_F(Bloom, MemoryIsCounted) {
  // The first rank has 6 layers of 12 h^2 and the embedding. If the optimizer is not sharded, it has 3/4 of 16 bytes
  // more for each parameter; gradients in fp32 have 4 bytes more. If embeddings count as layers there are 5 layers (of
  // 70), without the inputs of the sixth for 12 micro-batches, which are stored 1.44 times as large.
  const PublishedTable table =
      table_of({{},
                {.zero = "0", .seconds = "121"},
                {.gradients = "fp32", .seconds = "122"},
                {.layers = "70", .partition = "embedding counts as a layer", .seconds = "123"}});
  ASSERT_EQ(table.rows.size(), 8U);
  const double layer = 12.0 * 14336 * 14336 / 8, parameters = 6 * layer + 250'880.0 * 14336 / 8,
               inputs = 1.44 * 12 * 2 * 2048.0 * 14336;
  EXPECT_NEAR(table.rows[5].predicted - table.rows[4].predicted, 12 * parameters / kGib, 1e-6);
  EXPECT_NEAR(table.rows[6].predicted - table.rows[4].predicted, 4 * parameters / kGib, 1e-6);
  EXPECT_NEAR(table.rows[4].predicted - table.rows[7].predicted, (8 * layer + inputs) / kGib, 1e-6);
}

TEST_F(Bloom, ARunOutOfMemoryIsShownAndDoesNotCount) {
  const PublishedTable table = table_of({{.seconds = "", .memory = "", .oom = "yes"}});
  ASSERT_EQ(table.rows.size(), 1U);
  EXPECT_FALSE(table.rows[0].counts);
  EXPECT_EQ(table.rows[0].note, "ran out of memory");
}

TEST_F(Bloom, NamesTheLineThatIsWrong) {
  EXPECT_THAT(message_of([&] { table_of({{.layers = "71"}}); }),
              HasSubstr("runs.csv:2: layers: run: must have a number of layers"));
  EXPECT_THAT(message_of([&] { table_of({{.layers = "71", .seconds = "", .oom = "yes"}}); }),
              HasSubstr("must have a number of layers"));
  EXPECT_THAT(message_of([&] { table_of({{.zero = "3"}}); }), HasSubstr("runs.csv:2: zero: must be 0 or 1"));
  EXPECT_THAT(message_of([&] { table_of({}); }), HasSubstr("must hold runs"));
}

TEST(BloomRuns, AreWithinEightPercentInTimeAndFiveInMemoryWhereNothingWasFitted) {
  const char* const folder = std::getenv("FROSTPIPE_BLOOM_DATA");
  if (!folder)
    GTEST_SKIP() << "The measured runs are NOT compared: set FROSTPIPE_BLOOM_DATA to the folder of their runs.csv";
  int judged = 0;
  for (const PublishedGroup& group : groups_of(bloom_table(folder).rows)) {
    if (group.name != "judged on") continue;
    EXPECT_LT(group.errors.mean, group.what == "time [s]" ? 0.08 : 0.05) << group.what;
    ++judged;
  }
  EXPECT_EQ(judged, 2);
}

}  // namespace
}  // namespace frostpipe
