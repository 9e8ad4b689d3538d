// Oracle: RFC 9112, the Open Inference Protocol, version 2, and the definition of the fake models' answers.
#include "serving/server/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/error.h"
#include "tests/serving/server/http/fake_models.h"
#include "tests/serving/server/http/raw_client.h"

namespace frostpipe {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using test::get;
using test::post;
using test::RawClient;
using test::reply_to;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kThreeTexts =
    R"({"id":"42","inputs":[{"name":"text","shape":[3],"datatype":"BYTES","data":["a","bb","ccc"]}],)"
    R"("outputs":[{"name":"label"}]})";
constexpr const char* kThreeLabels = R"({"model_name":"texts","id":"42","outputs":[)"
                                     R"({"name":"label","datatype":"BYTES","shape":[3],"data":["odd","even","odd"]}]})";

class HttpServerTest : public testing::Test {
 protected:
  int port() {
    if (!server_) server_ = std::make_unique<HttpServer>(models_, options_);
    return server_->port();
  }

  test::FakeModels models_;
  HttpServerOptions options_ = {.port = 0};
  std::unique_ptr<HttpServer> server_;
};

/// Whether `done` becomes true within two seconds.
template <class Done>
bool soon(const Done& done) {
  for (int i = 0; i < 200; ++i) {
    if (done()) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

TEST_F(HttpServerTest, AModelIsAskedPerRowAndItsAnswersComeInOrder) {
  const test::Reply reply = reply_to(port(), post("texts", kThreeTexts));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, kThreeLabels);
  EXPECT_THAT(reply.head, HasSubstr("Content-Type: application/json\r\n"));
  EXPECT_EQ(models_.num_asked, 3);
}

TEST_F(HttpServerTest, AConnectionServesRequestAfterRequestAlsoThoseSentAhead) {
  RawClient client(port());
  client.send(post("texts", kThreeTexts) + get("/v2/health/live") + "\r\n" + post("texts", kThreeTexts));
  EXPECT_EQ(client.receive().value().body, kThreeLabels);
  EXPECT_EQ(client.receive().value().body, R"({"live":true})");
  EXPECT_EQ(client.receive().value().body, kThreeLabels);
  client.send(post("texts", kThreeTexts));
  EXPECT_EQ(client.receive().value().body, kThreeLabels);
}

TEST_F(HttpServerTest, AChunkedBodyIsAnswered) {
  std::string request = "POST /v2/models/texts/infer HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const char c : std::string(kThreeTexts)) request += std::string("1\r\n") + c + "\r\n";
  const test::Reply reply = reply_to(port(), request + "0\r\n\r\n");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, kThreeLabels);
}

TEST_F(HttpServerTest, ABodyThatWaitsForAPermissionGetsIt) {
  const std::string request = post("texts", kThreeTexts, "Expect: 100-continue\r\n");
  const std::size_t head = request.find("\r\n\r\n") + 4;
  RawClient client(port());
  client.send(request.substr(0, head));
  EXPECT_EQ(client.receive().value().status, 100);
  client.send(request.substr(head));
  EXPECT_EQ(client.receive().value().body, kThreeLabels);

  RawClient other(port());
  const std::string missing = post("none", kThreeTexts, "Expect: 100-continue\r\n");
  other.send(missing.substr(0, missing.find("\r\n\r\n") + 4));
  EXPECT_EQ(other.receive().value().status, 404);
}

TEST_F(HttpServerTest, AllRowsAreAskedBeforeTheFirstIsWaitedFor) {
  std::vector<std::promise<RequestAnswer>> promises(3);
  models_.answer_to = [&](const RequestInput&, int before) {
    if (before == 2) {
      for (std::promise<RequestAnswer>& promise : promises) promise.set_value({.values = {0, 1}});
    }
    return promises.at(before).get_future();
  };
  EXPECT_EQ(reply_to(port(), post("texts", kThreeTexts)).status, 200);
}

TEST_F(HttpServerTest, HundredsOfRequestsMayWaitAtATime) {
  constexpr int kClients = 200;
  std::mutex mutex;
  std::vector<std::promise<RequestAnswer>> waiting;
  models_.answer_to = [&](const RequestInput&, int) {
    const std::lock_guard lock(mutex);
    return waiting.emplace_back().get_future();
  };
  std::vector<std::unique_ptr<RawClient>> clients;
  const std::string one = R"({"inputs":[{"name":"input_ids","shape":[1,1],"datatype":"INT64","data":[7]}]})";
  for (int i = 0; i < kClients; ++i) {
    clients.push_back(std::make_unique<RawClient>(port()));
    clients.back()->send(post("texts", one));
  }
  EXPECT_TRUE(soon([&] { return models_.num_asked == kClients; })) << models_.num_asked;
  {
    const std::lock_guard lock(mutex);
    for (std::promise<RequestAnswer>& promise : waiting) promise.set_value({.values = {1, 0.5}});
  }
  for (const auto& client : clients) EXPECT_EQ(client->receive().value().status, 200);
}

TEST_F(HttpServerTest, IdleConnectionsMakeWayForNewOnes) {
  options_.patience = 1min;
  std::vector<std::unique_ptr<RawClient>> idle;
  for (int i = 0; i < 300; ++i) idle.push_back(std::make_unique<RawClient>(port()));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(reply_to(port(), get("/v2/health/live")).status, 200);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
}

TEST_F(HttpServerTest, ADroppedRowIs503WithItsReason) {
  models_.answer_to = [](const RequestInput&, int before) {
    return test::FakeModels::now(before == 1
                                     ? RequestAnswer{.kind = RequestAnswer::Kind::dropped, .why = "no device in time"}
                                     : RequestAnswer{.values = {0, 1}});
  };
  const test::Reply reply = reply_to(port(), post("texts", kThreeTexts));
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(reply.body, R"({"error":"row 1 was dropped: no device in time"})");
  EXPECT_THAT(reply.head, HasSubstr("Retry-After: 1\r\n"));
}

TEST_F(HttpServerTest, AFailedRowIs500AlsoBesideADroppedOne) {
  models_.answer_to = [](const RequestInput&, int before) {
    return test::FakeModels::now({.kind = before == 2 ? RequestAnswer::Kind::failed : RequestAnswer::Kind::dropped,
                                  .why = before == 2 ? "its worker was lost" : "no device in time"});
  };
  const test::Reply reply = reply_to(port(), post("texts", kThreeTexts));
  EXPECT_EQ(reply.status, 500);
  EXPECT_EQ(reply.body, R"({"error":"row 2 failed: its worker was lost"})");
  EXPECT_THAT(reply.head, Not(HasSubstr("Retry-After")));
}

TEST_F(HttpServerTest, AnExceptionIs500AndTheConnectionGoesOn) {
  models_.answer_to = [](const RequestInput&, int before) -> std::future<RequestAnswer> {
    if (before == 0) throw std::runtime_error("a \"bad\" day");
    return test::FakeModels::now({.values = {before % 2 == 1 ? 1.0 : 0.0, 1}});
  };
  RawClient client(port());
  client.send(post("texts", kThreeTexts) + post("texts", kThreeTexts));
  const test::Reply failed = client.receive().value();
  EXPECT_EQ(failed.status, 500);
  EXPECT_EQ(failed.body, R"({"error":"a \"bad\" day"})");
  EXPECT_EQ(client.receive().value().body, kThreeLabels);
}

