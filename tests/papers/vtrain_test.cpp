// Oracle: what is wrong with each row, by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "papers/published_suites.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using ::testing::HasSubstr;

/// 64 replicas of 30 layers of 3072.
class Vtrain : public test::ScratchFolderTest {
 protected:
  PublishedTable table_of(const std::string& layers, const std::string& milliseconds) const {
    const std::string columns =
        "# GPUs,global batch,micro batch,hidden size,attention heads,# layers,sequence length,tensor parallelism,data "
        "parallelism,pipeline parallelism,iteration time (ms)\n";
    file("ground_truth_multi.csv",
         "Parameters (billion)," + columns + "3.6,64,512,8,3072,32," + layers + ",2048,1,64,1," + milliseconds + "\n");
    file("ground_truth_single.csv", columns);
    return vtrain_table(folder_.string());
  }
};

TEST_F(Vtrain, ARowHasItsRunAndItsMeasuredTime) {
  const PublishedTable table = table_of("30", "3566.5");
  ASSERT_EQ(table.rows.size(), 1U);
  EXPECT_EQ(table.rows[0].run, "3.6B, h 3072 l 30 t 1 d 64 p 1 B 512 b 8");
  EXPECT_EQ(table.rows[0].group, "several nodes");
  EXPECT_DOUBLE_EQ(table.rows[0].measured, 3.5665);
}

TEST_F(Vtrain, ACellThatIsNoSizeOrNoTimeIsNamed) {
  const std::string line = "ground_truth_multi.csv:2: ";
  for (const std::string layers : {"1e300", "nan", "0", "1.5"})
    EXPECT_THAT(message_of([&] { table_of(layers, "3566.5"); }), HasSubstr(line + "# layers: must be")) << layers;
  EXPECT_THAT(message_of([&] { table_of("30", "0"); }), HasSubstr(line + "iteration time (ms): must be"));
}

}  // namespace
}  // namespace frostpipe
