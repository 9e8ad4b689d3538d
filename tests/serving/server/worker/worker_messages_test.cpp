#include "serving/server/worker/worker_messages.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace frostpipe {
namespace {

const PartitionLoad kLoad{.folders = {"folder/of \"a\" model", "another"},
                          .folder_bytes = {{"01", "23"}, {"45", "67"}},
                          .shared_layers = 2,
                          .layers = {0, 3, 7},
                          .partition = 1,
                          .dtype = DType::kBFloat16,
                          .device = "cuda",
                          .device_index = 5,
                          .threads = 3,
                          .shape = {.max_requests = 8,
                                    .max_tokens = 128,
                                    .pixels = 3 * 224 * 224,
                                    .heads = 2,
                                    .activation_bytes = 1536,
                                    .answer_size = 3},
                          .compute_ns = {10, 12, 15}};

TEST(WorkerMessages, ToAWorkerComeAsTheyWere) {
  const BatchOrder order{.batch = std::int64_t{1} << 40, .buffer = 2, .ordered_ns = 123, .lengths = {7, 128, 1}};
  const ToWorker first = to_worker_from_text(to_text(ToWorker{.load = kLoad})),
                 second = to_worker_from_text(to_text(ToWorker{.order = order}));
  EXPECT_EQ(first.load, kLoad);
  EXPECT_EQ(first.order, std::nullopt);
  EXPECT_EQ(second.order, order);
  EXPECT_EQ(second.load, std::nullopt);
}

TEST(WorkerMessages, FromAWorkerComeAsTheyWere) {
  const BatchReport report{.batch = 3, .begin_ns = 100, .end_ns = 250, .failure = "no \"room\"\n"};
  EXPECT_EQ(from_worker_from_text(to_text(FromWorker{.report = report})).report, report);
  EXPECT_EQ(from_worker_from_text(to_text(FromWorker{.loaded = ""})).loaded, "");
  EXPECT_EQ(from_worker_from_text(to_text(FromWorker{.loaded = "no such folder"})).loaded, "no such folder");
}

TEST(WorkerMessages, OtherTextsAreRefused) {
  for (const std::string text : {"", "{", "[]", "{\"order\": 3}", "{\"order\": {\"batch\": \"x\"}}"})
    EXPECT_THROW(to_worker_from_text(text), InvalidInput) << text;
}

}  // namespace
}  // namespace frostpipe
