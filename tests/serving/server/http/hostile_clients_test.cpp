// Oracle: the same request has the same answer before and after, and no descriptor stays open. The tests run over plain
// HTTP and over HTTPS.
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "serving/server/http/http_server.h"
#include "tests/serving/server/http/fake_models.h"
#include "tests/serving/server/http/raw_client.h"
#include "tests/serving/server/http/tls_client.h"

namespace frostpipe {
namespace {

using namespace std::chrono_literals;
using test::post;
using test::RawClient;
using test::Reply;

constexpr const char* kValid =
    R"({"id":"1","inputs":[{"name":"input_ids","shape":[2,3],"datatype":"INT64","data":[1,7,2,1,8,2]}]})";
const std::set<int> kStatuses = {200, 400, 404, 405, 411, 413, 414, 415, 416, 431};

std::unique_ptr<RawClient> connected(int port, bool is_encrypted) {
  if (is_encrypted) return std::make_unique<test::TlsClient>(port);
  return std::make_unique<RawClient>(port);
}

class Hostile {
 public:
  Hostile(int port, bool is_encrypted) : port_(port), is_encrypted_(is_encrypted) {}

  /// One of the kinds of malformed requests: the server may end the connection, or answer with one of kStatuses.
  void send(int kind) {
    const auto client = connected(port_, is_encrypted_);
    switch (kind) {
      case 0:
        client->send(random_bytes(300));
        break;
      case 1:
        client->send(post("texts", mutated(kValid)));
        break;
      case 2:
        client->send(mutated(post("texts", kValid)));
        break;
      case 3:
        client->send(with_length(std::string(kValid).size() + 1 + random_() % 100));
        break;
      case 4:
        client->send(with_length(random_() % std::string(kValid).size()));
        break;
      case 5:
        client->send(post("texts", kValid).substr(0, random_() % post("texts", kValid).size()));
        break;
      case 6:
        client->send(chunked());
        break;
      case 7:
        client->send(post("texts", random_shape()));
        break;
      case 8:
        client->send(post("texts", random_bytes(300)));
        break;
      default:
        client->send(post("texts", kValid).substr(0, random_() % 250)), client->reset();
        return;
    }
    client->half_close();
    while (const auto reply = client->receive()) {
      ++statuses[reply->status];
      EXPECT_TRUE(kStatuses.contains(reply->status)) << reply->status << " " << reply->body << " kind " << kind;
    }
  }

  std::map<int, int> statuses;

 private:
  std::string random_bytes(int most) {
    std::string bytes(1 + random_() % most, ' ');
    for (char& byte : bytes) byte = static_cast<char>(random_());
    return bytes + (random_() % 2 == 0 ? "\r\n\r\n" : "");
  }
  std::string mutated(std::string text) {
    for (unsigned i = 0, changes = 1 + random_() % 4; i < changes && !text.empty(); ++i) {
      const std::size_t at = random_() % text.size();
      switch (random_() % 4) {
        case 0:
          text[at] = static_cast<char>(random_());
          break;
        case 1:
          text.erase(at, 1 + random_() % 8);
          break;
        case 2:
          text.insert(at, text.substr(random_() % text.size(), random_() % 20));
          break;
        default:
          text[at] = "0123456789[]{}\",:-e.\r\n "[random_() % 24];
          break;
      }
    }
    return text;
  }
  std::string with_length(std::size_t length) {
    return "POST /v2/models/texts/infer HTTP/1.1\r\nContent-Length: " + std::to_string(length) + "\r\n\r\n" + kValid;
  }
  std::string chunked() {
    return "POST /v2/models/texts/infer HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" +
           mutated("10\r\n" + std::string(kValid).substr(0, 16) + "\r\n5\r\n" + std::string(kValid).substr(16, 5) +
                   "\r\n0\r\n\r\n");
  }
  std::string random_shape() {
    const auto dimension = [&] { return std::to_string(static_cast<std::int64_t>(random_()) - (1 << 30)); };
    return R"({"inputs":[{"name":"input_ids","datatype":"INT64","data":[1],"shape":[)" + dimension() + "," +
           dimension() + "]}]}";
  }

