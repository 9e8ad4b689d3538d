// Servers with real worker processes, which are copies of this program. A worker answers with the number in its
// folder's weights.
#include "serving/server/plan_server.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/files.h"
#include "serving/server/worker/run_worker.h"
#include "tests/serving/simulator/serving_plans.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using namespace std::chrono_literals;

constexpr std::int32_t kEndWorker = 99, kAskThreads = 98, kTakeLong = 97;  // tokens
constexpr double kSlowToLoad = 96;                                         // weights

class NumberPartition final : public PartitionCompute {
 public:
  explicit NumberPartition(const PartitionLoad& load)
      : number_(std::stod(read_text_file(load.folders.at(0) + "/model.safetensors"))), threads_(load.threads) {
    if (number_ == kSlowToLoad) std::this_thread::sleep_for(500ms);
  }
  void compute(const BatchOrder&, BatchBuffer& buffer) override {
    if (buffer.tokens()[0] == kEndWorker) _exit(1);
    // At least 2 ms, so that simultaneous requests go to both workers.
    std::this_thread::sleep_for(buffer.tokens()[0] == kTakeLong ? 20ms : 2ms);
    buffer.answers()[0] = buffer.tokens()[0] == kAskThreads ? threads_ : number_;
  }

 private:
  double number_;
  int threads_;
};

TEST(PlanServerWorker, DISABLED_OfTheTestsBelow) {
  ASSERT_TRUE(is_serving_worker());
  std::_Exit(run_serving_worker([](const PartitionLoad& load) { return std::make_unique<NumberPartition>(load); }));
}

class PlanServerTest : public test::ScratchFolderTest {
 protected:
  PlanServerTest() { write_folder("1", "{}"); }
  void write_folder(const std::string& weights, const std::string& config) const {
    file("model.safetensors", weights);
    file("config.json", config);
  }
  PlanServerOptions options() {
    return {.worker_command = {"/proc/self/exe", "--gtest_also_run_disabled_tests", "--gtest_brief=1",
                               "--gtest_filter=PlanServerWorker.*"},
            .open_models =
                [this](const ServingPlan&) {
                  ServableModel model;
                  model.folder_bytes = {read_folder_bytes(folder_)};
                  model.folders = {folder_.string()};
                  model.shape.max_tokens = 1;
                  model.shape.answer_size = 1;
                  return std::map<std::string, ServableModel>{{"model", model}};
                },
            .note =
                [this](const std::string& note) {
                  const std::lock_guard lock(mutex_);
                  notes_ += note + "\n";
                }};
  }
  std::string notes() {
    const std::lock_guard lock(mutex_);
    return notes_;
  }

  /// The set of answers to simultaneous requests; -1 for a missing answer.
  static std::vector<double> answers(PlanServer& server, int count, std::int32_t token = 1) {
    std::vector<std::future<RequestAnswer>> asked;
    for (int i = 0; i < count; ++i) asked.push_back(server.ask("model", {.tokens = {token}, .pixels = nullptr}));
    std::vector<double> values;
    for (auto& future : asked) {
      const RequestAnswer answer = future.get();
      values.push_back(answer.kind == RequestAnswer::Kind::answered ? answer.values.at(0) : -1);
    }
    std::ranges::sort(values);
    values.erase(std::unique(values.begin(), values.end()), values.end());
    return values;
  }
  static bool becomes_true(const std::function<bool()>& holds) {
    const auto deadline = std::chrono::steady_clock::now() + 30s;
    while (!holds() && std::chrono::steady_clock::now() < deadline) std::this_thread::sleep_for(10ms);
    return holds();
  }
  static std::ptrdiff_t num_ready(const PlanServer& server) {
    return std::ranges::count_if(server.workers(), &WorkerState::is_ready);
  }

