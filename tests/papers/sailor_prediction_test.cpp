// Oracles: closed forms on a made-up model of two layers; the corrected plan and the cleaned profile, computed by hand.
#include "papers/sailor_prediction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "papers/published_suites.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

/// Files as published: OPT-350 with two layers on one device type, tensor-parallel size 2; links of 1 GB/s for one
/// pair, 2 GB/s for two.
class SailorTest : public test::ScratchFolderTest {
 protected:
  SailorTest() {
    const std::string layer = R"({"params_bytes": 4000000, "act_output_bytes": 1000000, "act_mem_bytes": 3000000})";
    const std::string layers = R"({"0": )" + layer + R"(, "1": )" + layer + "}";
    write_file_atomically(folder_ / "llm_info.json", R"({"OPT-350": {"1": )" + layers + R"(, "2": )" + layers + "}}");
    write_file_atomically(folder_ / "multizone_bandwidths_het.json",
                          R"({"us-central1-a": {"GH-96": {"1": {"us-central1-a": {"GH-96": {"1": [[0, 0, 1.0], 1e9]}}},
                                                          "2": {"us-central1-a": {"GH-96": {"2": [[0, 0, 2.0],
                                                           2e9]}}}}}})");
    write_file_atomically(folder_ / "OPT-350_GH-96_profile.json",
                          R"({"1": {"2": {"0": [0.010, 0.020, 0.001], "1": [0.030, 0.040, 0.001]}},
                              "2": {"2": {"0": [0.012, 0.024, 0.001], "1": [0.020, 0.050, 0.001]}}})");
  }

  SailorRun run(const std::string& layers, int stages, int replicas, int micro_batch_size, int global_batch_size) {
    std::string entries, stage;
    for (int r = 0; r < replicas; ++r)
      stage += std::string(r > 0 ? ", " : "") + R"([[["GH-96", 2, "us-central1-a"]], 2])";
    for (int s = 0; s < stages; ++s) entries += std::string(s > 0 ? ", " : "") + "[" + stage + "]";
    write_file_atomically(folder_ / "validation/clariden_OPT-350_run.json",
                          R"({"pipeline_list": [{"num_stages": )" + std::to_string(stages) +
                              R"(, "layers_per_stage": )" + layers + R"(, "tmp_per_stage": [)" + entries +
                              R"(]}], "mbs": )" + std::to_string(micro_batch_size) + R"(, "gbs": )" +
                              std::to_string(global_batch_size) + R"(, "real": 1.5, "max_mem": 5000000000})");
    return SailorData(folder_).runs().at(0);
  }

  double predicted_ms(const SailorRun& run) {
    SailorData data(folder_);
    return 1e-6 * static_cast<double>(predict(run, data, {.reduction_overhead_ns = 7'000'000}).iteration_ns);
  }
};

TEST_F(SailorTest, OneStageIsItsWorkAndOneStepOfTheOptimizer) {
  // Two samples: 12 + 24 and 20 + 50 ms, three micro-batches, 1 ms.
  EXPECT_NEAR(predicted_ms(run("[[0, 1]]", 1, 1, 2, 6)), 3 * 106 + 1, 1e-6);
}

TEST_F(SailorTest, AProfileThatFallsWithTheSamplesIsCleaned) {
  // Layer 1 takes 30 ms forward for one sample and 20 ms for two, so 20 is used.
  EXPECT_NEAR(predicted_ms(run("[[0, 1]]", 1, 1, 1, 1)), 10 + 20 + 20 + 40 + 1, 1e-6);
}

TEST_F(SailorTest, OneSampleIsLaunchBoundWhereTwoTakeHardlyLonger) {
  // One sample takes 10 + 20 ms forward (cleaned), two take 12 + 20 ms.
  SailorData data(folder_);
  EXPECT_TRUE(predict(run("[[0, 1]]", 1, 1, 1, 1), data).is_launch_bound);
  EXPECT_FALSE(predict(run("[[0, 1]]", 1, 1, 2, 2), data).is_launch_bound);
}

TEST_F(SailorTest, AProfileNeedsNoOtherSizeThanTheMicroBatches) {
  write_file_atomically(folder_ / "OPT-350_GH-96_profile.json",
                        R"({"2": {"2": {"0": [0.012, 0.024, 0.001], "1": [0.020, 0.050, 0.001]}}})");
  EXPECT_NEAR(predicted_ms(run("[[0, 1]]", 1, 1, 2, 2)), 106 + 1, 1e-6);
}

