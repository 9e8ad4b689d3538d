// Oracle: closed forms, worked by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "simulator/simulate.h"
#include "tests/support/synthetic_profile.h"

namespace frostpipe {
namespace {

using test::free_cluster;
using test::synthetic_profile;

constexpr std::int64_t kByteEachNanosecond = 1'000'000'000;

Phase two_stage_phase(int replicas, int num_micro_batches) {
  Phase phase;
  phase.layout = {.pipeline_parallel_size = 2, .data_parallel_size = replicas};
  phase.partition = {{0, 2}, {2, 4}};
  phase.num_micro_batches = num_micro_batches;
  phase.tokens = test::kSyntheticTokens;
  return phase;
}

/// Every layer has a forward of 100 ns and 40 output bytes; one sample per micro-batch; stage 0 is on node 0, stage 1
/// on node 1.
Profile hundreds() {
  return synthetic_profile(
      1, {{.forward_ns = 100, .input_gradient_ns = 100, .weight_gradient_ns = 100, .output_activation_bytes = 40}});
}

Cluster stages_on_nodes(int replicas) {
  Cluster cluster = free_cluster(2 * replicas);
  for (int rank = replicas; rank < 2 * replicas; ++rank) cluster.devices[rank].node = 1;
  cluster.inter_node.point_to_point =
      cluster.inter_node.collective = {.latency_ns = 7, .bandwidth_bytes_per_second = kByteEachNanosecond};
  return cluster;
}

std::vector<Nanoseconds> arrivals(const Trace& trace) {
  std::vector<Nanoseconds> times;
  for (const Span& span : trace.spans)
    if (span.action.kind == ActionKind::send_forward) times.push_back(span.end_ns);
  std::sort(times.begin(), times.end());
  return times;
}

Trace trace_of(const Phase& phase, const Cluster& cluster, int global_batch_size) {
  const ProfileCostModel costs(phase, {.global_batch_size = global_batch_size}, hundreds(), cluster);
  return simulate(schedule_of(phase), phase.layout, costs, 1);
}

TEST(SharedLinks, ReplicasOfOneNodeTakeTurns) {
  const Phase phase = two_stage_phase(3, 1);
  Cluster cluster = stages_on_nodes(3);
  EXPECT_EQ(arrivals(trace_of(phase, cluster, 3)),
            (std::vector<Nanoseconds>{247, 247, 247}));  // 200 + 40 + 7, each on its own
  cluster.shared_links = {{"card", 1, kByteEachNanosecond}};
  EXPECT_EQ(arrivals(trace_of(phase, cluster, 3)), (std::vector<Nanoseconds>{247, 287, 327}));
  cluster.shared_links[0].bandwidth_bytes_per_second *=
      2;  // half of it for each: two pass at once, the third half as long later
  EXPECT_EQ(arrivals(trace_of(phase, cluster, 3)), (std::vector<Nanoseconds>{247, 267, 287}));
}

TEST(SharedLinks, OutAndInDoNotDisturbEachOther) {
  const Phase phase = two_stage_phase(1, 4);
  Cluster cluster = stages_on_nodes(1);
  const Trace apart = trace_of(phase, cluster, 4);
  cluster.shared_links = {{"card", 1, kByteEachNanosecond}};
  EXPECT_EQ(trace_of(phase, cluster, 4), apart);  // one pair: forward and backward messages cross
}

/// Adds to a cost model messages that pass shared links which are never busy.
class FreeLinks final : public CostModel {
 public:
  explicit FreeLinks(const CostModel& costs) : costs_(costs) {}
  std::vector<Segment> segments(const Action& action, int pipeline_rank, int replica) const override {
    return costs_.segments(action, pipeline_rank, replica);
  }
  TransferCost transfer(const Action& send, int replica) const override { return costs_.transfer(send, replica); }
  std::vector<SharedOccupancy> shared_occupancies(const Action&, int) const override { return {{3, 0}, {5, 0}}; }
  bool shares_links() const override { return true; }

