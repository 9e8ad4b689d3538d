// Oracle: OpenSSL's own client, which verifies the server; RFC 8446, RFC 5246.
#include "serving/server/http/tls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "serving/server/http/http_server.h"
#include "tests/serving/server/http/fake_models.h"
#include "tests/serving/server/http/raw_client.h"
#include "tests/serving/server/http/tls_client.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using namespace std::chrono_literals;
using test::client_hello;
using test::get;
using test::post;
using test::RawClient;
using test::Reply;
using test::self_signed;
using test::TlsClient;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kText = R"({"inputs":[{"name":"text","shape":[1],"datatype":"BYTES","data":["a"]}]})";

class TlsServer : public testing::Test {
 protected:
  int port() {
    if (!server_) {
      server_ = std::make_unique<HttpServer>(models_, options_);
      EXPECT_EQ(status_of(get("/v2/health/live")), 200);  // OpenSSL has opened the files that it keeps open
    }
    return server_->port();
  }
  int status_of(std::string_view request) {
    TlsClient client(server_->port());
    EXPECT_TRUE(client.is_established());
    client.send(request);
    return client.receive().value_or(Reply{}).status;
  }
  /// Returns whether there are no more within two seconds.
  static bool has_descriptors(int count) {
    for (int i = 0; i < 200 && test::num_open_descriptors() > count; ++i) std::this_thread::sleep_for(10ms);
    return test::num_open_descriptors() <= count;
  }

  test::FakeModels models_;
  HttpServerOptions options_ = {.port = 0, .tls = test::tls_identity()};
  std::unique_ptr<HttpServer> server_;
};

TEST_F(TlsServer, AnswersRequestAfterRequestAndSaysWhenItEnds) {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsClient client(port(), version);
    ASSERT_TRUE(client.is_established());
    EXPECT_EQ(client.version(), version == TLS1_2_VERSION ? "TLSv1.2" : "TLSv1.3");
    client.send(get("/v2/health/ready") + post("texts", kText));
    EXPECT_EQ(client.receive().value().status, 200);
    EXPECT_THAT(client.receive().value().body, HasSubstr(R"("data":["odd"])"));
    client.send("GET /v2 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    EXPECT_EQ(client.receive().value().status, 200);
    EXPECT_FALSE(client.receive());
    EXPECT_TRUE(client.has_been_told_the_end());
  }
}

TEST_F(TlsServer, BodiesAndAnswersOfManyRecordsAreWhole) {
  models_.worker_states.resize(20'000);  // a page of metrics of megabytes
  TlsClient client(port());
  client.send(post("texts", std::string(3'000'000, ' ') + kText));
  EXPECT_THAT(client.receive().value().body, HasSubstr(R"("data":["odd"])"));
  client.send(get("/metrics"));
  const Reply metrics = client.receive().value();
  EXPECT_GT(metrics.body.size(), 1'000'000);
  EXPECT_TRUE(metrics.body.ends_with('\n'));
}

TEST_F(TlsServer, OldVersionsAreRefused) {
  for (const int version : {TLS1_VERSION, TLS1_1_VERSION}) {
    EXPECT_FALSE(TlsClient(port(), version).is_established());
  }
}

TEST_F(TlsServer, PlainHttpIsNotAnsweredAndChangesNothing) {
  port();
  const int num_open = test::num_open_descriptors();
  for (int i = 0; i < 100; ++i) {
    RawClient plain(port());
    plain.send(i % 2 == 0 ? post("texts", kText) : get("/metrics"));
    EXPECT_FALSE(plain.receive());
  }
  EXPECT_EQ(models_.num_asked, 0);
  EXPECT_TRUE(has_descriptors(num_open));
  EXPECT_EQ(status_of(post("texts", kText)), 200);
}

TEST_F(TlsServer, GarbageInsteadOfAHandshakeChangesNothing) {
  port();
  const int num_open = test::num_open_descriptors();
  const std::string hello = client_hello();
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    const std::size_t kept = i % 2 == 0 ? 0 : 5;  // a record's own head
    std::string bytes =
        kept == 0 ? hello : std::string("\x16\x03\x01\x01\x00", 5) + std::string(1 + random() % 300, ' ');
    for (unsigned change = 0, changes = 1 + random() % 8; change < changes; ++change)
      bytes[kept + random() % (bytes.size() - kept)] = static_cast<char>(random());
    RawClient client(port());
    client.send(bytes);
    client.half_close();
    ASSERT_TRUE(client.ends_within(10s)) << i;
  }
  EXPECT_TRUE(has_descriptors(num_open));
  EXPECT_EQ(status_of(post("texts", kText)), 200);
}

