// Oracles: a made-up artifact of one device, by hand; the figures of PPipe's paper, where its artifact is at hand.
#include "bench/published/ppipe_simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "profiles/error.h"
#include "profiles/files.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PPipePlans : public test::ScratchFolderTest {
 protected:
  PPipePlans() {
    // One model of two blocks: 1 ms and 3 ms on L4, half of it with 2 requests; 1 and 2 ms on a half of P4.
    write_file_atomically(folder_ / "block-timing-tf32/net-L4-1.csv", "1000,1500\n3000,4500\n");
    write_file_atomically(folder_ / "block-timing-tf32/net-P4-2.csv", "1000,1800\n2000,3600\n");
    write_plan("_bl.json", R"([{"layers": [0, 2], "gpu": "L4", "mps": 0, "num_gpu": 1.0, "bs": 2}])");
    write_plan("_dart-r.json", R"([{"layers": [0, 2], "gpu": "L4", "mps": 0, "num_gpu": 1.0, "bs": 1}])");
    write_plan("_v4.json", R"([{"layers": [0, 1], "gpu": "P4", "mps": 1, "num_gpu": 1.5, "bs": 1},
                               {"layers": [1, 2], "gpu": "L4", "mps": 0, "num_gpu": 2.0, "bs": 1}])");
  }

  void write_plan(const std::string& planner, std::string partitions) {
    for (std::size_t at = 0; (at = partitions.find("\"bs\"", at)) != std::string::npos; at += 40)
      partitions.insert(at, R"("dnn": "net", "xput": 100.0, )");
    write_file_atomically(folder_ / ("plans/maf19/net_1.0_L4-P4_25-75_bw-gbps-6_sla-multiplier-5" + planner),
                          R"([{"xput": 100.0, "sla": 40000.25, "config": {"dnn_name": "net",
                              "gpu_name_arr": ["L4", "P4"], "num_gpu_per_server_arr": [4, 1], "bw_gbps": 6,
                              "transmit_time_us_arr": [250.125]},
                              "pipelines": [{"xput": 100.0, "partitions": )" +
                              partitions + "}]}]");
  }
};

TEST_F(PPipePlans, AreReadWithTheTimesOfTheirBlocks) {
  const std::vector<PPipeInstance> instances = ppipe_instances(folder_);
  ASSERT_EQ(instances.size(), 1U);
  EXPECT_EQ(instances[0].cluster, "L4-P4");
  const ServedModel& whole = instances[0].np.models.at(0);
  EXPECT_EQ(whole.objective_ns, 40'000'250);
  EXPECT_THAT(whole.pipelines.at(0).partitions.at(0).compute_ns, ElementsAre(4'000'000, 6'000'000));
  const ServingPlan& plan = instances[0].ppipe;
  EXPECT_EQ(plan.device_classes.at(0).devices_per_server, 4);
  EXPECT_EQ(plan.device_classes.at(1).count, 75);
  const std::vector<ServingPartition>& cut = plan.models.at(0).pipelines.at(0).partitions;
  EXPECT_EQ(cut.at(0).share, 2);
  EXPECT_EQ(cut.at(0).num_virtual_devices, 3);
  EXPECT_EQ(cut.at(0).transfer_ns, 0);
  EXPECT_THAT(cut.at(0).compute_ns, ElementsAre(1'000'000));
  EXPECT_EQ(cut.at(1).transfer_ns, 250'125);
  EXPECT_THAT(cut.at(1).compute_ns, ElementsAre(3'000'000));
}

TEST_F(PPipePlans, LittleLoadIsCarriedByAll) {
  // 100 requests a second of 4 ms or less and 40 ms to answer.
  const std::vector<PPipeLoads> loads = largest_loads(ppipe_instances(folder_), 1);
  ASSERT_EQ(loads.size(), 1U);
  EXPECT_EQ(loads[0].dart.largest_load_factor, 1);
  EXPECT_EQ(loads[0].ppipe.largest_load_factor, 1);
  EXPECT_EQ(loads[0].np.weak_class_utilisation, 0) << "it has no P4";
  // 100 requests a second for 1 ms on a half of one of 75 P4s.
  EXPECT_NEAR(loads[0].ppipe.weak_class_utilisation, 0.1 / 2 / 75, 0.05 * 0.1 / 2 / 75);
}

TEST_F(PPipePlans, AMissingBlockIsNamed) {
  write_file_atomically(folder_ / "block-timing-tf32/net-L4-1.csv", "1000,1500\n");
  try {
    ppipe_instances(folder_);
    FAIL() << "must throw";
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), HasSubstr("net-L4-1.csv: line 2: must hold the times of a block"));
  }
}

TEST(PPipeSimulation, GivesTheFiguresOfThePaper) {
  const char* const folder = std::getenv("FROSTPIPE_PPIPE_FOLDER");
  if (!folder)
    GTEST_SKIP() << "PPipe's figures are NOT tested: set FROSTPIPE_PPIPE_FOLDER to a folder with its artifact's "
                    "plans/maf19 and block-timing-tf32";
  for (const PublishedRow& row : ppipe_simulated_rows(folder)) {
    // Load factors to 0.02, gains to 3 points, attainment to 1 point; which load Figure 8 is of is not said.
    if (row.what.starts_with("utilisation")) continue;
    const double tolerance = row.what.starts_with("largest") ? 0.02 : row.what.starts_with("attainment") ? 1 : 3;
    EXPECT_NEAR(row.predicted, row.measured, tolerance) << row.what << ", " << row.run;
  }
}

}  // namespace
}  // namespace frostpipe
