#include "plan/messages.h"

#include <algorithm>
#include <map>
#include <set>

#include "tests/plan/examples.h"
#include "tests/support/random_schedules.h"

namespace frostpipe {
namespace {

using testing::HasSubstr;

constexpr int kIterations = 3;  // for schedules whose iterations overlap

/// Simulates blocking sends independently. Returns whether all ranks finish.
bool comes_to_its_end(const Schedule& lowered, const std::vector<ReceiveQueue>& queues) {
  std::set<Action> done, reached;
  std::map<Action, Action> posted_after;
  for (const ReceiveQueue& queue : queues) {
    for (std::size_t i = 0; i < queue.receives.size(); ++i) {
      if (static_cast<int>(i) < queue.ahead)
        reached.insert(queue.receives[i]);
      else
        posted_after[queue.receives[i]] = queue.receives[i - queue.ahead];
    }
  }
  const auto is_posted = [&](const Action& receive) {
    const auto after = posted_after.find(receive);
    return reached.contains(receive) || (after != posted_after.end() && done.contains(after->second));
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (const auto& list : lowered.body) {
      const auto next = std::find_if(list.begin(), list.end(), [&](const Action& a) { return !done.contains(a); });
      if (next == list.end()) continue;
      moved = reached.insert(*next).second || moved;
      if (is_send(next->kind) && !is_posted(matching(*next))) continue;
      if (is_receive(next->kind) && !done.contains(matching(*next))) continue;
      moved = done.insert(*next).second || moved;
    }
  }
  return std::all_of(lowered.body.begin(), lowered.body.end(),
                     [&](const auto& list) { return list.empty() || done.contains(list.back()); });
}

int longest_ahead(const std::vector<ReceiveQueue>& queues) {
  int longest = 0;
  for (const ReceiveQueue& queue : queues) longest = std::max(longest, queue.ahead);
  return longest;
}

int longest_ahead(std::string_view name, const ScheduleShape& shape) {
  const Schedule made = build_schedule(name, shape);
  return longest_ahead(receive_queues(lower(made.epilogue.empty() ? made : unrolled(made, kIterations))));
}

struct Limits {
  int pipeline_ranks = 8;
  int micro_batches = 17;
};

/// Visits every builder with every shape that it allows: several stages per rank, token slices, frozen stages.
template <class Visitor>
void for_each_shape(const Limits& limits, const Visitor& visit) {
  const auto try_shape = [&](const std::string& name, ScheduleShape shape) {
    const std::optional<Schedule> whole = [&]() -> std::optional<Schedule> {
      try {
        return build_schedule(name, shape);
      } catch (const InvalidInput&) {
        return std::nullopt;  // too few micro-batches for this schedule
      }
    }();
    if (!whole) return;
    const int stages = num_stages(*whole);
    for (const int first : std::set<int>{0, stages / 2, stages - 1}) {
      shape.first_trainable_stage = first;
      const Schedule made = build_schedule(name, shape);
      visit(made.epilogue.empty() ? lower(made) : lower(unrolled(made, kIterations)));
    }
  };
  for (const std::string& name : schedule_names()) {
    const int max_stages = name.starts_with("Interleaved") || name == "LoopedBFS" ? 4 : 1;
    const int max_slices = name == "TeraPipe" || name == "Seq1F1B" ? 4 : 1;
    for (int p = 2; p <= limits.pipeline_ranks; ++p)
      for (int m = 1; m <= limits.micro_batches; ++m)
        for (int v = 1; v <= max_stages; ++v)
          for (int slices = 1; slices <= max_slices; ++slices)
            try_shape(name, {.pipeline_parallel_size = p,
                             .num_micro_batches = m,
                             .virtual_stages = max_stages > 1 ? v : 0,
                             .token_slices = max_slices > 1 ? slices : 0});
  }
}

std::string describe(const Schedule& schedule) {
  return schedule.name + " p " + std::to_string(num_pipeline_ranks(schedule)) + " stages " +
         std::to_string(num_stages(schedule)) + " m " + std::to_string(schedule.num_micro_batches) + " first " +
         std::to_string(schedule.first_trainable_stage);
}

TEST(ReceiveQueues, NoBuilderCanDeadlockWithThem) {
  int shapes = 0;
  std::map<std::string, int> longest;
  for_each_shape({}, [&](const Schedule& lowered) {
    const std::vector<ReceiveQueue> queues = receive_queues(lowered);
    ASSERT_EQ(blocking_cycle(lowered, queues), std::nullopt) << describe(lowered);
    longest[lowered.name] = std::max(longest[lowered.name], longest_ahead(queues));
    ++shapes;
  });
  EXPECT_GT(shapes, 5000);
  EXPECT_EQ(longest, (std::map<std::string, int>{{"1F1B", 2},
                                                 {"DualPipeV", 2},
                                                 {"GPipe", 2},
                                                 {"Interleaved1F1B", 3},
                                                 {"InterleavedZeroBubble", 7},
                                                 {"LoopedBFS", 8},
                                                 {"PipeDream-2BW", 2},
                                                 {"Seq1F1B", 2},
                                                 {"TeraPipe", 2},
                                                 {"ZB-H1", 2},
                                                 {"ZB-H2", 2},
                                                 {"ZBVZeroBubble", 2}}));
}

TEST(ReceiveQueues, LookAheadsAreThoseFoundByAnotherProgram) {
  for (const auto* name : {"1F1B", "ZBVZeroBubble", "PipeDream-2BW"})
    EXPECT_EQ(longest_ahead(name, {.pipeline_parallel_size = 8, .num_micro_batches = 32}), 2) << name;
  EXPECT_EQ(longest_ahead("DualPipeV", {.pipeline_parallel_size = 8, .num_micro_batches = 32}), 2);
  EXPECT_EQ(
      longest_ahead("Interleaved1F1B", {.pipeline_parallel_size = 8, .num_micro_batches = 32, .virtual_stages = 4}), 2);
  EXPECT_EQ(longest_ahead("InterleavedZeroBubble",
                          {.pipeline_parallel_size = 8, .num_micro_batches = 32, .virtual_stages = 4}),
            5);
  EXPECT_EQ(longest_ahead("LoopedBFS", {.pipeline_parallel_size = 2, .num_micro_batches = 32, .virtual_stages = 2}),
            16);
  EXPECT_EQ(longest_ahead("LoopedBFS", {.pipeline_parallel_size = 4, .num_micro_batches = 32, .virtual_stages = 2}), 8);
}

TEST(ReceiveQueues, TwoReceivesAheadAreTooFewWhereInterleavedRoundsAreLong) {
  const Schedule lowered =
      lower(interleaved_one_f_one_b({.pipeline_parallel_size = 5, .num_micro_batches = 14, .virtual_stages = 2}));
  std::vector<ReceiveQueue> queues = receive_queues(lowered);
  EXPECT_EQ(longest_ahead(queues), 3);
  EXPECT_TRUE(comes_to_its_end(lowered, queues));
  for (ReceiveQueue& queue : queues) queue.ahead = 2;
  EXPECT_FALSE(comes_to_its_end(lowered, queues));
}

TEST(ReceiveQueues, HoldTheReceivesOfOneKindFromOneRankInOrder) {
  const Schedule lowered = lower(one_f_one_b({.pipeline_parallel_size = 2, .num_micro_batches = 3}));
  const auto action = [](std::string_view text) { return parse_action(text, "test"); };
  EXPECT_EQ(receive_queues(lowered, 1),
            (std::vector<ReceiveQueue>{
                {0, 1, ActionKind::recv_backward, {action("0RECV_B0"), action("0RECV_B1"), action("0RECV_B2")}, 1},
                {1, 0, ActionKind::recv_forward, {action("1RECV_F0"), action("1RECV_F1"), action("1RECV_F2")}, 1}}));
  const std::vector<ReceiveQueue> all = receive_queues(lowered, 8);
  EXPECT_EQ(all[0].ahead, 3);  // there are no more
}

TEST(ReceiveQueues, AnyOrderThatCanRunRunsWithThem) {
  std::mt19937 random(23);
  for (int i = 0; i < 400; ++i) {
    const Schedule lowered = i % 4 == 0 ? test::random_schedule(random) : test::random_order(random);
    const std::vector<ReceiveQueue> queues = receive_queues(lowered, static_cast<int>(random() % 3));
    ASSERT_TRUE(comes_to_its_end(lowered, queues)) << to_text(lowered);
  }
}

TEST(BlockingCycle, IsThereWhereRanksDoNotComeToTheirEnd) {
  std::mt19937 random(24);
  int deadlocks = 0;
  for (int i = 0; i < 400; ++i) {
    const Schedule lowered = i % 4 == 0 ? test::random_schedule(random) : test::random_order(random);
    std::vector<ReceiveQueue> queues = receive_queues(lowered, 0);
    for (ReceiveQueue& queue : queues) queue.ahead = static_cast<int>(random() % 4);
    if (!queues.empty() && random() % 2 == 0) queues.pop_back();  // its receives are posted late
    const auto cycle = blocking_cycle(lowered, queues);
    ASSERT_EQ(cycle.has_value(), !comes_to_its_end(lowered, queues)) << to_text(lowered);
    deadlocks += cycle ? 1 : 0;
    ASSERT_EQ(blocking_cycle(lowered, {}).has_value(), !comes_to_its_end(lowered, {})) << to_text(lowered);
  }
  EXPECT_GT(deadlocks, 40);
  EXPECT_LT(deadlocks, 360);
}

TEST(BlockingCycle, NamesTheActionsOfAFile) {
  const Schedule file = schedule_from_csv(
      "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
      "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n",
      "hand.csv");
  EXPECT_NO_THROW(validate(file));
  EXPECT_EQ(blocking_cycle(file, {}),
            "0SEND_F1 (pipeline rank 0, after compute action 2) waits for 1RECV_F1 (pipeline rank 1, before compute "
            "action 3), which stands after 1SEND_B0 (pipeline rank 1, after compute action 2), which waits for "
            "0RECV_B0 (pipeline rank 0, before compute action 3), which stands after 0SEND_F1 (pipeline rank 0, after "
            "compute action 2)");
  EXPECT_EQ(blocking_cycle(file, receive_queues(file, 1)), std::nullopt);
}

TEST(BlockingCycle, SaysAfterWhatAReceiveIsPosted) {
  // Rank 1 posts one receive at a time, and sends twice before it reaches the first.
  const Schedule file = schedule_from_csv(
      "0F0,0SEND_F0,0F1,0SEND_F1,0F2,0SEND_F2,0RECV_B0,0B0,0RECV_B1,0B1,0RECV_B2,0B2\n"
      "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1,1RECV_F2,1F2,1B2,1SEND_B2\n",
      "hand.csv");
  std::vector<ReceiveQueue> queues = receive_queues(file, 1);
  for (ReceiveQueue& queue : queues) queue.ahead = queue.kind == ActionKind::recv_forward ? 1 : 0;
  EXPECT_EQ(blocking_cycle(file, queues),
            "0SEND_F2 (pipeline rank 0, after compute action 3) waits for 1RECV_F2 (pipeline rank 1, before compute "
            "action 5), which is posted after 1RECV_F1 (pipeline rank 1, before compute action 3), which stands after "
            "1SEND_B0 (pipeline rank 1, after compute action 2), which waits for 0RECV_B0 (pipeline rank 0, before "
            "compute action 4), which stands after 0SEND_F2 (pipeline rank 0, after compute action 3)");
}

TEST(BlockingCycle, KnowsThatAllRanksSynchronizeAtTheStep) {
  // Rank 0 sends after its step. The step waits for rank 1's reduction, which comes after what rank 0 sends.
  Schedule lowered = lower(gpipe({.pipeline_parallel_size = 2, .num_micro_batches = 1}));
  auto& list = lowered.body[0];
  std::stable_partition(list.begin(), list.end(), [](const Action& a) {
    return a.kind == ActionKind::forward || a.kind == ActionKind::optimizer_step;
  });
  const auto cycle = blocking_cycle(lowered, {});
  ASSERT_TRUE(cycle.has_value());
  EXPECT_THAT(*cycle, HasSubstr("waits for 0REDUCE_GRAD (pipeline rank 0"));
}

/// Returns what a rank receives from another one, in the order of `list`: RECVs of the receiver, or those that match
/// the sender's SENDs.
std::vector<Action> messages_between(const Schedule& schedule, const std::vector<Action>& list, bool sent, int other) {
  std::vector<Action> messages;
  for (const Action& action : list) {
    if (!(sent ? is_send(action.kind) : is_receive(action.kind))) continue;
    if (schedule.pipeline_rank_of_stage[matching(action).stage] != other) continue;
    messages.push_back(sent ? matching(action) : action);
  }
  return messages;
}

TEST(ReceivesInSendOrder, MatchAndCannotDeadlock) {
  const auto is_no_receive = [](const Action& action) { return !is_receive(action.kind); };
  const auto require = [&](const Schedule& lowered) {
    const Schedule placed = with_receives_in_send_order(lowered);
    ASSERT_NO_THROW(validate(placed)) << describe(lowered);
    ASSERT_EQ(blocking_cycle(placed, {}), std::nullopt) << describe(lowered);
    for (int rank = 0; rank < num_pipeline_ranks(lowered); ++rank) {
      std::vector<Action> before, after;
      std::copy_if(lowered.body[rank].begin(), lowered.body[rank].end(), std::back_inserter(before), is_no_receive);
      std::copy_if(placed.body[rank].begin(), placed.body[rank].end(), std::back_inserter(after), is_no_receive);
      ASSERT_EQ(before, after) << describe(lowered);
      for (int from = 0; from < num_pipeline_ranks(lowered); ++from)
        ASSERT_EQ(messages_between(placed, placed.body[from], true, rank),
                  messages_between(placed, placed.body[rank], false, from))
            << describe(lowered);
    }
  };
  for_each_shape({.pipeline_ranks = 4, .micro_batches = 6}, require);
  std::mt19937 random(25);
  for (int i = 0; i < 100; ++i) require(test::random_order(random));
}

TEST(ReceivedOutOfOrder, IsNoBuildersButMayBeAList) {
  for_each_shape({.pipeline_ranks = 4, .micro_batches = 9}, [](const Schedule& lowered) {
    EXPECT_EQ(received_out_of_order(lowered), std::nullopt) << describe(lowered);
  });
  const Schedule crossed = lower(schedule_from_csv("0F0,0F1,0B1,0B0\n1F1,1B1,1F0,1B0\n", "crossed"));
  EXPECT_EQ(received_out_of_order(crossed), parse_action("1RECV_F1", "a test"));
}

TEST(ReceivesInSendOrder, StandWherePyTorchPutsThem) {
  // The result of _add_send_recv of torch.distributed.pipelining 2.11 for the same compute actions.
  const Schedule lowered = lower(zero_bubble_v({.pipeline_parallel_size = 2, .num_micro_batches = 3}));
  EXPECT_EQ(to_csv(with_receives_in_send_order(lowered)),
            "0F0,0SEND_F0,0F1,0SEND_F1,3RECV_F0,0F2,0SEND_F2,3F0,3RECV_F1,3I0,3SEND_B0,3W0,3F1,3I1,3SEND_B1,0RECV_B0,"
            "3W1,0I0,3RECV_F2,0W0,3F2,3I2,3SEND_B2,0RECV_B1,3W2,0I1,0RECV_B2,0W1,0I2,0W2,0REDUCE_GRAD,3REDUCE_GRAD\n"
            "1RECV_F0,1F0,1RECV_F1,2F0,2SEND_F0,1RECV_F2,1F1,2F1,2SEND_F1,2RECV_B0,2I0,2W0,1F2,2RECV_B1,1I0,1SEND_B0,"
            "1W0,2F2,2SEND_F2,2I1,2W1,2RECV_B2,1I1,1SEND_B1,2I2,1I2,1SEND_B2,1W1,2W2,1W2,1REDUCE_GRAD,2REDUCE_GRAD\n");
}

}  // namespace
}  // namespace frostpipe