  /// Two workers of one layer.
  static ServingPlan plan() {
    ServingPartition pool = test::pool(2, {2});
    pool.end_block = 1;
    ServingPlan plan = test::plan_of(60'000 * test::kMs, {{pool}});
    plan.models.front().blocks = {{0, 1}};
    return plan;
  }

  const ServingPlan plan_ = plan();
  std::mutex mutex_;
  std::string notes_;
};

TEST_F(PlanServerTest, AWorkerThatWasLostComesBackWithTheSameBytes) {
  PlanServer server(plan_, options());
  ASSERT_TRUE(server.wait_until_loaded(30'000 * test::kMs));
  EXPECT_EQ(answers(server, 20), std::vector<double>{1});
  EXPECT_EQ(answers(server, 1, kEndWorker), std::vector<double>{-1});
  EXPECT_TRUE(becomes_true([&] { return notes().find("is started again") != notes().npos; })) << notes();
  EXPECT_TRUE(becomes_true([&] { return num_ready(server) == 2; })) << notes();
  EXPECT_EQ(answers(server, 20), std::vector<double>{1});
}

TEST_F(PlanServerTest, AWorkerHasTheThreadsThatItsDeviceClassSays) {
  ServingPlan plan = plan_;
  plan.device_classes.front().name = "cpu x 3";
  plan.models.front().pipelines.front().partitions.front().device_class = "cpu x 3";
  PlanServer of_three(plan, options()), of_one(plan_, options());
  ASSERT_TRUE(of_three.wait_until_loaded(30'000 * test::kMs) && of_one.wait_until_loaded(30'000 * test::kMs));
  EXPECT_EQ(answers(of_three, 4, kAskThreads), std::vector<double>{3});
  EXPECT_EQ(answers(of_one, 4, kAskThreads), std::vector<double>{1});
}

// The channel to a worker holds some 280 orders. Each of two workers gets about 400 at once.
TEST_F(PlanServerTest, MoreBatchesThanAChannelHoldsAreAnswered) {
  PlanServer server(plan_, options());
  ASSERT_TRUE(server.wait_until_loaded(30'000 * test::kMs));
  EXPECT_EQ(answers(server, 800), std::vector<double>{1});
  EXPECT_EQ(notes().find("did not answer"), std::string::npos) << notes();
}

// The folder is overwritten, then a worker is lost: the other one goes on, until a new plan makes all workers load it.
TEST_F(PlanServerTest, AnswersAreNeverOfTwoModels) {
  PlanServer server(plan_, options());
  ASSERT_TRUE(server.wait_until_loaded(30'000 * test::kMs));
  write_folder("2", "{}");
  EXPECT_EQ(answers(server, 20), std::vector<double>{1});
  EXPECT_EQ(answers(server, 1, kEndWorker), std::vector<double>{-1});
  EXPECT_TRUE(becomes_true([&] { return notes().find("is given up, and the others go on") != notes().npos; }))
      << notes();
  EXPECT_NE(notes().find(folder_.string() +
                         ": must hold the same files as when the server read it, which its other workers go on with; "
                         "SIGHUP has all workers load what it holds then, is overwritten"),
            std::string::npos)
      << notes();
  EXPECT_EQ(num_ready(server), 1);
  EXPECT_EQ(answers(server, 20), std::vector<double>{1});

  server.replace(plan_);
  ASSERT_TRUE(becomes_true([&] { return notes().find("requests go to them from now on") != notes().npos; })) << notes();
  EXPECT_EQ(num_ready(server), 2);
  EXPECT_EQ(answers(server, 20), std::vector<double>{2});
}

TEST_F(PlanServerTest, TheFiguresOfARunAreThoseOfTheNewestPlanSinceItTookOver) {
  PlanServer server(plan_, options());
  ASSERT_TRUE(server.wait_until_loaded(30'000 * test::kMs));
  server.begin_run();
  answers(server, 5);
  std::this_thread::sleep_for(100ms);
  server.replace(plan_);
  ASSERT_TRUE(becomes_true([&] { return notes().find("requests go to them from now on") != notes().npos; })) << notes();
  answers(server, 4);
  const std::vector<ServingRun> runs = server.finish_run(60'000 * test::kMs);
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0].requests.size(), 4U);
  EXPECT_LT(runs[0].window_ns, 59'900 * test::kMs);
  EXPECT_GT(runs[0].window_ns, 0);
  for (const ServedRequest& request : runs[0].requests) EXPECT_GE(request.arrival_ns, 0);
}

// While the models of a plan are opened, another plan is requested.
TEST_F(PlanServerTest, OfTwoPlansAtOnceOneIsRefused) {
  PlanServer* running = nullptr;
  PlanServerOptions with_another = options();
  with_another.open_models = [&, open = with_another.open_models](const ServingPlan& plan) {
    if (PlanServer* const server = std::exchange(running, nullptr)) server->replace(plan_);
    return open(plan);
  };
  PlanServer server(plan_, with_another);
  ASSERT_TRUE(server.wait_until_loaded(30'000 * test::kMs));
  write_folder(std::to_string(kSlowToLoad), "{}");
  running = &server;
  EXPECT_EQ(message_of([&] { server.replace(plan_); }), "another plan is being loaded; the new one is not used");
}

// The server reads labels and tokenizer only once.
TEST_F(PlanServerTest, AnotherPlanIsRefusedWhereTheFolderHasAnotherConfig) {
  PlanServer server(plan_, options());
  ASSERT_TRUE(server.wait_until_loaded(30'000 * test::kMs));
  write_folder("2", R"({"id2label": {"0": "no"}})");
  EXPECT_EQ(
      message_of([&] { server.replace(plan_); }),
      "FOLDER: must hold the same config.json and tokenizer as when `serving run` began, since only the weights may "
      "change; to serve these files, start `serving run` again, is overwritten");
  EXPECT_EQ(answers(server, 20), std::vector<double>{1});
}

// Two workers take at least 20 ms for each request, 10 times the planned time: of 80 at once, they answer 10 within the
// objective of 100 ms. By the plan's times all 80 would be accepted.
TEST_F(PlanServerTest, FewerRequestsAreAcceptedWhereBatchesTakeLongerThanPlanned) {
  ServingPlan plan = plan_;
  plan.models.front().objective_ns = 100 * test::kMs;
  PlanServer server(plan, options());
  ASSERT_TRUE(server.wait_until_loaded(30'000 * test::kMs));
  for (int i = 0; i < 15; ++i) answers(server, 1, kTakeLong);
  EXPECT_TRUE(becomes_true([&] { return notes().find(" times the planned time; fewer requests") != notes().npos; }));
  std::vector<std::future<RequestAnswer>> asked;
  for (int i = 0; i < 80; ++i) asked.push_back(server.ask("model", {.tokens = {kTakeLong}, .pixels = nullptr}));
  const auto num_answered =
      std::ranges::count_if(asked, [](auto& future) { return future.get().kind == RequestAnswer::Kind::answered; });
  EXPECT_LT(num_answered, 80);
  EXPECT_GT(num_answered, 0);
}

}  // namespace
}  // namespace frostpipe
