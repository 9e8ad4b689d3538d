#include "plan/action.h"

#include <random>

#include "tests/plan/examples.h"

namespace frostpipe {
namespace {

using examples::message_of;

constexpr ActionKind kAllKinds[] = {
    ActionKind::forward,         ActionKind::backward,     ActionKind::input_gradient, ActionKind::weight_gradient,
    ActionKind::send_forward,    ActionKind::recv_forward, ActionKind::send_backward,  ActionKind::recv_backward,
    ActionKind::reduce_gradient, ActionKind::unshard,      ActionKind::reshard,        ActionKind::optimizer_step,
    ActionKind::recompute,       ActionKind::cache_read,   ActionKind::cache_write,
};

TEST(Action, IsWrittenAsPyTorchWritesIt) {
  EXPECT_EQ(to_string(Action{.kind = ActionKind::forward, .stage = 2, .micro_batch = 0}), "2F0");
  EXPECT_EQ(to_string(Action{.kind = ActionKind::send_forward, .stage = 3, .micro_batch = 1}), "3SEND_F1");
  EXPECT_EQ(to_string(Action{.kind = ActionKind::reduce_gradient, .stage = 1}), "1REDUCE_GRAD");
  EXPECT_EQ(to_string(Action{.kind = ActionKind::unshard, .stage = 1}), "1UNSHARD");
}

TEST(Action, ExtensionsAreWrittenOnlyWhenUsed) {
  EXPECT_EQ(to_string(Action{.kind = ActionKind::forward, .stage = 2, .micro_batch = 0, .slice = 3}), "2F0s3");
  EXPECT_EQ(to_string(Action{.kind = ActionKind::forward, .weight_version = 1, .stage = 2, .micro_batch = 0}), "2F0@1");
  EXPECT_EQ(to_string(Action{.kind = ActionKind::backward, .iteration_offset = -1, .stage = 2, .micro_batch = 10}),
            "2B10-1");
  EXPECT_EQ(to_string(Action{.kind = ActionKind::backward,
                             .iteration_offset = 2,
                             .weight_version = 1,
                             .stage = 2,
                             .micro_batch = 10,
                             .slice = 0}),
            "2B10s0@1+2");
}

TEST(Action, PrintAndParseAreInverse) {
  std::mt19937 random(1);
  for (const ActionKind kind : kAllKinds) {
    for (int round = 0; round < 50; ++round) {
      Action action{.kind = kind, .stage = static_cast<int>(random() % 100)};
      if (has_micro_batch(kind)) action.micro_batch = static_cast<int>(random() % 1000);
      if (random() % 2 == 0) action.slice = static_cast<int>(random() % 8);
      if (random() % 2 == 0) action.weight_version = static_cast<int>(random() % 3);
      if (random() % 2 == 0) action.iteration_offset = static_cast<int>(random() % 5) - 2;
      EXPECT_EQ(parse_action(to_string(action), "test"), action) << to_string(action);
    }
  }
}

TEST(Action, TextThatIsNoActionNamesPlaceAndText) {
  EXPECT_EQ(message_of([] { parse_action("F0", "row 2"); }), "row 2: must have a stage (as \"2F0\" has), is \"F0\"");
  EXPECT_EQ(message_of([] { parse_action("2F", "row 2"); }),
            "row 2: must have a micro-batch (as \"2F0\" has), is \"2F\"");
  EXPECT_EQ(message_of([] { parse_action("2F0s", "row 2"); }),
            "row 2: must have a slice after \"s\" (as \"2F0s3\" has), is \"2F0s\"");
  EXPECT_EQ(message_of([] { parse_action("2F0@", "row 2"); }),
            "row 2: must have a weight version after \"@\" (as \"2F0@1\" has), is \"2F0@\"");
  EXPECT_EQ(message_of([] { parse_action("2F0-", "row 2"); }),
            "row 2: must have an iteration offset after its sign (as \"2F0+1\" has), is \"2F0-\"");
  EXPECT_EQ(message_of([] { parse_action("2X0", "row 2"); }),
            "row 2: must have a known kind such as F, B, SEND_F or REDUCE_GRAD after the stage, is \"2X0\"");
  EXPECT_EQ(message_of([] { parse_action("1REDUCE_GRAD3", "row 2"); }),
            "row 2: must have no micro-batch: REDUCE_GRAD belongs to a whole stage, is \"1REDUCE_GRAD3\"");
  for (const char* text :
       {"", "2", "2F0 ", " 2F0", "2F0s", "2F0@", "2F0+", "2F-1", "2F0,2F1", "99999999999F0", "-1F0", "0OVERLAP_F_B0"})
    EXPECT_THROW(parse_action(text, "test"), InvalidInput) << text;
}

TEST(Action, SendsAndReceivesMatch) {
  const auto pair = [](const char* text) { return to_string(matching(parse_action(text, "test"))); };
  EXPECT_EQ(pair("1RECV_F0"), "0SEND_F0");
  EXPECT_EQ(pair("0SEND_F0"), "1RECV_F0");
  EXPECT_EQ(pair("0RECV_B2"), "1SEND_B2");
  EXPECT_EQ(pair("1SEND_B2"), "0RECV_B2");
  EXPECT_THROW(matching(Action{.kind = ActionKind::forward}), InternalError);
}

TEST(Action, KindsAreOfOneSort) {
  int compute = 0, sends = 0, receives = 0, whole_stage = 0;
  for (const ActionKind kind : kAllKinds) {
    compute += is_compute(kind);
    sends += is_send(kind);
    receives += is_receive(kind);
    whole_stage += !has_micro_batch(kind);
    EXPECT_LE(is_compute(kind) + is_send(kind) + is_receive(kind), 1);
  }
  EXPECT_EQ(compute, 5);
  EXPECT_EQ(sends, 2);
  EXPECT_EQ(receives, 2);
  EXPECT_EQ(whole_stage, 4);
}

}  // namespace
}  // namespace frostpipe
