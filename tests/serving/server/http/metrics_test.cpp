// Oracle: Prometheus' text format, version 0.0.4, and counters set by the test.
#include "serving/server/http/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <string>

#include "tests/serving/server/http/fake_models.h"

namespace frostpipe {
namespace {

using testing::HasSubstr;

TEST(Metrics, CountersAndHistogramsAreThoseOfTheModel) {
  test::FakeModels models;
  models.forms = {{"m", test::text_form()}};
  models.counters = {.requests = 20,
                     .in_time = 9,
                     .late = 3,
                     .dropped = {{"no device in time", 4}, {"batch not filled in time", 2}},
                     .failed = 1,
                     .cut = 7,
                     .waiting = 5,
                     .computing = 6,
                     .batches = 4,
                     .requests_in_batches = 13,
                     .latency_counts = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12},
                     .latency_sum_ns = 2'500'000'000};
  models.worker_states = {{.model = "m",
                           .device_class = "1/2 L4",
                           .pipeline = 1,
                           .partition = 2,
                           .virtual_device = 3,
                           .is_ready = true,
                           .busy_ns = 1'500'000'000}};
  const std::string text = metrics_text(models);
  for (const char* const line : {
           "# TYPE frostpipe_requests_total counter\n",
           "frostpipe_requests_received_total{model=\"m\"} 20\n",
           "frostpipe_requests_total{model=\"m\",outcome=\"in_time\"} 9\n",
           "frostpipe_requests_total{model=\"m\",outcome=\"late\"} 3\n",
           "frostpipe_requests_total{model=\"m\",outcome=\"dropped\"} 6\n",
           "frostpipe_requests_total{model=\"m\",outcome=\"failed\"} 1\n",
           "frostpipe_requests_dropped_total{model=\"m\",reason=\"no device in time\"} 4\n",
           "frostpipe_texts_cut_total{model=\"m\"} 7\n",
           "frostpipe_requests_waiting{model=\"m\"} 5\n",
           "frostpipe_requests_computing{model=\"m\"} 6\n",
           "# TYPE frostpipe_request_latency_seconds histogram\n",
           "frostpipe_request_latency_seconds_bucket{model=\"m\",le=\"0.005\"} 0\n",
           "frostpipe_request_latency_seconds_bucket{model=\"m\",le=\"10\"} 10\n",
           "frostpipe_request_latency_seconds_bucket{model=\"m\",le=\"+Inf\"} 12\n",
           "frostpipe_request_latency_seconds_sum{model=\"m\"} 2.5\n",
           "frostpipe_request_latency_seconds_count{model=\"m\"} 12\n",
           "frostpipe_batch_size_sum{model=\"m\"} 13\n",
           "frostpipe_batch_size_count{model=\"m\"} 4\n",
           "frostpipe_worker_ready{model=\"m\",pipeline=\"1\",partition=\"2\",virtual_device=\"3\","
           "device_class=\"1/2 L4\"} 1\n",
           "device_class=\"1/2 L4\"} 1.5\n",
           "frostpipe_model_ready{model=\"m\"} 1\n",
       })
    EXPECT_THAT(text, HasSubstr(line));
}

TEST(Metrics, ValuesOfLabelsAreEscaped) {
  test::FakeModels models;
  models.forms = {{"a\"b\\c\nd", test::text_form()}};
  EXPECT_THAT(metrics_text(models), HasSubstr("frostpipe_requests_waiting{model=\"a\\\"b\\\\c\\nd\"} 0\n"));
}

/// A family is declared once, before its samples; no sample is repeated; each ends with a number.
TEST(Metrics, EveryLineIsOfTheFormat) {
  test::FakeModels models;
  models.worker_states.resize(1);
  std::istringstream lines(metrics_text(models));
  std::map<std::string, int> seen;
  std::string family;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# TYPE ")) family = line.substr(7, line.find(' ', 7) - 7);
    EXPECT_EQ(++seen[line.starts_with("#") ? line : line.substr(0, line.rfind(' '))], 1) << line;
    if (line.starts_with("#")) continue;
    EXPECT_TRUE(line.starts_with(family)) << line << " in " << family;
    EXPECT_NO_THROW(std::stod(line.substr(line.rfind(' ') + 1))) << line;
  }
  EXPECT_GT(seen.size(), 50u);
}

}  // namespace
}  // namespace frostpipe