TEST_F(HttpServerTest, ListsItsModelsAndTheirTensors) {
  const json server = json::parse(reply_to(port(), get("/v2")).body);
  EXPECT_EQ(server["name"], "frostpipe");
  EXPECT_EQ(server["models"], json::parse(R"(["a/b","pictures","texts","words"])"));
  EXPECT_EQ(json::parse(reply_to(port(), get("/v2/models/pictures")).body), json::parse(R"({
    "name": "pictures", "platform": "frostpipe",
    "inputs": [{"name": "pixel_values", "datatype": "FP32", "shape": [-1, 3, 2, 2]}],
    "outputs": [{"name": "label", "datatype": "BYTES", "shape": [-1]},
                {"name": "label_id", "datatype": "INT64", "shape": [-1]},
                {"name": "probability", "datatype": "FP64", "shape": [-1]}],
    "parameters": {"max_rows": 64}})"));
  EXPECT_EQ(json::parse(reply_to(port(), get("/v2/models/texts")).body)["parameters"],
            json::parse(R"({"max_rows": 64, "max_tokens": 10})"));
  EXPECT_EQ(json::parse(reply_to(port(), get("/v2/models/a%2Fb/ready")).body),
            json::parse(R"({"name": "a/b", "ready": true})"));
  EXPECT_EQ(reply_to(port(), post("a/b", kThreeTexts)).status, 200);
}

