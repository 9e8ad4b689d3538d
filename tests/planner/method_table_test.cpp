#include "planner/method_table.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace frostpipe {
namespace {

TEST(MethodTable, HasOneLineForEveryMethod) {
  ASSERT_EQ(method_table().size(), plan_methods().size());
  for (std::size_t i = 0; i < plan_methods().size(); ++i) {
    EXPECT_EQ(method_table()[i].method, plan_methods()[i]) << to_string(plan_methods()[i]);
    EXPECT_NE(method_table()[i].plan, nullptr) << to_string(plan_methods()[i]);
  }
  EXPECT_THROW(entry_of(PlanMethod::automatic), InvalidInput);
}

TEST(MethodTable, OnlyPipeTransformerAsPublishedAndTeraPipeFixOptions) {
  using enum PlanMethod;
  for (const PlanMethodEntry& entry : method_table())
    EXPECT_EQ(entry.adapted != nullptr, entry.method == pipetransformer_published || entry.method == terapipe);
  EXPECT_EQ(entry_of(terapipe).adapted({}).schedule, "TeraPipe");
  const PlanOptions options = entry_of(PlanMethod::pipetransformer_published).adapted({});
  EXPECT_EQ(options.partitioner, Partitioner::pipetransformer_greedy);
  EXPECT_EQ(options.schedule, "GPipe");
  EXPECT_FALSE(options.use_cache);
}

}  // namespace
}  // namespace frostpipe