TEST_F(TlsServer, StalledHandshakesDelayNoOtherClientAndEndAfterTheTimeLimit) {
  options_.patience = 500ms;
  port();
  const std::string hello = client_hello();
  std::vector<std::unique_ptr<RawClient>> clients;
  const auto begin = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < 40; ++i) {
    clients.push_back(std::make_unique<RawClient>(port()));
    clients.back()->send(std::string_view(hello).substr(0, i % 4 == 0 ? hello.size() : i));  // or before it has begun
  }
  EXPECT_EQ(status_of(post("texts", kText)), 200);
  for (const auto& client : clients) EXPECT_TRUE(client->ends_within(5s));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 400ms);
  RawClient byte_by_byte(port());
  bool is_over = false;
  for (std::size_t i = 0; i < 60 && !is_over; ++i) {
    byte_by_byte.send(hello.substr(i, 1));
    is_over = byte_by_byte.ends_within(50ms);
  }
  EXPECT_TRUE(is_over);
}

TEST_F(TlsServer, HundredsOfStalledHandshakesMakeWayForARequest) {
  options_.patience = 1min;
  port();
  const std::string hello = client_hello();
  std::vector<std::unique_ptr<RawClient>> stalled;
  for (int i = 0; i < 300; ++i) {
    stalled.push_back(std::make_unique<RawClient>(port()));
    stalled.back()->send(hello);
  }
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(status_of(get("/v2/health/live")), 200);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 20s);
}

/// Each of these makes the server work without sending a byte of a request.
TEST_F(TlsServer, KeysThatAreChangedWithoutEndEndAfterThePatience) {
  options_.patience = 300ms;
  TlsClient client(port(), TLS1_3_VERSION);
  const auto begin = std::chrono::steady_clock::now();
  bool is_over = false;
  while (!is_over && std::chrono::steady_clock::now() - begin < 20s) {
    SSL_key_update(client.session(), SSL_KEY_UPDATE_NOT_REQUESTED);
    is_over = SSL_do_handshake(client.session()) != 1;
  }
  EXPECT_TRUE(is_over);
  EXPECT_EQ(status_of(get("/v2/health/live")), 200);
}

TEST_F(TlsServer, AnotherHandshakeOfAConnectionIsRefused) {
  TlsClient client(port(), TLS1_2_VERSION);
  ASSERT_TRUE(client.is_established());
  EXPECT_EQ(SSL_renegotiate(client.session()), 1);
  EXPECT_NE(SSL_do_handshake(client.session()), 1);
}

TEST_F(TlsServer, ItsEndWaitsForNoHandshake) {
  options_.patience = 1min;
  RawClient silent(port()), half(port());
  half.send(client_hello());
  TlsClient idle(port());
  const auto begin = std::chrono::steady_clock::now();
  server_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
  EXPECT_TRUE(silent.ends_within(2s));
  EXPECT_TRUE(half.ends_within(2s));
  EXPECT_FALSE(idle.receive());
  EXPECT_TRUE(idle.has_been_told_the_end());
}

class TlsFiles : public test::ScratchFolderTest {
 protected:
  std::string refusal(const std::string& certificate, const std::string& key) const {
    const auto certificate_file = file("certificate.pem", certificate), key_file = file("key.pem", key);
    return message_of([&] { TlsIdentity(certificate_file, key_file); });
  }
  const std::string certificate = self_signed().certificate_pem(), key = self_signed().key_pem();
};

TEST_F(TlsFiles, ACertificateMayBeFollowedByItsAuthoritiesAndByItsKey) {
  EXPECT_EQ(refusal(certificate, key), "no InvalidInput");
  EXPECT_EQ(refusal(certificate + test::SelfSigned().certificate_pem(), key), "no InvalidInput");
  EXPECT_EQ(refusal(key + certificate, certificate + key), "no InvalidInput");
}

TEST_F(TlsFiles, TheirErrorsAreNamed) {
  const auto missing = folder_ / "none.pem";
  EXPECT_THAT(message_of([&] { TlsIdentity(missing, missing); }), StartsWith("none.pem: "));
  EXPECT_THAT(refusal("", key), StartsWith("certificate.pem: must hold a certificate in PEM form"));
  EXPECT_THAT(refusal(key, key), StartsWith("certificate.pem: must hold a certificate in PEM form"));
  EXPECT_THAT(refusal(certificate.substr(0, 300), key),
              StartsWith("certificate.pem: must hold a certificate in PEM form"));
  EXPECT_THAT(refusal(certificate + certificate.substr(0, 300), key),
              StartsWith("certificate.pem: has a further certificate that cannot be read"));
  EXPECT_THAT(refusal(certificate, certificate), StartsWith("key.pem: must hold a private key in PEM form"));
  EXPECT_THAT(refusal(certificate, "gibberish"), HasSubstr("`openssl req -x509"));
  const test::SelfSigned short_one(EVP_RSA_gen(512));
  EXPECT_THAT(refusal(short_one.certificate_pem(), short_one.key_pem()),
              StartsWith("certificate.pem: has a certificate that cannot be used: ee key too small; "));
  EXPECT_THAT(refusal(certificate, test::SelfSigned().key_pem()),
              StartsWith("key.pem: is not the key of the certificate in "));
  EXPECT_THAT(refusal(certificate, self_signed().key_pem("secret")),
              StartsWith("key.pem: must hold a key without a passphrase; `openssl pkey -in "));
}

}  // namespace
}  // namespace frostpipe