TEST_F(HttpServerTest, MoreRowsThanTheObjectiveAllowsAreRefusedBeforeAnyIsAsked) {
  models_.most_rows = 2;
  const test::Reply reply = reply_to(port(), post("texts", kThreeTexts));
  EXPECT_EQ(reply.status, 400);
  EXPECT_THAT(reply.body, HasSubstr("must have at most 2 rows, since more cannot be answered within the objective of "
                                    "texts, has 3; send them in several requests"));
  EXPECT_THAT(reply.head, testing::Not(HasSubstr("Retry-After")));
  EXPECT_EQ(models_.num_asked, 0);
}

TEST_F(HttpServerTest, HealthFollowsTheModels) {
  EXPECT_EQ(reply_to(port(), get("/v2/health/ready")).body, R"({"ready":true})");
  models_.are_ready = false;
  const test::Reply reply = reply_to(port(), get("/v2/health/ready"));
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(reply.body, R"({"ready":false})");
  EXPECT_EQ(reply_to(port(), get("/v2/models/texts/ready")).status, 503);
  EXPECT_EQ(reply_to(port(), get("/v2/health/live")).status, 200);
}

TEST_F(HttpServerTest, MetricsAreServedAsPrometheusReadsThem) {
  const test::Reply reply = reply_to(port(), get("/metrics"));
  EXPECT_THAT(reply.head, HasSubstr("Content-Type: text/plain; version=0.0.4"));
  EXPECT_THAT(reply.body, HasSubstr("frostpipe_requests_total{model=\"texts\",outcome=\"in_time\"} 0\n"));
}

TEST_F(HttpServerTest, AHeadIsAnsweredWithoutABody) {
  RawClient client(port());
  client.send(get("/v2/health/live", "HEAD"));
  client.half_close();
  const test::Reply reply = client.receive().value();
  EXPECT_EQ(reply.status, 200);
  EXPECT_THAT(reply.head, HasSubstr("Content-Length: 13\r\n"));
  EXPECT_EQ(reply.body, "");
}

TEST_F(HttpServerTest, RangesAreLeftAlone) {
  const test::Reply reply = reply_to(port(), "GET /v2/health/live HTTP/1.1\r\nHost: h\r\nrange: bytes=0-1,3-4\r\n\r\n");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, R"({"live":true})");
}

struct Refused {
  std::string request;
  int status;
  std::string sentence;
};

