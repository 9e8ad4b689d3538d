#include "serving/plan/serving_plan.h"

#include <cmath>
#include <functional>

#include "base/error.h"
#include "plan/plan_kind.h"
#include "tests/plan/examples.h"
#include "tests/serving/plan/examples.h"

namespace frostpipe {
namespace {

using examples::message_of;
using examples::two_model_plan;
using examples::two_phase_plan;
using examples::with;
using testing::HasSubstr;

TEST(ServingPlan, SurvivesItsFile) {
  const auto plan = two_model_plan();
  EXPECT_EQ(serving_plan_from_json(to_json(plan), "plan.json"), plan);
  EXPECT_EQ(to_json(serving_plan_from_json(to_json(plan), "plan.json")), to_json(plan));
}

// Older versions would serve one head with the time of all heads.
TEST(ServingPlan, WithASharedPrefixIsOfAVersionThatOlderOnesRefuse) {
  auto plan = two_model_plan();
  plan.models[0].shared_prefix = {.layers = 5, .heads = 3};
  EXPECT_EQ(serving_plan_from_json(to_json(plan), "plan.json"), plan);
  EXPECT_THAT(to_json(plan), HasSubstr("\"version\": 5,"));
  plan.models[0].shared_prefix = {.layers = 8, .heads = 64};
  EXPECT_EQ(serving_plan_from_json(to_json(plan), "plan.json"), plan);
}

TEST(ServingPlan, SharesSomeOfItsLayersBetweenTwoHeadsOrMore) {
  const auto refusal = [](const SharedPrefix& prefix) {
    auto plan = two_model_plan();
    plan.models[0].shared_prefix = prefix;
    return message_of([&] { validate(plan, "plan.json"); });
  };
  EXPECT_EQ(refusal({.layers = 9, .heads = 2}),
            "plan.json: models[0].shared_prefix.layers: must be >= 1 and < 9, the layers of the model, is 9");
  EXPECT_EQ(refusal({.layers = 0, .heads = 2}),
            "plan.json: models[0].shared_prefix.layers: must be >= 1 and < 9, the layers of the model, is 0");
  EXPECT_EQ(refusal({.layers = 3, .heads = 1}),
            "plan.json: models[0].shared_prefix.heads: must be >= 2 and <= 64, is 1");
}

TEST(ServingPlan, SaysWhatItIsAtTheTopOfItsFile) {
  EXPECT_THAT(to_json(two_model_plan()),
              testing::StartsWith("{\n \"format\": \"frostpipe.plan\",\n \"version\": 3,\n \"kind\": \"serving\",\n"));
}

TEST(ServingPlan, IsNotTakenForATrainingPlanNorOneForIt) {
  EXPECT_EQ(kind_of_plan(to_json(two_model_plan()), "plan.json"), PlanKind::serving);
  EXPECT_EQ(kind_of_plan(to_json(two_phase_plan()), "plan.json"), PlanKind::training);
  EXPECT_EQ(message_of([] { plan_from_json(to_json(two_model_plan()), "plan.json"); }),
            "plan.json: must be a plan of training, is one of serving");
  EXPECT_EQ(message_of([] { serving_plan_from_json(to_json(two_phase_plan()), "plan.json"); }),
            "plan.json: must be a plan of serving, is one of training");
  EXPECT_EQ(message_of([] { kind_of_plan(with(to_json(two_model_plan()), "\"serving\"", "\"eating\""), "plan.json"); }),
            "plan.json: kind: must be training, serving or operators, is \"eating\"");
}

// 2 x (1 ms) of transfer, 50 us of latency, 20 ms and 10 ms; a single request: 12 + 5 + 1 + 0.05 ms.
TEST(ServingPlan, HasTheLatencyOfItsPartitionsAndTheirTransfers) {
  const auto plan = two_model_plan();
  EXPECT_EQ(unloaded_latency_ns(plan.models[0].pipelines[0], 2), 32'050'000);
  EXPECT_EQ(unloaded_latency_ns(plan.models[0].pipelines[0], 1), 18'050'000);
}

TEST(ServingPlan, KeepsItsMarginOfTheObjectiveFree) {
  EXPECT_EQ(latency_budget_ns(100'000'000, {.objective_fraction = 0.4}), 60'000'000);
  EXPECT_EQ(latency_budget_ns(11, {.objective_fraction = 0.4}), 6);  // 6.6, rounded down
}

// Three halves take two devices, on which a fourth half of the same pool position of the same model fits; one of
// another model or position does not.
TEST(ServingPlan, SharesDevicesBetweenPoolsOfOnePlaceOfAModel) {
  auto plan = two_model_plan();
  EXPECT_EQ(devices_in_use(plan, "fast"), 2);
  EXPECT_EQ(devices_in_use(plan, "slow"), 4);
  ServingPipeline second = plan.models[0].pipelines[0];
  second.partitions[1].num_virtual_devices = 1;
  plan.models[0].pipelines.push_back(second);
  EXPECT_EQ(devices_in_use(plan, "fast"), 2);
  plan.models[0].pipelines[1].partitions[0].device_class = "fast";  // 3 whole ones at the first position
  EXPECT_EQ(devices_in_use(plan, "fast"), 5);
  plan.models[0].pipelines[1].partitions[1].share = 3;  // 3 / 2 + 1 / 3
  EXPECT_EQ(devices_in_use(plan, "fast"), 5);
  plan.models[0].pipelines[1].partitions[1].num_virtual_devices = 2;  // 3 / 2 + 2 / 3
  EXPECT_EQ(devices_in_use(plan, "fast"), 6);
}

TEST(ServingPlan, HasTheGapBetweenItsValueAndItsBound) {
  auto plan = two_model_plan();
  EXPECT_DOUBLE_EQ(optimality_gap(plan).value(), 0.2);  // (150 - 125) / 125
  plan.objective_bound.reset();
  EXPECT_EQ(optimality_gap(plan), std::nullopt);
}

struct Broken {
  const char* sentence;
  std::function<void(ServingPlan&)> breaks;
};

void expect_refused(const std::vector<Broken>& all) {
  for (const auto& [sentence, breaks] : all) {
    auto plan = two_model_plan();
    breaks(plan);
    EXPECT_EQ(message_of([&] { validate(plan, "plan.json"); }), sentence);
    EXPECT_EQ(message_of([&] { serving_plan_from_json(to_json(plan), "plan.json"); }), sentence);
  }
}

TEST(ServingPlan, ThatBreaksARuleIsRefusedWithTheRule) {
  const std::vector<Broken> all = {
      {"plan.json: device_classes[1].name: must be different from those before, is \"fast\"",
       [](ServingPlan& plan) { plan.device_classes[1].name = "fast"; }},
      {"plan.json: device_classes[0].count: must be >= 2, the devices that the pools use, is 1",
       [](ServingPlan& plan) { plan.device_classes[0].count = 1; }},
      {"plan.json: models[1].name: must be different from those before, is \"large\"",
       [](ServingPlan& plan) { plan.models[1].name = "large"; }},
      {"plan.json: models[1].weight: must be >= 1e-06 and <= 1e+06, is 0",
       [](ServingPlan& plan) { plan.models[1].weight = 0; }},
      {"plan.json: models[1].pipelines: must hold at least one pipeline, is []",
       [](ServingPlan& plan) { plan.models[1].pipelines.clear(); }},
      {"plan.json: models[0].pipelines[0].partitions[1].first_block: must be 2, where the partition before ends, is 1",
       [](ServingPlan& plan) { plan.models[0].pipelines[0].partitions[1].first_block = 1; }},
      {"plan.json: models[0].pipelines[0].partitions: must end at block 4, the end of the model, is 3",
       [](ServingPlan& plan) {
         plan.models[0].blocks.push_back({9, 10});
       }},
      {"plan.json: models[0].pipelines[0].partitions[1].device_class: must be one of device_classes (\"fast\", "
       "\"slow\"), is \"quick\"",
       [](ServingPlan& plan) { plan.models[0].pipelines[0].partitions[1].device_class = "quick"; }},
      {"plan.json: models[0].pipelines[0].partitions[0].compute_ns: must have 2 entries, one for each batch size up to "
       "the planned, is 1 entries",
       [](ServingPlan& plan) { plan.models[0].pipelines[0].partitions[0].compute_ns.pop_back(); }},
      {"plan.json: models[0].pipelines[0].partitions[1].requests_per_second: must be > 0 and <= 600, what its virtual "
       "devices compute, is 601",
       [](ServingPlan& plan) { plan.models[0].pipelines[0].partitions[1].requests_per_second = 601; }},
      {"plan.json: models[0].pipelines[0].requests_per_second: must be 250, that of its slowest partition, is 300",
       [](ServingPlan& plan) { plan.models[0].pipelines[0].partitions[0].requests_per_second = 250; }},
      {"plan.json: models[1].requests_per_second: must be 125, the sum of its pipelines', is 120",
       [](ServingPlan& plan) { plan.models[1].requests_per_second = 120; }},
      {"plan.json: models[0].pipelines[0]: must answer a batch of 2 within 36.0 ms, the part of the objective that the "
       "margins leave, is 42.0 ms",
       [](ServingPlan& plan) { plan.models[0].objective_ns = 60'000'000; }},
  };
  expect_refused(all);
}

TEST(ServingPlan, WithAValueThatIsNotItsOwnIsRefused) {
  const std::vector<Broken> all = {
      {"plan.json: models[0].pipelines[0].batch_building_ns: must be 10000000, what the margins count for a batch of 2 "
       "at 130 requests/s, is 9000000",
       [](ServingPlan& plan) { plan.models[0].pipelines[0].batch_building_ns = 9'000'000; }},
      {"plan.json: objective_value: must be 125, the least requests per second per weight, is 150",
       [](ServingPlan& plan) { plan.objective_value = 150; }},
      {"plan.json: objective_bound: must be >= 125, the objective's value, is 124",
       [](ServingPlan& plan) { plan.objective_bound = 124; }},
      {"plan.json: device_classes[1].price_per_hour: must be given in a plan with the objective cost, is null",
       [](ServingPlan& plan) { plan.objective = ServingObjective::cost; }},
      {"plan.json: objective_value: must be 5.5, the price of the devices in use, is 125",
       [](ServingPlan& plan) {
         plan.objective = ServingObjective::cost;  // 2 of 0.75 and 4 of 1
         plan.device_classes[1].price_per_hour = 1;
       }},
      {"plan.json: objective_bound: must be <= 5.5, the objective's value, is 6",
       [](ServingPlan& plan) {
         plan.objective = ServingObjective::cost;
         plan.device_classes[1].price_per_hour = 1;
         plan.objective_value = 5.5;
         plan.objective_bound = 6;
       }},
      {"plan.json: models[1].pipelines[0].partitions[0]: must have no input_bytes, transfer_ns and latency_ns: no "
       "partition is before it, is 5, 0 and 0",
       [](ServingPlan& plan) { plan.models[1].pipelines[0].partitions[0].input_bytes = 5; }}};
  expect_refused(all);
}

TEST(ServingPlan, OfAnOlderVersionIsRefused) {
  for (const char* const version : {"1", "2"}) {
    const std::string file = with(to_json(two_model_plan()), "\"version\": 3", std::string("\"version\": ") + version);
    EXPECT_EQ(message_of([&] { serving_plan_from_json(file, "plan.json"); }),
              std::string("plan.json: version: must be >= 3 in a plan of serving, is ") + version);
  }
  const std::string version = "\"version\": ";
  std::string newer = to_json(two_phase_plan());
  newer[newer.find(version) + version.size()] = '3';
  EXPECT_EQ(message_of([&] { plan_from_json(newer, "plan.json"); }),
            "plan.json: version: must be <= 2 in a plan of training, is 3");
}

// An invalid plan is not written: it is validated before.
TEST(ServingPlan, BeyondTheBoundsOfItsFileIsRefusedBeforeItIsWritten) {
  const std::vector<std::function<void(ServingPlan&)>> all = {
      [](ServingPlan& plan) { plan.models[1].objective_ns = 2'000'000'000'000; },
      [](ServingPlan& plan) { plan.models[0].weight = 1e13; },
      [](ServingPlan& plan) { plan.models[0].weight = std::nan(""); },
      [](ServingPlan& plan) { plan.models[1].building_requests_per_second = 1e13; },
      [](ServingPlan& plan) { plan.margins.batch_building = 1e13; },
      [](ServingPlan& plan) { plan.models[1].required_requests_per_second = std::nan(""); },
      [](ServingPlan& plan) { plan.device_classes[0].price_per_hour = 1e13; },
      [](ServingPlan& plan) { plan.objective_value = std::nan(""); },
      [](ServingPlan& plan) { plan.objective_bound = 1e13; }};
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto plan = two_model_plan();
    all[i](plan);
    EXPECT_THROW(validate(plan, "plan.json"), InvalidInput) << i;
  }
}

TEST(ServingPlan, WithNumbersThatAreNoneIsRefused) {
  EXPECT_THAT(message_of([] {
                serving_plan_from_json(with(to_json(two_model_plan()), "\"weight\": 2.0", "\"weight\": \"NaN\""),
                                       "plan.json");
              }),
              HasSubstr("plan.json: models[0].weight: must be >= 0, is \"NaN\""));
}

}  // namespace
}  // namespace frostpipe
