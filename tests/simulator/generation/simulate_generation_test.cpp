// Oracles: closed forms of one machine, of a tandem and of a loop, and timelines by hand.
#include "simulator/generation/simulate_generation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace frostpipe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Nanoseconds kMillisecond = 1'000'000;
constexpr double kFast = 1e15;

/// A prompt of 10 tokens or fewer takes 5 ms a layer, any batch of decodes 2 ms.
GenerationMachine machine(int first_layer, int end_layer) {
  return {.first_layer = first_layer,
          .end_layer = end_layer,
          .prompt_ns = {{{10, 5 * kMillisecond}}},
          .decode_ns = {{{100, 2 * kMillisecond}}},
          .tokens_per_second = 100,
          .cache_tokens = 1'000'000,
          .largest_prompt_batch = 100,
          .largest_decode_batch = 100,
          .card_bytes_per_second = kFast};
}

GenerationCluster cluster_of(int num_layers, std::vector<GenerationMachine> machines, Nanoseconds latency_ns = 0) {
  GenerationCluster cluster{.num_layers = num_layers, .machines = std::move(machines), .activation_bytes = 1000};
  const std::size_t count = cluster.machines.size() + 1;
  cluster.links.assign(count, std::vector(count, GenerationLink{.latency_ns = latency_ns, .bytes_per_second = kFast}));
  return cluster;
}

