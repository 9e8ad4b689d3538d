#include "profiles/optimizer.h"

#include "tests/plan/examples.h"

namespace frostpipe {
namespace {

using examples::message_of;

TEST(Optimizer, HasAWordInFiles) {
  for (const Optimizer optimizer : {Optimizer::kAdamW, Optimizer::kSgd}) {
    Optimizer read{};
    parse_text(to_string(optimizer), "p.json: optimizer", read);
    EXPECT_EQ(read, optimizer);
    EXPECT_EQ(find_optimizer(to_string(optimizer)), optimizer);
  }
  EXPECT_EQ(to_string(Optimizer::kAdamW), "adamw");
  EXPECT_EQ(to_string(Optimizer::kSgd), "sgd");
}

TEST(Optimizer, OfAnotherWordIsRefused) {
  Optimizer read{};
  EXPECT_EQ(message_of([&] { parse_text("adam", "p.json: optimizer", read); }),
            "p.json: optimizer: must be adamw or sgd, is \"adam\"");
  EXPECT_EQ(find_optimizer("adam"), std::nullopt);
}

TEST(Optimizer, KeepsTwoMomentsForAdamWAndNoneForSgd) {
  EXPECT_EQ(optimizer_moments(Optimizer::kAdamW), 2);
  EXPECT_EQ(optimizer_moments(Optimizer::kSgd), 0);
}

}  // namespace
}  // namespace frostpipe
