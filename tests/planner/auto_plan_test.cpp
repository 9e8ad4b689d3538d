// Oracle: brute force over every layout, partition, schedule and number of micro-batches of random small models.
#include "planner/auto_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "base/error.h"
#include "planner/make_plan.h"
#include "planner/search/placement.h"
#include "simulator/simulate.h"
#include "tests/planner/small_problems.h"
#include "tests/support/synthetic_profile.h"

namespace frostpipe {
namespace {

using testing::HasSubstr;

Nanoseconds brute_force(const Profile& profile, const Cluster& cluster, int batch) {
  Nanoseconds best = std::numeric_limits<Nanoseconds>::max();
  const int devices = static_cast<int>(cluster.devices.size()), layers = static_cast<int>(profile.model.layers.size());
  for (int p = 1; p <= devices; ++p) {
    if (devices % p != 0) continue;
    for (const Partition& partition : test::all_partitions(layers, p)) {
      for (const std::string schedule : {"GPipe", "1F1B", "ZB-H1", "ZB-H2"}) {
        for (int m = 1; m * devices / p <= batch; ++m) {
          if (schedule == "ZB-H2" && m < 2 * p - 1) continue;
          if (splits_backward(schedule) && !knows_split_backward(profile)) continue;
          Phase phase;
          phase.layout = {.pipeline_parallel_size = p, .data_parallel_size = devices / p};
          phase.partition = partition;
          phase.schedule = schedule;
          phase.num_micro_batches = m;
          phase.tokens = test::kSyntheticTokens;
          best = std::min(best, simulated_iteration_ns(phase, {.global_batch_size = batch}, profile, cluster));
        }
      }
    }
  }
  return best;
}

TEST(AutoPlan, IsTheBestOfAllWhereItIsSmallEnoughToBeProven) {
  std::mt19937 random(3);
  double mean = 0, worst = 1;
  int proven = 0;
  constexpr int kRounds = 200;
  for (int round = 0; round < kRounds; ++round) {
    const Profile profile = test::random_profile(random, 1 + static_cast<int>(random() % 2));
    Cluster cluster = test::free_cluster(1 << (random() % 3));
    cluster.intra_node.point_to_point = {.latency_ns = static_cast<Nanoseconds>(random() % 2000),
                                         .bandwidth_bytes_per_second = 1'000'000'000};
    cluster.intra_node.collective = {.latency_ns = static_cast<Nanoseconds>(random() % 20000),
                                     .bandwidth_bytes_per_second = 1'000'000'000};
    const int batch = 4 + static_cast<int>(random() % 5);
    const auto made = make_auto_plan({profile, cluster, test::options_for(batch)});
    ASSERT_TRUE(std::holds_alternative<AutoPlan>(made));
    const AutoPlan& plan = std::get<AutoPlan>(made);
    const Nanoseconds found = plan.plan.phases.front().predicted.iteration_ns,
                      best = brute_force(profile, cluster, batch);
    EXPECT_LE(plan.lower_bound_ns, best) << round;
    proven += plan.lower_bound_ns == found;
    EXPECT_GE(found, best) << round;
    const double above = static_cast<double>(found) / static_cast<double>(best);
    mean += above / kRounds;
    worst = std::max(worst, above);
    for (const Phase& one : plan.alternatives) EXPECT_GE(one.predicted.iteration_ns, found);
  }
  EXPECT_NEAR(mean, 1, 1e-12);
  EXPECT_DOUBLE_EQ(worst, 1);
  EXPECT_EQ(proven, kRounds);
}

/// A profile for several tensor-parallel sizes, with more than proportional speed-up.
Profile tensor_profile(const std::vector<int>& sizes) {
  const std::vector<test::SyntheticLayer> layers(
      6, {.forward_ns = 80'000, .input_gradient_ns = 80'000, .weight_gradient_ns = 80'000, .parameter_count = 1000});
  Profile profile = test::synthetic_profile(2, layers);
  const std::vector<Measurement> alone = profile.measurements;
  profile.measurements.clear();
  for (const Measurement& measured : alone)
    for (const int size : sizes) {
      Measurement one = measured;
      one.key.tensor_parallel_size = size;
      for (Nanoseconds* time : {&one.cost.forward_ns, &one.cost.input_gradient_ns, &one.cost.weight_gradient_ns})
        *time /= size * size;
      profile.measurements.push_back(one);
    }
  return profile;
}

TEST(AutoPlan, KeepsTensorRanksWithinANode) {
  const Profile profile = tensor_profile({1, 2, 4, 8});
  const auto chosen = [&](const std::vector<int>& nodes) {
    Cluster cluster = test::free_cluster(static_cast<int>(nodes.size()));
    for (std::size_t rank = 0; rank < nodes.size(); ++rank) cluster.devices[rank].node = nodes[rank];
    return std::get<AutoPlan>(make_auto_plan({profile, cluster, test::options_for(8)}));
  };
  const auto size = [&](const std::vector<int>& nodes) {
    return chosen(nodes).plan.phases.front().layout.tensor_parallel_size;
  };
  EXPECT_EQ(size({0, 0, 0, 0, 0, 0, 0, 0}), 8);
  EXPECT_EQ(size({0, 0, 0, 0, 1, 1, 1, 1}), 4);
  EXPECT_EQ(size({0, 0, 1, 1, 2, 2, 3, 3}), 2);
  EXPECT_EQ(size({0, 0, 0, 0, 1, 1, 2, 2}), 2);
  EXPECT_EQ(size({0, 0, 0, 1, 1, 1, 1, 1}), 1);  // ranks 2 and 3 would be on different nodes
  const AutoPlan four = chosen({0, 0, 0, 0, 1, 1, 1, 1});
  EXPECT_THAT(four.unfit_layouts, testing::Contains(HasSubstr("t = 8: tensor ranks that split layers would be on "
                                                              "different nodes (rank 0 on 0, rank 4 on 1)")));
  for (const Phase& phase : four.alternatives) EXPECT_LE(phase.layout.tensor_parallel_size, 4);
}

TEST(AutoPlan, SaysWhereTheSizeThatIsAskedForSpansNodes) {
  Cluster cluster = test::free_cluster(4);
  cluster.devices[2].node = cluster.devices[3].node = 1;
  PlanOptions options = test::options_for(8);
  options.tensor_parallel_size = 4;
  options.any_tensor_parallel_size = false;
  const auto made = make_auto_plan({tensor_profile({1, 2, 4}), cluster, options});
  ASSERT_TRUE(std::holds_alternative<Infeasible>(made));
  EXPECT_THAT(std::get<Infeasible>(made).reason, HasSubstr("try a size that divides the devices of every node"));
  EXPECT_FALSE(std::get<Infeasible>(made).lacks_memory);
  options.tensor_parallel_size = options.data_parallel_size = 2;
  cluster.devices.push_back({.node = 2});
  cluster.devices.push_back({.node = 3});  // remain idle
  EXPECT_TRUE(std::holds_alternative<AutoPlan>(make_auto_plan({tensor_profile({1, 2, 4}), cluster, options})));
}

// Oracle: unequal devices alternate. Every order of kinds puts 0 2 and 1 3 together, the ranks' own order 0 1 and 2 3.
TEST(AutoPlan, KeepsTensorRanksWithinANodeInEveryOrderOfUnequalDevices) {
  Cluster cluster = test::free_cluster(4);
  cluster.devices[1].memory_limit_bytes = cluster.devices[3].memory_limit_bytes = Bytes{1} << 40;
  PlanOptions options = test::options_for(8);
  options.pipeline_parallel_size = 2;
  const auto plan_on = [&](const std::vector<int>& nodes) {
    for (std::size_t rank = 0; rank < nodes.size(); ++rank) cluster.devices[rank].node = nodes[rank];
    return std::get<AutoPlan>(make_auto_plan({tensor_profile({1, 2}), cluster, options}));
  };
  const auto size_of = [](const AutoPlan& made) { return made.plan.phases.front().layout.tensor_parallel_size; };
  EXPECT_EQ(size_of(plan_on({0, 0, 0, 0})), 2);
  const AutoPlan neighbours = plan_on({0, 0, 1, 1});
  EXPECT_EQ(size_of(neighbours), 2);
  EXPECT_THAT(neighbours.plan.phases.front().layout.placement, testing::IsEmpty());
  EXPECT_THAT(neighbours.unfit_layouts, testing::Not(testing::Contains(HasSubstr("on different nodes"))));
  const AutoPlan none = plan_on({0, 1, 1, 0});
  EXPECT_EQ(size_of(none), 1);
  EXPECT_THAT(none.unfit_layouts, testing::Contains(HasSubstr("t = 2: tensor ranks that split layers would be")));
}

// Oracle: each schedule by itself.
TEST(AutoPlan, ChoosesTheBestOfAllSchedules) {
  std::mt19937 random(9);
  std::set<std::string> chosen;
  for (int round = 0; round < 60; ++round) {
    Profile profile = test::random_profile(random, 2 + static_cast<int>(random() % 2));
    for (Measurement& one : profile.measurements)
      one.cost.split_backward = SplitBackward{one.cost.input_gradient_ns, one.cost.weight_gradient_ns, 100};
    Cluster cluster = test::free_cluster(2 + static_cast<int>(random() % 2));
    cluster.intra_node.point_to_point.latency_ns = static_cast<Nanoseconds>(random() % 2000);
    PlanOptions options = test::options_for(4 + static_cast<int>(random() % 9));
    options.virtual_stages = 0;
    const AutoPlan open = std::get<AutoPlan>(make_auto_plan({profile, cluster, options}));
    const Phase& best = open.plan.phases.front();
    chosen.insert(best.schedule);
    EXPECT_LE(open.lower_bound_ns, best.predicted.iteration_ns) << round;
    for (const std::string& name : schedule_names()) {
      if (schedule_traits(name).has_slices) continue;        // planned only if asked for
      if (schedule_traits(name).weight_delay > 0) continue;  // only if asked for, since the optimizer differs
      options.schedule = name;
      const auto made = make_auto_plan({profile, cluster, options});
      if (!std::holds_alternative<AutoPlan>(made)) continue;
      const Nanoseconds by_name = std::get<AutoPlan>(made).plan.phases.front().predicted.iteration_ns;
      EXPECT_LE(open.lower_bound_ns, by_name) << round << " " << name;
      EXPECT_LE(best.predicted.iteration_ns, by_name) << round << " " << name;
    }
  }
  EXPECT_GE(chosen.size(), 3u);
}

TEST(AutoPlan, PutsUnequalDevicesInTheBestOrder) {
  // Oracle: brute force over every order of the devices too. One kind is slower, by another factor for each layer.
  std::mt19937 random(5);
  double worst = 1;
  int moved = 0;
  for (int round = 0; round < 40; ++round) {
    Profile profile = test::random_profile(random, 1 + static_cast<int>(random() % 2));
    const std::size_t measured = profile.measurements.size(), updated = profile.updates.size();
    for (std::size_t i = 0; i < measured; ++i) {
      Measurement slow = profile.measurements[i];
      slow.key.device_type = "slow";
      for (Nanoseconds* time : {&slow.cost.forward_ns, &slow.cost.input_gradient_ns, &slow.cost.weight_gradient_ns})
        *time *= 2 + slow.key.layer % 3;
      profile.measurements.push_back(slow);
    }
    for (std::size_t i = 0; i < updated; ++i) {
      profile.updates.push_back(profile.updates[i]);
      profile.updates.back().device_type = "slow";
    }
    std::sort(profile.measurements.begin(), profile.measurements.end(),
              [](const Measurement& a, const Measurement& b) { return a.key < b.key; });
    Cluster cluster = test::free_cluster(3 + static_cast<int>(random() % 2));
    cluster.intra_node.point_to_point = {.latency_ns = static_cast<Nanoseconds>(random() % 2000),
                                         .bandwidth_bytes_per_second = 1'000'000'000};
    for (Device& device : cluster.devices)
      if (random() % 2 == 0) device.type = "slow";
    PlanOptions options = test::options_for(6);
    const int p = static_cast<int>(cluster.devices.size());
    options.pipeline_parallel_size = p;
    const auto made = make_auto_plan({profile, cluster, options});
    ASSERT_TRUE(std::holds_alternative<AutoPlan>(made)) << std::get<Infeasible>(made).reason;
    const Phase& phase = std::get<AutoPlan>(made).plan.phases.front();
    Nanoseconds best = std::numeric_limits<Nanoseconds>::max();
    std::vector<int> order(p);
    for (int i = 0; i < p; ++i) order[i] = i;
    do {
      for (const Partition& partition : test::all_partitions(static_cast<int>(profile.model.layers.size()), p)) {
        for (int m = 1; m <= 6; ++m) {
          for (const char* const schedule : {"GPipe", "1F1B"}) {
            Phase one = phase;
            one.layout.placement = order;
            one.partition = partition;
            one.num_micro_batches = m;
            one.schedule = schedule;
            best = std::min(best, simulated_iteration_ns(one, {.global_batch_size = 6}, profile, cluster));
          }
        }
      }
    } while (std::next_permutation(order.begin(), order.end()));
    EXPECT_LE(std::get<AutoPlan>(made).lower_bound_ns, best) << round;
    worst = std::max(worst, static_cast<double>(phase.predicted.iteration_ns) / static_cast<double>(best));
    moved += !phase.layout.placement.empty() &&
             !std::is_sorted(phase.layout.placement.begin(), phase.layout.placement.end());
  }
  EXPECT_DOUBLE_EQ(worst, 1);
  EXPECT_GT(moved, 3);
}

TEST(AutoPlan, OneDeviceReachesItsBound) {
  // One layer's times: forward 1, backward 110, nothing else. 4 samples x 4 layers; the first layer has no input
  // gradient.
  const Profile profile = test::synthetic_profile(1, {{}});
  const auto made = make_auto_plan({profile, test::free_cluster(1), test::options_for(4)});
  const AutoPlan& plan = std::get<AutoPlan>(made);
  EXPECT_EQ(plan.plan.method, PlanMethod::data_parallel);
  EXPECT_EQ(plan.plan.phases.front().predicted.iteration_ns, 4 * (3 * 111 + 101));
  EXPECT_LE(plan.lower_bound_ns, 4 * (3 * 111 + 101));
  EXPECT_GE(plan.lower_bound_ns, 4 * (3 * 111 + 101) - 2 * 4 * 4 - 1);
}

TEST(AutoPlan, RecomputesWhereNothingElseFitsAndSaysWhatDoesNotFit) {
  // Every layer keeps 1000 bytes per sample and outputs 10. Weights, gradients and moments are 16 bytes per parameter.
  const Profile profile = test::synthetic_profile(
      2, {{.output_activation_bytes = 10, .saved_activation_bytes = 1000, .parameter_count = 10}});
  PlanOptions options = test::options_for(64);
  options.pipeline_parallel_size = 1;
  const auto made =
      make_auto_plan({profile, test::free_cluster(1, 6 * 160 + 4500), options});  // one sample keeps 6000 bytes
  ASSERT_TRUE(std::holds_alternative<AutoPlan>(made));
  EXPECT_TRUE(std::get<AutoPlan>(made).plan.phases.front().recompute.has_value());
  const auto none = make_auto_plan({profile, test::free_cluster(1, 100), options});
  ASSERT_TRUE(std::holds_alternative<Infeasible>(none));
  EXPECT_THAT(std::get<Infeasible>(none).reason, HasSubstr("p = 1: stage 0 needs"));
  options.pipeline_parallel_size = 3;
  EXPECT_THAT(std::get<Infeasible>(make_auto_plan({profile, test::free_cluster(4), options})).reason,
              HasSubstr("no layout of 4 devices"));
}

// By hand: 5 micro-batches on each of 12 / p replicas take 60 / p samples, and there are 12; with 9 micro-batches, 16
// replicas leave one rank to each pipeline.
TEST(AutoPlan, NamesTheLayoutThatIsNearestToFittingFirst) {
  const Profile profile = test::synthetic_profile(9, {{}});
  PlanOptions options = test::options_for(12);
  options.num_micro_batches = 5;
  const auto made = std::get<AutoPlan>(make_auto_plan({profile, test::free_cluster(12), options}));
  const auto starts = [](const std::string& text) { return testing::StartsWith(text); };
  EXPECT_THAT(made.unfit_layouts,
              testing::ElementsAre(starts("p = 4: 12 samples are too few for 5 micro-batches on each of 3 replicas"),
                                   starts("p = 3: 12 samples are too few"), starts("p = 2: 12 samples are too few"),
                                   starts("p = 1: 12 samples are too few")));
  options = test::options_for(128);
  options.num_micro_batches = 9;
  options.data_parallel_size = 16;
  const auto reason = [&] {
    return std::get<Infeasible>(make_auto_plan({profile, test::free_cluster(16), options})).reason;
  };
  EXPECT_EQ(reason(),
            "p = 1: 128 samples are too few for 9 micro-batches on each of 16 replicas (that takes a global batch of "
            "144, or fewer replicas: fewer ranks or a longer pipeline)");
  options.data_parallel_size = 17;
  EXPECT_EQ(reason(),
            "no layout of 16 devices has what is asked for (tensor-parallel size 1, 17 replicas): the "
            "cluster has 16 ranks");
}

// By hand: 12 layers are enough for 4 stages on each of up to 3 ranks.
TEST(AutoPlan, ListsOtherReasonsInTheOrderOfTheLengths) {
  PlanOptions options = test::options_for(12);
  options.virtual_stages = 4;
  const auto made = make_auto_plan({test::synthetic_profile(5, {{}}), test::free_cluster(12), options});
  EXPECT_THAT(
      std::get<AutoPlan>(made).unfit_layouts,
      testing::ElementsAre(HasSubstr("p = 4: the model has 12 layers"), HasSubstr("p = 6: the model has 12 layers"),
                           HasSubstr("p = 12: the model has 12 layers")));
}

}  // namespace
}  // namespace frostpipe
