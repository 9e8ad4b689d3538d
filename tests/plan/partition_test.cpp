#include "plan/partition.h"

#include "tests/plan/examples.h"

namespace frostpipe {
namespace {

using examples::message_of;

TEST(Partition, FindsStagesOfLayers) {
  const Partition partition{{0, 5}, {5, 6}, {6, 14}};
  EXPECT_EQ(stage_of_layer(partition, 0), 0);
  EXPECT_EQ(stage_of_layer(partition, 5), 1);
  EXPECT_EQ(stage_of_layer(partition, 13), 2);
  EXPECT_EQ(first_trainable_stage(partition, 0), 0);
  EXPECT_EQ(first_trainable_stage(partition, 4), 0);
  EXPECT_EQ(first_trainable_stage(partition, 6), 2);
  EXPECT_EQ(to_string(partition), "[0,5) [5,6) [6,14)");
  EXPECT_NO_THROW(validate(partition, 14, "p"));
}

TEST(Partition, MustBeContiguousCompleteAndWithoutEmptyStages) {
  const auto error_of = [](const Partition& partition) {
    return message_of([&] { validate(partition, 10, "plan.json: phases[1].partition"); });
  };
  EXPECT_EQ(error_of({}), "plan.json: phases[1].partition: must have at least one stage, is empty");
  EXPECT_EQ(error_of({{1, 10}}),
            "plan.json: phases[1].partition[0].begin: must be 0, where the stage before ends, is 1");
  EXPECT_EQ(error_of({{0, 4}, {5, 10}}),
            "plan.json: phases[1].partition[1].begin: must be 4, where the stage before ends, is 5");
  EXPECT_EQ(error_of({{0, 4}, {4, 4}, {4, 10}}),
            "plan.json: phases[1].partition[1].end: must be > 4: a stage is never empty, is 4");
  EXPECT_EQ(error_of({{0, 11}}), "plan.json: phases[1].partition[0].end: must be <= 10, the number of layers, is 11");
  EXPECT_EQ(error_of({{0, 4}, {4, 9}}),
            "plan.json: phases[1].partition[1].end: must be 10: the last stage ends with the last layer, is 9");
}

}  // namespace
}  // namespace frostpipe