GenerationOrder order_of(LoadKind kind, int in_flight, std::vector<GenerationRequest> requests) {
  return {.load = {.kind = kind, .in_flight = in_flight, .gap_ns = 0, .requests = std::move(requests)},
          .end_ns = 10'000 * kMillisecond};
}

std::vector<GenerationRequest> endless(int count) {
  return std::vector<GenerationRequest>(count, {.prompt_tokens = 10, .generated_tokens = 1'000'000});
}

double decodes_per_second(const GenerationRun& run, const GenerationOrder& order) {
  return 1e9 * static_cast<double>(run.decode_ns.size()) / static_cast<double>(order.end_ns - order.begin_ns);
}

TEST(SimulateGeneration, OneMachineGivesItsBatchesInTheTimeOfItsLayers) {
  // 3 layers of 2 ms. The first request sets out alone, so that it and the other seven take turns: batches of four in
  // the mean.
  GenerationOrder order = order_of(LoadKind::constant, 8, endless(8));
  order.begin_ns = 1000 * kMillisecond;
  const GenerationRun run = simulate_generation(cluster_of(3, {machine(0, 3)}), order);
  EXPECT_NEAR(decodes_per_second(run, order), 4 / 0.006, 1);
  EXPECT_DOUBLE_EQ(run.mean_in_flight, 8);
}

TEST(SimulateGeneration, ATandemGivesWhatItsSlowerMachineCan) {
  // 2 and 4 ms, one request to a batch: 250 a second with enough of them, and 1 / 6 ms with one alone.
  const auto tandem = [] {
    GenerationMachine first = machine(0, 1), second = machine(1, 3);
    first.largest_decode_batch = second.largest_decode_batch = 1;
    return cluster_of(3, {first, second});
  }();
  GenerationOrder order = order_of(LoadKind::constant, 5, endless(5));
  order.begin_ns = 1000 * kMillisecond;
  EXPECT_NEAR(decodes_per_second(simulate_generation(tandem, order), order), 250, 1);
  order.load.in_flight = 1;
  EXPECT_NEAR(decodes_per_second(simulate_generation(tandem, order), order), 1000.0 / 6, 1);
}

TEST(SimulateGeneration, WhatTheCacheHoldsIsInFlightOverTheTimeAround) {
  // Room for 4 of 110 tokens each, a way around of 6 ms and three links of 10 ms: Little's law.
  GenerationMachine first = machine(0, 1), second = machine(1, 3);
  first.cache_tokens = second.cache_tokens = 4 * 110 + 50;
  GenerationOrder order = order_of(LoadKind::constant, 50, endless(50));
  order.load.expected_generated_tokens = 100;
  order.begin_ns = 1000 * kMillisecond;
  const GenerationRun run = simulate_generation(cluster_of(3, {first, second}, 10 * kMillisecond), order);
  EXPECT_DOUBLE_EQ(run.mean_in_flight, 4);
  EXPECT_NEAR(decodes_per_second(run, order), 4 / 0.036, 1);
}

TEST(SimulateGeneration, FillsUpToThePartOfTheFullestLayer) {
  GenerationOrder order = order_of(LoadKind::filling, 1, endless(100));
  order.load.expected_generated_tokens = 90;
  order.load.most_of_layer = 0.8;
  order.begin_ns = 5000 * kMillisecond;
  GenerationMachine one = machine(0, 1);
  one.cache_tokens = 1000;  // ten requests of 100 tokens: the ninth comes at eight tenths, the tenth not at nine
  const GenerationRun run = simulate_generation(cluster_of(1, {one}), order);
  EXPECT_DOUBLE_EQ(run.mean_in_flight, 9);
}

TEST(SimulateGeneration, HasTheTimesOfATraceByHand) {
  // A's prompt takes the two layers to 10 ms. B came at 1 ms, takes them to 20, and A's decode comes after it, to 24.
  GenerationOrder order = order_of(LoadKind::arriving, 0,
                                   {{.arrival_ns = 0, .prompt_tokens = 10, .generated_tokens = 2},
                                    {.arrival_ns = 1 * kMillisecond, .prompt_tokens = 10, .generated_tokens = 1}});
  const GenerationRun run = simulate_generation(cluster_of(2, {machine(0, 2)}), order);
  EXPECT_THAT(run.prompt_ns, ElementsAre(10 * kMillisecond, 19 * kMillisecond));
  EXPECT_THAT(run.decode_ns, ElementsAre(14 * kMillisecond));
}

TEST(SimulateGeneration, MessagesTakeTheirLinkInTurn) {
  // Activations of 10 x 1000 bytes at 1 MB/s: 10 ms; two prompts come out of the first machine together.
  GenerationCluster cluster = cluster_of(2, {machine(0, 1), machine(1, 2)});
  cluster.machines[0].prompt_ns = cluster.machines[1].prompt_ns = {{{20, 5 * kMillisecond}}};
  cluster.links[0][1].bytes_per_second = 1e6;
  GenerationOrder order = order_of(LoadKind::constant, 3, std::vector<GenerationRequest>(3, {.prompt_tokens = 10}));
  // The first computes alone to 5 ms and sends to 15; the others together to 10 ms, and send to 25 and 35.
  const GenerationRun run = simulate_generation(cluster, order);
  EXPECT_THAT(run.prompt_ns, ElementsAre(20 * kMillisecond, 30 * kMillisecond, 40 * kMillisecond));
  EXPECT_THAT(run.decode_ns, IsEmpty());
}

/// Two prompts of ten tokens, of which the machines that follow get 10 x 1000 bytes: 10 ms at 1 MB/s.
GenerationRun run_of_two_prompts(const GenerationCluster& cluster) {
  GenerationOrder order = order_of(LoadKind::constant, 2, std::vector<GenerationRequest>(2, {.prompt_tokens = 10}));
  order.path_choice = PathChoice::swarm;  // one after the other
  return simulate_generation(cluster, order);
}

TEST(SimulateGeneration, MessagesToAMachineTakeItsCardInTurn) {
  // Both are computed to 5 ms, come to 15 and 25 ms, and go back as 4 bytes at 1 MB/s.
  GenerationCluster cluster = cluster_of(2, {machine(0, 1), machine(0, 1), machine(1, 2)});
  cluster.machines[2].card_bytes_per_second = 1e6;
  EXPECT_THAT(run_of_two_prompts(cluster).prompt_ns, ElementsAre(20 * kMillisecond + 4'000, 30 * kMillisecond + 4'000));
}

TEST(SimulateGeneration, MessagesFromAMachineTakeItsCardInTurn) {
  // 40 bytes come to it at 1 MB/s. It computes one prompt after the other, and sends the second when the first is away.
  GenerationCluster cluster = cluster_of(2, {machine(0, 1), machine(1, 2), machine(1, 2)});
  cluster.machines[0].card_bytes_per_second = 1e6;
  EXPECT_THAT(run_of_two_prompts(cluster).prompt_ns,
              ElementsAre(20 * kMillisecond + 40'000, 30 * kMillisecond + 40'000));
}

TEST(SimulateGeneration, RequestsJoinInTheMiddleOfAMachine) {
  // The first machine holds layers 0 and 1, the second 1 and 2: of that a request takes layer 2 alone.
  GenerationCluster cluster = cluster_of(3, {machine(0, 2), machine(1, 3)});
  GenerationOrder order = order_of(LoadKind::constant, 1, {{.prompt_tokens = 10, .generated_tokens = 3}});
  const GenerationRun run = simulate_generation(cluster, order);
  EXPECT_THAT(run.prompt_ns, ElementsAre(15 * kMillisecond));
  EXPECT_THAT(run.decode_ns, ElementsAre(6 * kMillisecond, 6 * kMillisecond));
}

TEST(SimulateGeneration, CopiesWhatComesInOnceAMachine) {
  // 10 tokens of 1000 bytes at 1 us a byte: 10 ms at each of two machines for a prompt, 1 ms for a decode.
  GenerationCluster cluster = cluster_of(4, {machine(0, 2), machine(2, 4)});
  for (GenerationMachine& one : cluster.machines) one.copy_seconds_per_byte = 1e-6;
  const GenerationOrder order = order_of(LoadKind::constant, 1, {{.prompt_tokens = 10, .generated_tokens = 2}});
  const GenerationRun run = simulate_generation(cluster, order);
  EXPECT_THAT(run.prompt_ns, ElementsAre(2 * (10 + 2 * 5) * kMillisecond));
  EXPECT_THAT(run.decode_ns, ElementsAre(2 * (1 + 2 * 2) * kMillisecond));
}

TEST(SimulateGeneration, DropsWhatFindsNoRoomWhereItFills) {
  // Room for 100 tokens: 60 and 40 fit, 50 between them do not. At a constant number the 50 would wait, and the 40 too.
  GenerationMachine one = machine(0, 1);
  one.cache_tokens = 100;
  one.prompt_ns = {{{100, 5 * kMillisecond}}};
  const auto prompts_of = [&](LoadKind kind) {
    GenerationOrder order = order_of(kind, 3,
                                     {{.prompt_tokens = 60, .generated_tokens = 1'000'000},
                                      {.prompt_tokens = 50, .generated_tokens = 1'000'000},
                                      {.prompt_tokens = 40, .generated_tokens = 1'000'000}});
    return simulate_generation(cluster_of(1, {one}), order).prompt_ns.size();
  };
  EXPECT_EQ(prompts_of(LoadKind::filling), 2U);
  EXPECT_EQ(prompts_of(LoadKind::constant), 1U);
}

TEST(Successors, BeginWithTheNextLayerWhereNoMachineJoinsInItsMiddle) {
  GenerationCluster cluster = cluster_of(3, {machine(0, 2), machine(1, 3), machine(2, 3)});
  EXPECT_THAT(successors(cluster)[0], ElementsAre(1, 2));
  cluster.joins_in_middles = false;
  EXPECT_THAT(successors(cluster)[0], ElementsAre(2));
  EXPECT_THAT(successors(cluster)[3], ElementsAre(0));
}

TEST(HasWay, IsWhereMachinesHoldAllLayers) {
  EXPECT_TRUE(has_way(cluster_of(3, {machine(0, 1), machine(0, 2), machine(1, 3)})));
  EXPECT_FALSE(has_way(cluster_of(3, {machine(0, 2), machine(0, 1)})));
  EXPECT_FALSE(has_way(cluster_of(3, {machine(1, 3)})));
  GenerationCluster overlapping = cluster_of(3, {machine(0, 2), machine(1, 3)});
  EXPECT_TRUE(has_way(overlapping));
  overlapping.joins_in_middles = false;
  EXPECT_FALSE(has_way(overlapping));
}

TEST(RequestPaths, CountTheTokensThatFollow) {
  // Two machines alike: after 35 tokens on the first one, four prompts of ten go to the second.
  const GenerationCluster cluster = cluster_of(1, {machine(0, 1), machine(0, 1)});
  RequestPaths paths(cluster, PathChoice::flow, 1);
  const auto chosen = [&] { return paths.choose(10, [](int) { return true; })->front().machine; };
  const int first = chosen();
  ASSERT_EQ(first, 0);
  for (int i = 0; i < 25; ++i) paths.add_token({{.machine = first}});
  for (int i = 0; i < 4; ++i) EXPECT_EQ(chosen(), 1);
  EXPECT_EQ(chosen(), 0);
}

TEST(RequestPaths, AreInProportionToTheFlow) {
  // Two machines with all layers, the second with twice the throughput.
  GenerationCluster cluster = cluster_of(1, {machine(0, 1), machine(0, 1)});
  cluster.machines[1].tokens_per_second = 200;
  RequestPaths paths(cluster, PathChoice::flow, 1);
  int first = 0;
  for (int i = 0; i < 300; ++i) first += paths.choose(10, [](int) { return true; })->front().machine == 0 ? 1 : 0;
  EXPECT_EQ(first, 100);
}

TEST(RequestPaths, LeaveOutWhatHasLessThanATwentiethOfTheFlow) {
  GenerationCluster cluster = cluster_of(1, {machine(0, 1), machine(0, 1)});
  const auto uses_second = [&] {
    RequestPaths paths(cluster, PathChoice::flow, 1);
    bool uses = false;
    for (int i = 0; i < 100; ++i) uses |= paths.choose(10, [](int) { return true; })->front().machine == 1;
    return uses;
  };
  cluster.machines[1].tokens_per_second = 5;  // beside 100
  EXPECT_FALSE(uses_second());
  cluster.machines[1].tokens_per_second = 6;
  EXPECT_TRUE(uses_second());
}

TEST(RequestPaths, UseAllOfManyMachinesAlike) {
  const GenerationCluster cluster = cluster_of(1, std::vector(21, machine(0, 1)));
  RequestPaths paths(cluster, PathChoice::flow, 1);
  for (int i = 0; i < 21; ++i) EXPECT_EQ(paths.choose(10, [](int) { return true; })->front().machine, i);
}

TEST(RequestPaths, AtRandomAreThoseOfTheSeed) {
  const GenerationCluster cluster = cluster_of(1, std::vector(10, machine(0, 1)));
  const auto chosen = [&](std::uint64_t seed) {
    RequestPaths paths(cluster, PathChoice::random, seed);
    std::vector<int> machines(50);
    for (int& one : machines) one = paths.choose(10, [](int) { return true; })->front().machine;
    return machines;
  };
  EXPECT_EQ(chosen(1), chosen(1));
  EXPECT_NE(chosen(1), chosen(2));
}

TEST(RequestPaths, AreNoneWhereNoMachineHasRoom) {
  const GenerationCluster cluster = cluster_of(2, {machine(0, 1), machine(1, 2)});
  RequestPaths paths(cluster, PathChoice::swarm, 1);
  EXPECT_EQ(paths.choose(10, [](int machine) { return machine == 0; }), std::nullopt);
}

TEST(RequestPaths, HaveNoLoadOfAWayThatThereIsNot) {
  // Without room on the last machine nothing is chosen, and the next request finds both first ones as they were.
  const GenerationCluster cluster = cluster_of(2, {machine(0, 1), machine(0, 1), machine(1, 2)});
  RequestPaths paths(cluster, PathChoice::swarm, 1);
  EXPECT_EQ(paths.choose(10, [](int machine) { return machine < 2; }), std::nullopt);
  EXPECT_EQ(paths.choose(10, [](int) { return true; })->front().machine, 0);
}

TEST(RequestPaths, OfSwarmFavourTheQuickMachine) {
  const GenerationCluster cluster = cluster_of(1, {machine(0, 1), machine(0, 1)});
  RequestPaths paths(cluster, PathChoice::swarm, 1);
  for (int i = 0; i < 200; ++i) {
    paths.observe(2, 0, 10 * kMillisecond);
    paths.observe(2, 1, 30 * kMillisecond);
  }
  int first = 0;
  for (int i = 0; i < 400; ++i) first += paths.choose(10, [](int) { return true; })->front().machine == 0 ? 1 : 0;
  EXPECT_NEAR(first, 300, 2);
}

}  // namespace
}  // namespace frostpipe