TEST_F(SailorTest, TwoStagesPayTheWholeActivationAtOnePairsSpeed) {
  // One micro-batch of two samples: 2 MB at 1 GB/s and 20 us, in both directions.
  EXPECT_NEAR(predicted_ms(run("[[0], [1]]", 2, 1, 2, 2)), 12 + 20 + 50 + 24 + 2 * 2.02 + 1, 1e-6);
}

TEST_F(SailorTest, ReplicasReduceInARingWithAllTensorRanksSideBySide) {
  // 2 x 8 MB at 2 GB/s, times 2 (d - 1) / d = 1; and 7 ms because there are replicas.
  EXPECT_NEAR(predicted_ms(run("[[0, 1]]", 1, 2, 2, 4)), 106 + 8 + 1 + 7, 1e-6);
}

TEST_F(SailorTest, MemoryIsTheLargestStagesWithItsMicroBatchesInFlight) {
  SailorData data(folder_);
  const SailorConstants constants{.bytes_per_parameter_value = 20, .stored_factor = 1.5, .context_bytes_gh200 = 1e9};
  // Stage 0: 1e6 values x 20, 1.5 x 3 MB x 2 samples x 2 in flight.
  EXPECT_EQ(predict(run("[[0], [1]]", 2, 1, 2, 8), data, constants).peak_memory_bytes,
            20'000'000 + 18'000'000 + 1'000'000'000);
}

TEST_F(SailorTest, ALayerThatStandsTwiceIsReadAsTheMissingOne) {
  const SailorRun read = run("[[0, 1, 2, 7, 4], [5, 6, 7]]", 2, 1, 1, 1);
  EXPECT_EQ(read.stages[0].layers, (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_EQ(read.repaired, "layer 7 is named twice; one of them is read as layer 3, which is missing");
  EXPECT_EQ(run("[[0], [1]]", 2, 1, 1, 1).repaired, "");
}

TEST_F(SailorTest, ARunWithoutStagesLayersRanksOrSamplesIsRefused) {
  const std::string file = "validation/clariden_OPT-350_run.json.";
  EXPECT_EQ(message_of([&] { run("[[0, 1]]", 1, 1, 0, 4); }), file + "mbs: must be at least 1, is 0");
  EXPECT_EQ(message_of([&] { run("[[0, 1]]", 1, 1, 1, 0); }), file + "gbs: must be at least 1, is 0");
  EXPECT_EQ(message_of([&] { run("[]", 0, 1, 1, 4); }), file + "pipeline_list[0].num_stages: must be at least 1, is 0");
  EXPECT_EQ(message_of([&] { run("[[0], []]", 2, 1, 1, 4); }),
            file + "pipeline_list[0].layers_per_stage[1]: must not be empty, is []");
  EXPECT_EQ(message_of([&] { run("[[0, 1]]", 1, 0, 1, 4); }),
            file + "pipeline_list[0].tmp_per_stage[0]: must not be empty, is []");
}

TEST_F(SailorTest, ALinkIsNoFasterThanItsPlateau) {
  write_file_atomically(
      folder_ / "multizone_bandwidths_het.json",
      R"({"us-central1-a": {"GH-96": {"1": {"us-central1-a": {"GH-96": {"1": [[0, 0, 1.0], 5e5]}}}}}})");
  EXPECT_EQ(SailorData(folder_).link_bytes_per_second("GH-96", "GH-96", 1, 1e6), 5e5);
}

TEST_F(SailorTest, WithoutItsFolderThereAreNoRuns) {
  EXPECT_TRUE(SailorData(folder_).runs().empty());
  EXPECT_EQ(message_of([&] { sailor_table(folder_.string()); }),
            "validation: must hold measured runs (*.json), is none");
}

TEST_F(SailorTest, MissingFilesAreNamed) {
  SailorData data(folder_);
  try {
    predict(run("[[0, 1]]", 1, 1, 4, 4), data);
    FAIL();
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("OPT-350_GH-96_profile.json: must have layer 0 for 4 samples"));
  }
  std::filesystem::remove(folder_ / "llm_info.json");
  EXPECT_THROW(SailorData{folder_}, std::exception);
}

}  // namespace
}  // namespace frostpipe