TEST_F(HttpServerTest, MalformedRequestsAreRefusedWithASentence) {
  options_.max_body_bytes = 1000;
  const std::string line = "POST /v2/models/texts/infer HTTP/1.1\r\nHost: h\r\n";
  const std::vector<Refused> cases = {
      {get("/"), 404, "there is no \\\"/\\\" here"},
      {get("/v2/models/none"), 404, "there is no model \\\"none\\\"; this server serves"},
      {get("/v2/models/none/ready"), 404, "there is no model \\\"none\\\"; this server serves"},
      {post("none", "{}"), 404, "there is no model \\\"none\\\"; this server serves"},
      {get("/v2/models/texts/versions/1"), 404, "models have no versions here; ask /v2/models/texts without one"},
      {post("texts/versions/1", "{}"), 404, "models have no versions here; ask /v2/models/texts without one"},
      {get("/v2/models/texts/infer"), 405, "/v2/models/texts/infer takes only POST, with a JSON body"},
      {get("/metrics", "DELETE"), 405, "/metrics takes only GET and HEAD"},
      {get("/v2", "OPTIONS"), 405, "/v2 takes only GET and HEAD"},
      {"GET /metrics HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", 400, "a body must not be sent here"},
      {get("/" + std::string(2000, 'a')), 414, "a path must have at most 1024 bytes"},
      {get("/" + std::string(9000, 'a')), 414, "HTTP/1.1"},
      {"GET / HTTP/1.1\r\nX: " + std::string(17000, 'a'), 431, "a request's head must have at most 16384 bytes"},
      {"GET /metrics HTTP/1.1\r\nContent-Length : 2\r\n\r\n", 400, "must be lines of the form"},
      {"GET /metrics HTTP/1.1\r\nContent-Length: 2\nX: y\r\n\r\n", 400, "that end in CR LF"},
      {"GET /metrics HTTP/1.1\r\nX: y\r\n z\r\n\r\n", 400, "must be lines of the form"},
      {"BREW / HTTP/1.1\r\n\r\n", 400, "the request cannot be understood as HTTP/1.1"},
      {line + "\r\n", 411, "header Content-Length: must be given"},
      {line + "Content-Length: x\r\n\r\n", 400, "header Content-Length: must be one number of bytes"},
      {line + "Content-Length: -1\r\n\r\n", 400, "header Content-Length: must be one number of bytes"},
      {line + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400, "must be one number of bytes"},
      {line + "Content-Length: 99999999999999999999999\r\n\r\n", 400, "must be one number of bytes"},
      {line + "Content-Length: 1001\r\n\r\n", 413, "header Content-Length: must be at most 1000 bytes, is 1001"},
      {line + "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n{}", 400, "must be chunked, and stand alone"},
      {line + "Transfer-Encoding: gzip\r\n\r\n", 400, "header Transfer-Encoding: must be chunked"},
      {line + "Transfer-Encoding: chunked\r\n\r\nfffff\r\n" + std::string(2000, 'a'), 413, "at most 1000 bytes"},
      {line + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400, "the body ended early"},
      {line + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}", 400, "the body ended early"},
      {post("texts", "{}", "Content-Encoding: gzip\r\n"), 415, "header Content-Encoding: must not be given, is gzip"},
      {post("texts", "{}", "Inference-Header-Content-Length: 2\r\n"), 400, "Inference-Header-Content-Length"},
      {line + "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 0\r\n\r\n", 415, "application/json"},
      {line + "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 2\r\n\r\n{}", 415,
       "is application/x-www-form-urlencoded; with curl, pass -H 'Content-Type: application/json'"},
      {post("texts", "{}"), 400, "request: has no field \\\"inputs\\\""},
  };
  for (const auto& [request, status, sentence] : cases) {
    SCOPED_TRACE(request.substr(0, 200));
    RawClient client(port());
    client.send(request);
    client.half_close();
    const test::Reply reply = client.receive().value_or(test::Reply{});
    EXPECT_EQ(reply.status, status);
    EXPECT_THAT(reply.body, HasSubstr(sentence));
    EXPECT_TRUE(json::parse(reply.body, nullptr, false).contains("error")) << reply.body;
  }
}

TEST_F(HttpServerTest, TheRestOfARefusedBodyIsNotTakenForARequest) {
  const std::string hidden = get("/v2/health/live");
  RawClient client(port());
  client.send(post("none", hidden));
  const test::Reply reply = client.receive().value();
  EXPECT_EQ(reply.status, 404);
  EXPECT_THAT(reply.head, HasSubstr("Connection: close\r\n"));
  EXPECT_FALSE(client.receive());
}

TEST_F(HttpServerTest, APortThatIsTakenIsNamed) {
  HttpServerOptions same = {.port = port()};
  try {
    const HttpServer other(models_, same);
    ADD_FAILURE() << "listens on a port that is taken";
  } catch (const InvalidInput& error) {
    EXPECT_EQ(error.what(),
              "127.0.0.1:" + std::to_string(same.port) + ": cannot be listened on: Address already in use");
  }
  same.host = "192.0.2.1";  // no machine has this address
  EXPECT_THROW(HttpServer(models_, same), InvalidInput);
}

TEST_F(HttpServerTest, AtItsEndItAnswersItsRequestsAndWaitsForNoFurtherOnes) {
  options_.patience = 1min;
  std::promise<RequestAnswer> promise;
  models_.answer_to = [&](const RequestInput&, int) { return promise.get_future(); };
  RawClient idle(port()), half(port()), asking(port());
  half.send("POST /v2/models/texts/infer HTTP/1.1\r\nContent-Le");
  asking.send(post("texts", R"({"inputs":[{"name":"text","shape":[1],"datatype":"BYTES","data":["a"]}]})"));
  ASSERT_TRUE(soon([&] { return models_.num_asked == 1; }));
  std::thread ending([&] { server_.reset(); });
  EXPECT_TRUE(idle.ends_within(2s));
  EXPECT_TRUE(half.ends_within(2s));
  promise.set_value({.values = {1, 0.25}});
  EXPECT_EQ(asking.receive().value().status, 200);
  ending.join();
}

TEST_F(HttpServerTest, SignalsAreLeftAsTheyWere) {
  struct sigaction before = {}, after = {};
  sigaction(SIGPIPE, nullptr, &before);
  port();
  sigaction(SIGPIPE, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
}

}  // namespace
}  // namespace frostpipe
