// Oracles: closed forms of made-up rows; the measured runs, if they are given.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "papers/published_suites.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using ::testing::HasSubstr;

/// 8 layers of 0.5 ms forward and 1 ms backward and a head of four times that, on 4 ranks; messages have negligible
/// bytes, so that every pass waits 20 us for a message.
class VocabularyPipeline : public test::ScratchFolderTest {
 protected:
  static constexpr const char* kColumns =
      "name,method,micro_batches,sequence,hidden,vocabulary,layers,ffn,dp,pp,layers_on_last_stage,micro_batch,"
      "iteration_ms,forward_us,backward_us\n";
  static constexpr const char* kJob = "6,1,1,1,8,1,1,4";
  static std::string equal() {
    return std::string("equal,base,") + kJob + ",2,1,60,1000 1000 1000 3000,2000 2000 2000 6000\n";
  }
  static std::string moved(const std::string& forward = "1500 1500 1000 2000") {
    return std::string("moved,redis,") + kJob + ",0,1,40," + forward + ",3000 3000 2000 4000\n";
  }
  PublishedTable table_of(const std::string& rows) const {
    file("runs.csv", kColumns + rows);
    return vocabulary_pipeline_table(folder_.string());
  }
  std::string message(const std::string& rows) const {
    return message_of([&] { table_of(rows); });
  }
};

TEST_F(VocabularyPipeline, TakesTheClosedFormOfItsSlowestRank) {
  // The last rank works without a break between the others' forwards and their backwards.
  const PublishedTable table = table_of(equal() + moved());
  ASSERT_EQ(table.rows.size(), 4U);
  const double of_equal = 3 * 1.02 + 6 * (3.02 + 6.02) + 3 * 2.02,
               of_moved = (1.52 + 1.52 + 1.02) + 6 * (2.02 + 4.02) + (3.02 + 3.02 + 2.02);
  EXPECT_NEAR(1e3 * table.rows[0].predicted, of_equal, 1e-3);
  EXPECT_NEAR(1e3 * table.rows[1].predicted, of_moved, 1e-3);
  EXPECT_DOUBLE_EQ(table.rows[2].measured, 60.0 / 40);
  EXPECT_NEAR(table.rows[2].predicted, of_equal / of_moved, 1e-6);
}

TEST_F(VocabularyPipeline, ThePlannerLeavesTheHeadAlone) {
  // In any cut of 8 layers, no other stage takes as long as the head alone.
  const PublishedTable table = table_of(equal() + moved());
  EXPECT_GE(table.rows[3].predicted, table.rows[2].predicted);
  EXPECT_THAT(table.rows[3].note, HasSubstr(" 0 layers"));
}

TEST_F(VocabularyPipeline, LeavesOutMethodsThatSplitTheVocabulary) {
  EXPECT_EQ(table_of(equal() + "other,vocab,6,1,1,1,8,1,1,4,2,1,60,,\n").rows.size(), 1U);
}

TEST_F(VocabularyPipeline, NamesTheLineThatIsWrong) {
  EXPECT_THAT(message(moved()), HasSubstr("runs.csv:2: method: must have a row \"base\" of the same job"));
  EXPECT_THAT(message(equal() + moved("1500 1500 1000")),
              HasSubstr("runs.csv:3: forward_us: must have a time for each"));
  EXPECT_THAT(message(equal() + moved("1500 1.5 1000 2000")), HasSubstr("\"1.5\""));
  EXPECT_THAT(message(equal() + moved("2500 1500 1000 2000")), HasSubstr("is 5 3 2 0"));
  EXPECT_THAT(message("many,base,1000000000,1,1,1,8,1,1,4,2,1,60,1 1 1 1,1 1 1 1\n"),
              HasSubstr("must be of at most 1000 layers and 1000000 ranks x micro-batches"));
  EXPECT_THAT(message(""), HasSubstr("must hold rows of the methods base and redis"));
}

TEST(VocabularyPipelineRuns, AreWithinTwoPercentAndThePlannerGainsWhatWasMeasured) {
  const char* const folder = std::getenv("FROSTPIPE_VOCABULARY_PIPELINE_DATA");
  if (!folder)
    GTEST_SKIP() << "The measured runs are NOT compared: set FROSTPIPE_VOCABULARY_PIPELINE_DATA to the folder of their "
                    "runs.csv";
  const PublishedTable table = vocabulary_pipeline_table(folder);
  for (const PublishedGroup& group : groups_of(table.rows)) {
    if (group.what != "time [s]") continue;
    EXPECT_LT(group.errors.mean, 0.01) << group.name;
    EXPECT_LT(group.errors.largest, 0.02) << group.name;
  }
  for (const PublishedRow& row : table.rows) {
    if (row.what == "times faster") {
      EXPECT_GT(row.predicted, 0.98 * row.measured) << row.run;  // the planner's cuts gain more than some measured ones
    }
  }
}

}  // namespace
}  // namespace frostpipe
