// Oracle: the ranks of all processes, by hand.
#include "executor/elastic/rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace frostpipe {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::Pair;

/// A process without a channel: rank and logical rank before the loss, -1 for a spare.
RankProcess process(int rank, int logical_rank, bool running = true) {
  return {.pid = 0, .channel = ControlChannel(-1), .rank = rank, .logical_rank = logical_rank, .running = running};
}

std::vector<RankProcess> processes(std::vector<std::pair<int, int>> running, std::vector<std::pair<int, int>> ended) {
  std::vector<RankProcess> all;
  for (const auto& [rank, logical_rank] : running) all.push_back(process(rank, logical_rank));
  for (const auto& [rank, logical_rank] : ended) all.push_back(process(rank, logical_rank, /*running=*/false));
  return all;
}

std::vector<std::pair<int, int>> ranks_and_logical_ranks(const std::vector<RankProcess>& all) {
  std::vector<std::pair<int, int>> pairs;
  for (const RankProcess& one : all) pairs.emplace_back(one.rank, one.logical_rank);
  return pairs;
}

TEST(AssignRanks, ASpareTakesTheFreeLogicalRank) {
  std::vector<RankProcess> all = processes({{0, 0}, {2, 2}, {-1, -1}, {-1, -1}}, {{1, 1}});
  EXPECT_EQ(assign_ranks(all), "a spare takes the place");
  EXPECT_THAT(ranks_and_logical_ranks(all), ElementsAre(Pair(0, 0), Pair(2, 2), Pair(1, 1), Pair(-1, -1)));
}

TEST(AssignRanks, SparesTakeTheLowestLogicalRanksAndRanksFollowTheLogicalRanks) {
  std::vector<RankProcess> all = processes({{1, 1}, {-1, -1}}, {{0, 0}, {2, 2}});
  EXPECT_EQ(assign_ranks(all), "a spare takes the place, 2 ranks go on");
  EXPECT_THAT(ranks_and_logical_ranks(all), ElementsAre(Pair(1, 1), Pair(0, 0)));
  all = processes({{1, 1}, {-1, -1}, {-1, -1}}, {{0, 0}, {2, 2}});
  EXPECT_EQ(assign_ranks(all), "2 spares take the places");
  EXPECT_THAT(ranks_and_logical_ranks(all), ElementsAre(Pair(1, 1), Pair(0, 0), Pair(2, 2)));
}

TEST(AssignRanks, WithoutSparesTheOthersAreNumberedInTheOrderOfTheirLogicalRanks) {
  std::vector<RankProcess> all = processes({{3, 3}, {1, 1}}, {{0, 0}, {2, 2}});
  EXPECT_EQ(assign_ranks(all), "2 ranks go on");
  EXPECT_THAT(ranks_and_logical_ranks(all), ElementsAre(Pair(1, 3), Pair(0, 1)));
  all[1].running = false;
  EXPECT_EQ(assign_ranks(all), "1 rank goes on");
  EXPECT_THAT(ranks_and_logical_ranks(all), ElementsAre(Pair(0, 3)));
  all[0].running = false;
  EXPECT_EQ(assign_ranks(all), "");
}

TEST(AssignRanks, RanksStayTheSameIfNoneIsLost) {
  std::vector<RankProcess> all = processes({{0, 0}, {1, 2}, {-1, -1}}, {{-1, -1}});
  EXPECT_EQ(assign_ranks(all), "2 ranks go on");
  EXPECT_THAT(ranks_and_logical_ranks(all), ElementsAre(Pair(0, 0), Pair(1, 2), Pair(-1, -1)));
}

TEST(Announce, EachRankGetsItsPlaceAndASocketToEachOther) {
  std::vector<RankProcess> all = processes({{0, 0}, {1, 2}, {-1, -1}}, {});
  std::vector<ControlChannel> ends;
  for (RankProcess& one : all) {
    auto [ours, theirs] = ControlChannel::make_pair();
    one.channel = std::move(ours);
    ends.push_back(std::move(theirs));
  }
  announce(all, {.generation = 4, .self = {}, .logical_ranks = {}, .cause = "rank 1 was killed"});
  std::vector<Descriptor> sockets;
  for (int rank = 0; rank < 2; ++rank) {
    std::optional<ControlText> peer = ends[rank].receive(0ms);
    ASSERT_TRUE(peer);
    EXPECT_EQ(messages::parse_peer(peer->text), 1 - rank);
    ASSERT_TRUE(peer->descriptor.is_open());
    sockets.push_back(std::move(peer->descriptor));
    const std::optional<ControlText> place = ends[rank].receive(0ms);
    ASSERT_TRUE(place);
    const std::optional<RendezvousInfo> info = messages::parse_start_round(place->text);
    ASSERT_TRUE(info);
    EXPECT_EQ(info->generation, 4);
    EXPECT_EQ(info->self.rank, rank);
    EXPECT_EQ(info->self.world_size, 2);
    EXPECT_THAT(info->logical_ranks, ElementsAre(0, 2));
    EXPECT_EQ(info->cause, "rank 1 was killed");
  }
  EXPECT_FALSE(ends[2].receive(0ms)) << "a spare is told nothing";
  ASSERT_EQ(write(sockets[0].number(), "hello", 5), 5);
  std::array<char, 6> word{};
  ASSERT_EQ(read(sockets[1].number(), word.data(), word.size()), 5);
  EXPECT_EQ(std::string(word.data()), "hello");
}

}  // namespace
}  // namespace frostpipe
