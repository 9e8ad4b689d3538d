#include "cli/training/rehearsal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/shared/usage_error.h"
#include "tests/cli/command_line.h"
#include "tests/plan/examples.h"
#include "tests/support/one_rank_plan.h"

namespace frostpipe {
namespace {

using ::testing::HasSubstr;

std::string refusal(const RehearsalOptions& options, const TrainOptions& train, bool has_data) {
  try {
    require_consistent(options, train, has_data);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Rehearsal, TakesNoDataAndNoGradients) {
  TrainOptions real, emulated;
  emulated.device = "emulated";
  EXPECT_EQ(refusal({}, real, true), "");
  EXPECT_EQ(refusal({.shrink = 2, .links = true}, emulated, false), "");
  EXPECT_THAT(refusal({}, real, false), HasSubstr("--data: is required"));
  EXPECT_THAT(refusal({}, emulated, true), HasSubstr("--data: has no meaning"));
  EXPECT_THAT(refusal({.shrink = 2}, real, true), HasSubstr("need --device emulated"));
  EXPECT_THAT(refusal({.links = true}, real, true), HasSubstr("need --device emulated"));
  for (const auto rule : {FreezePolicy::Rule::paper, FreezePolicy::Rule::adaptive}) {
    emulated.freeze.rule = rule;
    EXPECT_THAT(refusal({}, emulated, false), HasSubstr("no gradients to look at"));
  }
  real = {};
  real.cuda_graphs = true;
  EXPECT_THAT(refusal({}, real, true), HasSubstr("--cuda-graphs: needs --device cuda"));
}

TEST(Rehearsal, NodesAreEqualGroups) {
  Cluster cluster = test::free_cluster(6);
  form_nodes(cluster, 3);
  for (int rank = 0; rank < 6; ++rank) EXPECT_EQ(cluster.devices[rank].node, rank / 2);
  const Cluster before = cluster;
  form_nodes(cluster, 0);
  EXPECT_EQ(cluster, before);
  EXPECT_THROW(form_nodes(cluster, 4), UsageError);
}

Profile profile_with_workload() {
  Profile profile = test::one_block_profile();  // of hidden size 4
  profile.workload = examples::example_workload();
  return profile;
}

TEST(Rehearsal, ShrinksTensorsToAQuarterOfAGibibyte) {
  // 256 MiB stay as they are; beyond it, the smallest power of two.
  TrainingPlan plan = test::one_rank_plan();
  plan.phases.front().predicted.peak_memory_bytes = {Bytes{256} << 20};
  EXPECT_EQ(emulation_of({}, profile_with_workload(), plan).shrink, 1);
  plan.phases.front().predicted.peak_memory_bytes = {Bytes{257} << 20};
  EXPECT_EQ(emulation_of({}, profile_with_workload(), plan).shrink, 2);
  plan.phases.front().predicted.peak_memory_bytes = {Bytes{1} << 40};
  EXPECT_EQ(emulation_of({}, profile_with_workload(), plan).shrink, 4) << "the hidden size at most";
  EXPECT_EQ(emulation_of({.shrink = 3, .links = true}, profile_with_workload(), plan).shrink, 3);
  EXPECT_TRUE(emulation_of({.shrink = 3, .links = true}, profile_with_workload(), plan).links);
}

TEST(Rehearsal, NeedsAWorkloadAndATransformer) {
  const TrainingPlan plan = test::one_rank_plan();
  EXPECT_THAT(examples::message_of([&] { emulation_of({}, test::one_block_profile(), plan); }),
              HasSubstr("profile: workload"));
  Profile imported = profile_with_workload();
  imported.model.layers[1].kind = LayerKind::layer;
  EXPECT_THAT(examples::message_of([&] { emulation_of({}, imported, plan); }), HasSubstr("must be a Transformer"));
  EXPECT_THAT(examples::message_of<UsageError>([&] { emulation_of({.shrink = 5}, profile_with_workload(), plan); }),
              HasSubstr("must be at most 4"));
}

TEST(Rehearsal, OptionsAreRead) {
  CLI::App app;
  RehearsalOptions options;
  TrainOptions train;
  add_rehearsal_options(app, options, train);
  EXPECT_EQ(test::parse(app, "--device emulated --emulated-shrink 8 --emulated-links --nodes 2"), "");
  EXPECT_EQ(train.device, "emulated");
  EXPECT_EQ(options.shrink, 8);
  EXPECT_TRUE(options.links);
  EXPECT_EQ(train.num_nodes, 2);
  EXPECT_NE(test::parse(app, "--device abacus"), "");
}

}  // namespace
}  // namespace frostpipe