  int port_;
  bool is_encrypted_;
  std::mt19937 random_{7};
};

class HostileClients : public testing::TestWithParam<bool> {
 protected:
  static HttpServerOptions options() { return {.port = 0, .tls = is_encrypted() ? test::tls_identity() : nullptr}; }
  static HttpServerOptions patient_for(std::chrono::milliseconds patience) {
    HttpServerOptions with_patience = options();
    with_patience.patience = patience;
    return with_patience;
  }
  static bool is_encrypted() { return GetParam(); }
  static std::unique_ptr<RawClient> connected(int port) { return frostpipe::connected(port, is_encrypted()); }
  /// Sends a request on a separate connection.
  static Reply reply_to(int port, std::string_view request) {
    const auto client = connected(port);
    client->send(request);
    return client->receive().value_or(Reply{});
  }

  test::FakeModels models;
};

INSTANTIATE_TEST_SUITE_P(Of, HostileClients, testing::Bool(),
                         [](const auto& given) { return given.param ? "Https" : "Http"; });

TEST_P(HostileClients, ThousandsOfMalformedRequestsChangeNothing) {
  const HttpServer server(models, patient_for(500ms));
  const std::string before = reply_to(server.port(), post("texts", kValid)).body;
  EXPECT_FALSE(before.empty());
  std::this_thread::sleep_for(50ms);
  const int num_open = test::num_open_descriptors();
  Hostile hostile(server.port(), is_encrypted());
  const int num_requests = is_encrypted() ? 1'000 : 10'000;  // handshakes take longer than requests
  for (int i = 0; i < num_requests && !testing::Test::HasFailure(); ++i) hostile.send(i % 10);
  EXPECT_GT(hostile.statuses[400], num_requests * 7 / 10) << "clients that have closed their sending half get answers";
  EXPECT_EQ(reply_to(server.port(), post("texts", kValid)).body, before);
  for (int i = 0; i < 200 && test::num_open_descriptors() > num_open; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_LE(test::num_open_descriptors(), num_open);
}

TEST_P(HostileClients, SlowOnesAreGoneAfterThePatience) {
  const HttpServer server(models, patient_for(200ms));
  const std::string request = post("texts", kValid);
  std::vector<std::unique_ptr<RawClient>> clients;
  for (const std::size_t sent : {std::size_t{0}, std::size_t{1}, std::size_t{40}, request.size() - 1}) {
    clients.push_back(connected(server.port()));
    clients.back()->send(request.substr(0, sent));
  }
  const auto begin = std::chrono::steady_clock::now();
  for (const auto& client : clients) EXPECT_TRUE(client->ends_within(2s));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 150ms);
}

TEST_P(HostileClients, ClientsThatSendAByteNowAndThenAreDisconnectedToo) {
  const HttpServer server(models, patient_for(200ms));
  const std::string request = post("texts", kValid);
  for (const std::size_t at_once : {std::size_t{0}, request.size() - 60}) {
    const auto client = connected(server.port());
    client->send(request.substr(0, at_once));
    bool is_over = false;
    for (std::size_t i = at_once; i < at_once + 60 && !is_over; ++i) {
      client->send(request.substr(i, 1));
      is_over = client->ends_within(50ms);
    }
    EXPECT_TRUE(is_over);
  }
}

TEST_P(HostileClients, ALongBodyMayTakeLongerThanThePatienceWhileItComesOn) {
  const HttpServer server(models, patient_for(300ms));
  const std::string request = post("texts", std::string(400'000, ' ') + kValid);
  const auto client = connected(server.port());
  const auto begin = std::chrono::steady_clock::now();
  for (std::size_t at = 0; at < request.size(); at += 80'000) {
    client->send(std::string_view(request).substr(at, 80'000));
    std::this_thread::sleep_for(100ms);
  }
  EXPECT_EQ(client->receive().value_or(Reply{}).status, 200);
  EXPECT_GT(std::chrono::steady_clock::now() - begin, 400ms);
}

TEST_P(HostileClients, ClientsThatReceiveNothingAreDisconnectedAfterTheTimeLimit) {
  models.worker_states.resize(20'000);  // a page of metrics larger than any socket's buffer
  const HttpServer server(models, patient_for(200ms));
  const int num_open = test::num_open_descriptors();
  const auto client = connected(server.port());
  for (int i = 0; i < 4; ++i) client->send(test::get("/metrics"));
  for (const int expected :
       {num_open + 2, num_open + 1}) {  // first our end of the connection and the server's, then only ours
    for (int i = 0; i < 200 && test::num_open_descriptors() != expected; ++i) std::this_thread::sleep_for(10ms);
  }
  EXPECT_EQ(test::num_open_descriptors(), num_open + 1);
}

TEST_P(HostileClients, AVeryLongRangeIsNotLookedAt) {
  const HttpServer server(models, options());
  std::string ranges = "bytes=0-1";
  while (ranges.size() < 8000) ranges += ",0-1";
  EXPECT_EQ(reply_to(server.port(), "GET /metrics HTTP/1.1\r\nRange: " + ranges + "\r\n\r\n").status, 200);
}

TEST_P(HostileClients, AnObjectOfManyKeysIsRefusedWhileItIsParsed) {
  const HttpServer server(models, options());
  std::string body = R"({"parameters":{)";
  for (int i = 0; i < 800'000; ++i) body += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":0";
  const Reply reply = reply_to(server.port(), post("texts", body + "}}"));
  EXPECT_EQ(reply.status, 400);
  EXPECT_NE(reply.body.find("at most 1024 keys"), std::string::npos) << reply.body;
}

TEST_P(HostileClients, AllBodiesTogetherHaveABudgetAndShortOnesNeedNone) {
  HttpServerOptions with_budget = options();
  with_budget.max_bytes_of_bodies = 250'000;
  const HttpServer server(models, with_budget);
  const std::string request = post("texts", std::string(200'000, ' ') + kValid);
  EXPECT_EQ(reply_to(server.port(), request).status, 200);
  // The connection that is read first has the budget, and two that are read at once may both be refused; then another
  // one begins.
  int status_of_slow = 0;
  for (int attempt = 0; attempt < 50 && status_of_slow != 200; ++attempt) {
    const auto slow = connected(server.port());
    slow->send(std::string_view(request).substr(0, request.size() - 10));
    Reply refused;
    for (int i = 0; i < 20 && refused.status != 503; ++i) refused = reply_to(server.port(), request);
    if (refused.status != 503) continue;
    EXPECT_NE(refused.head.find("Retry-After: 1\r\n"), std::string::npos) << refused.head;
    EXPECT_EQ(reply_to(server.port(), post("texts", kValid)).status, 200);
    slow->send(std::string_view(request).substr(request.size() - 10));
    status_of_slow = slow->receive().value_or(Reply{}).status;
  }
  EXPECT_EQ(status_of_slow, 200);
  EXPECT_EQ(reply_to(server.port(), request).status, 200);
}

TEST_P(HostileClients, WithoutTheKeyTheyGetOnlyTheHealth) {
  HttpServerOptions with_key = options();
  with_key.api_key = "0123456789abcdef";
  const HttpServer server(models, with_key);
  const auto asked_with = [&](std::string_view header) {
    return reply_to(server.port(), post("texts", kValid, header)).status;
  };
  EXPECT_EQ(asked_with("Authorization: Bearer 0123456789abcdef\r\n"), 200);
  EXPECT_EQ(asked_with("authorization: bearer 0123456789abcdef\r\n"), 200);
  EXPECT_EQ(asked_with(""), 401);
  EXPECT_EQ(asked_with("Authorization: Bearer 0123456789abcdeF\r\n"), 401);
  EXPECT_EQ(asked_with("Authorization: Bearer 0123456789abcdef0\r\n"), 401);
  EXPECT_EQ(asked_with("Authorization: Bearer \r\n"), 401);
  EXPECT_EQ(asked_with("Authorization: Basic 0123456789abcdef\r\n"), 401);
  EXPECT_EQ(asked_with("Authorization: Bearer 0123456789abcdef\r\nAuthorization: Bearer x\r\n"), 401);
  EXPECT_EQ(models.num_asked, 4);
  for (const char* path : {"/metrics", "/v2", "/v2/models/texts", "/v2/models/texts/ready", "/anything"})
    EXPECT_EQ(reply_to(server.port(), test::get(path)).status, 401) << path;
  EXPECT_EQ(reply_to(server.port(), test::get("/v2/health/live")).status, 200);
  EXPECT_EQ(reply_to(server.port(), test::get("/v2/health/ready")).status, 200);
  const Reply refused = reply_to(server.port(), test::get("/v2"));
  EXPECT_NE(refused.head.find("WWW-Authenticate: Bearer\r\n"), std::string::npos) << refused.head;
  EXPECT_TRUE(refused.body.starts_with(R"({"error":)")) << refused.body;
}

}  // namespace
}  // namespace frostpipe