 private:
  const CostModel& costs_;
};

TEST(SharedLinks, ThatAreNeverBusyChangeNothing) {
  const UniformCostModel costs(
      {.forward_ns = 10, .input_gradient_ns = 11, .weight_gradient_ns = 12, .latency_ns = 3, .occupancy_ns = 4});
  for (const int m : {1, 3, 8}) {
    const Schedule schedule = lower(one_f_one_b({.pipeline_parallel_size = 4, .num_micro_batches = m}));
    EXPECT_EQ(simulate(schedule, {.pipeline_parallel_size = 4, .data_parallel_size = 2}, FreeLinks(costs), 2),
              simulate(schedule, {.pipeline_parallel_size = 4, .data_parallel_size = 2}, costs, 2));
  }
}

/// Three stages on three nodes: the link of 0 and 1 has 1 byte per ns and 7 ns, that of 1 and 2 a tenth of it and 70
/// ns.
Cluster three_nodes() {
  Cluster cluster = free_cluster(3);
  for (int rank = 0; rank < 3; ++rank) cluster.devices[rank].node = rank;
  cluster.inter_node.point_to_point = {.latency_ns = 7, .bandwidth_bytes_per_second = kByteEachNanosecond};
  cluster.node_pairs = {
      {1, 2, {.point_to_point = {.latency_ns = 70, .bandwidth_bytes_per_second = kByteEachNanosecond / 10}}}};
  return cluster;
}

Nanoseconds three_stages_ns(const Cluster& cluster, int num_micro_batches) {
  Phase phase = two_stage_phase(1, num_micro_batches);
  phase.layout.pipeline_parallel_size = 3;
  phase.partition = {{0, 1}, {1, 2}, {2, 4}};
  phase.schedule = "GPipe";
  return simulated_iteration_ns(phase, {.global_batch_size = num_micro_batches}, hundreds(), cluster);
}

TEST(UnequalPairs, AMessageTakesTheLinkOfItsTwoNodes) {
  // One micro-batch has forwards of 100, 100 and 200 ns, backwards of 400, 200 and 100, and passes every link twice.
  EXPECT_EQ(three_stages_ns(three_nodes(), 1), 1100 + 2 * (40 + 7) + 2 * (400 + 70));
  // With four micro-batches, the first reaches the slow link at 100 + 47 + 100 = 247. The last arrives at stage 2 at
  // 247
  // + 4 x 400 + 70 and is done there at 2117. Backwards, the first one starts on the link 400 later, and the last one
  // leaves it 4 x 400 after that.
  EXPECT_EQ(three_stages_ns(three_nodes(), 4), 2117 + 400 + (4 * 400 + 70) + 200 + 47 + 100);
}

TEST(UnequalPairs, MovesOfTensorsTakeThemToo) {
  const Reconfiguration moves{.moves = {{.from_rank = 1, .to_rank = 2, .bytes = 1000}}};
  EXPECT_EQ(reconfiguration_ns(moves, three_nodes()), 10 * 1000 + 70);
}

TEST(UnequalPairs, ThatAreEqualChangeNothing) {
  Cluster cluster = three_nodes();
  cluster.node_pairs.front().links = cluster.inter_node;
  Cluster without = cluster;
  without.node_pairs.clear();
  for (const int m : {1, 4, 7}) EXPECT_EQ(three_stages_ns(cluster, m), three_stages_ns(without, m));
}

TEST(GradientReduction, BesideTheLastBackwardLeavesWhatIsLeft) {
  // One stage, two replicas. The backward takes 200 200 200 100 ns layer by layer from the head (the first layer has no
  // input gradient), and each layer has one parameter of 4 bytes.
  Phase phase = two_stage_phase(2, 1);
  phase.layout.pipeline_parallel_size = 1;
  phase.partition = {{0, 4}};
  Cluster cluster = free_cluster(2);
  const auto reduction = [&] {
    const ProfileCostModel costs(phase, {.global_batch_size = 2}, hundreds(), cluster);
    return costs.segments(parse_action("0REDUCE_GRAD", "test"), 0, 0).front().duration_ns;
  };
  cluster.intra_node.collective = {.latency_ns = 30, .bandwidth_bytes_per_second = kByteEachNanosecond};
  EXPECT_EQ(reduction(), 30 + 16);
  cluster.communication.overlap_gradient_reduction = true;
  EXPECT_EQ(reduction(), 34);  // only that of the embedding
  cluster.intra_node.collective.latency_ns = 296;
  EXPECT_EQ(reduction(), 200 + 4 * 300 - 700);  // one after the other, beginning with the head's
}

TEST(TensorParallel, MessagesBetweenNodesAreScatteredAndGathered) {
  Profile profile = hundreds();
  for (Measurement& measurement : profile.measurements) measurement.key.tensor_parallel_size = 4;
  Phase phase = two_stage_phase(1, 1);
  phase.layout.tensor_parallel_size = 4;
  Cluster cluster = stages_on_nodes(4);
  cluster.intra_node.collective = {.latency_ns = 5, .bandwidth_bytes_per_second = 2 * kByteEachNanosecond};
  cluster.shared_links = {{"card", 1, kByteEachNanosecond}};
  const Action send = parse_action("0SEND_F0", "test");
  const auto costs = [&] { return ProfileCostModel(phase, {.global_batch_size = 1}, profile, cluster); };
  EXPECT_EQ(
      costs().transfer(send, 0),
      (TransferCost{.occupancy_ns = 10, .latency_ns = 7 + 5 + 15}));  // 40 bytes / 4; gathering 3/4 of 40 at 2 per ns
  EXPECT_THAT(costs().shared_occupancies(send, 0),
              testing::ElementsAre(SharedOccupancy{0, 40}, SharedOccupancy{3, 40}));
  for (Measurement& measurement : profile.measurements) measurement.key.sequence_parallel = true;
  phase.layout.sequence_parallel = true;
  EXPECT_EQ(costs().transfer(send, 0), (TransferCost{.occupancy_ns = 40, .latency_ns = 7})) << "of its own tokens";
  EXPECT_THAT(costs().shared_occupancies(send, 0),
              testing::ElementsAre(SharedOccupancy{0, 160}, SharedOccupancy{3, 160}));
  for (Measurement& measurement : profile.measurements) measurement.key.sequence_parallel = false;
  phase.layout.sequence_parallel = false;
  cluster.communication.scatter_gather = false;
  EXPECT_EQ(costs().transfer(send, 0), (TransferCost{.occupancy_ns = 40, .latency_ns = 7}));
  EXPECT_THAT(costs().shared_occupancies(send, 0),
              testing::ElementsAre(SharedOccupancy{0, 160}, SharedOccupancy{3, 160}));
}

TEST(TensorParallel, GradientsAndUpdatesAreSharedOut) {
  Profile profile = synthetic_profile(1, {{.update_ns = 80, .parameter_count = 100}});
  for (Measurement& measurement : profile.measurements) measurement.key.tensor_parallel_size = 2;
  Phase phase = two_stage_phase(2, 1);
  phase.layout.tensor_parallel_size = 2;  // ranks 0 1 | 2 3 on stage 0, 4 5 | 6 7 on stage 1
  Cluster cluster = free_cluster(8);
  cluster.intra_node.collective = {.latency_ns = 0, .bandwidth_bytes_per_second = kByteEachNanosecond};
  const ProfileCostModel costs(phase, {.global_batch_size = 2}, profile, cluster);
  EXPECT_EQ(costs.segments(parse_action("0REDUCE_GRAD", "test"), 0, 0).front(), (Segment{2 * 100 * 4 / 2, {0, 2}}));
  EXPECT_EQ(costs.segments(parse_action("1OPTIMIZER_STEP", "test"), 1, 0).back().duration_ns, 80);
}

/// By hand: of every layer's 100 parameters each of two ranks holds 40 whole and 30 of the rest. A stage has two
/// layers, and with sequence parallelism its tensor ranks first add the gradients of those 40.
TEST(TensorParallel, WholeParametersAreReducedAndUpdatedByEveryRank) {
  Profile profile = synthetic_profile(1, {{.update_ns = 80, .parameter_count = 100}});
  for (Measurement& measurement : profile.measurements) measurement.key.tensor_parallel_size = 2;
  for (Layer& layer : profile.model.layers) layer.whole_parameter_count = 40;
  Phase phase = two_stage_phase(2, 1);
  phase.layout.tensor_parallel_size = 2;
  Cluster cluster = free_cluster(8);
  cluster.intra_node.collective = {.latency_ns = 0, .bandwidth_bytes_per_second = kByteEachNanosecond};
  const ProfileCostModel costs(phase, {.global_batch_size = 2}, profile, cluster);
  EXPECT_EQ(costs.segments(parse_action("0REDUCE_GRAD", "test"), 0, 0).front(), (Segment{2 * 70 * 4, {0, 2}}));
  EXPECT_EQ(costs.segments(parse_action("1OPTIMIZER_STEP", "test"), 1, 0).back().duration_ns, 2 * (32 + 24));
  for (Measurement& measurement : profile.measurements) measurement.key.sequence_parallel = true;
  phase.layout.sequence_parallel = true;
  const ProfileCostModel split(phase, {.global_batch_size = 2}, profile, cluster);
  const Segment over_tensor_ranks{2 * 40 * 4, {}};
  EXPECT_EQ(split.segments(parse_action("0REDUCE_GRAD", "test"), 0, 0),
            (std::vector<Segment>{over_tensor_ranks, {2 * 70 * 4, {0, 2}}}));
  phase.layout.data_parallel_size = 1;
  const ProfileCostModel alone(phase, {.global_batch_size = 2}, profile, cluster);
  EXPECT_EQ(alone.segments(parse_action("0REDUCE_GRAD", "test"), 0, 0), std::vector<Segment>{over_tensor_ranks});
}

}  // namespace
}  // namespace frostpipe
