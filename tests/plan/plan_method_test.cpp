// Oracle: the words in docs/file_formats.md.
#include "plan/plan_method.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace frostpipe {
namespace {

TEST(PlanMethod, WordsAreReadAsTheyAreWritten) {
  EXPECT_EQ(to_string(PlanMethod::static_pipeline), "static");
  EXPECT_EQ(to_string(PlanMethod::pipedream_2bw), "pipedream-2bw");
  for (const PlanMethod method : plan_methods()) {
    PlanMethod read = PlanMethod::automatic;
    parse_text(to_string(method), "method", read);
    EXPECT_EQ(read, method) << to_string(method);
  }
  EXPECT_EQ(plan_methods().size(), 13U);
  PlanMethod of_net = PlanMethod::automatic;  // no method of make_plan, but of what a net's run has executed
  parse_text("operators", "method", of_net);
  EXPECT_EQ(of_net, PlanMethod::operators);
  EXPECT_EQ(run_name(PlanMethod::operators), "operators");
}

TEST(PlanMethod, NoPlanIsMadeByAnUnknownMethodOrByAuto) {
  for (const char* const word : {"fastest", "auto", ""}) {
    PlanMethod method = PlanMethod::exact;
    try {
      parse_text(word, "plan.json: method", method);
      ADD_FAILURE() << word;
    } catch (const InvalidInput& error) {
      const std::string expected =
          "plan.json: method: must be one of data-parallel, static, exact, equal-split, pipedream, pipedream-2bw, "
          "ptd-p, terapipe, timelyfreeze, pipetransformer, freeze-only, pipetransformer-published, "
          "pipetransformer-without-replicas, is ";
      EXPECT_EQ(error.what(), expected + '"' + word + '"');
    }
  }
  EXPECT_EQ(find_plan_method("auto"), PlanMethod::automatic);
  EXPECT_EQ(find_plan_method("fastest"), std::nullopt);
}

TEST(PlanMethod, RunsAreNamedByTheirRole) {
  EXPECT_EQ(run_name(PlanMethod::data_parallel), "data_parallel");
  EXPECT_EQ(run_name(PlanMethod::static_pipeline), "static_pipeline");
  EXPECT_EQ(run_name(PlanMethod::pipetransformer), "elastic");
  EXPECT_EQ(run_name(PlanMethod::ptd_p), "ptd-p");
}

TEST(PlanMethod, OnlyPipeTransformersPlanAgainAndTheyFreeze) {
  for (const PlanMethod method : plan_methods()) {
    EXPECT_EQ(replans(method), to_string(method).starts_with("pipetransformer")) << to_string(method);
    EXPECT_EQ(freezes(method), replans(method) || method == PlanMethod::freeze_only) << to_string(method);
  }
}

}  // namespace
}  // namespace frostpipe
