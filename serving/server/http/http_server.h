#pragma once
#include <chrono>
#include <memory>
#include <string>

#include "serving/server/http/tls.h"
#include "serving/server/served_models.h"

namespace frostpipe {

struct HttpServerOptions {
  std::string host = "127.0.0.1";
  int port = 8000;  // 0: any free port
  /// A client that sends or receives less than 64 KiB within this time is disconnected. While other connections wait,
  /// the time to send is shorter.
  std::chrono::milliseconds patience = std::chrono::seconds(5);
  std::size_t max_body_bytes = std::size_t{64} << 20;  // longer bodies are refused
  /// Limit of the bodies of all requests that are being read or answered, not counting the first 64 KiB of each.
  std::size_t max_bytes_of_bodies = std::size_t{256} << 20;
  /// Key that clients must send as "Authorization: Bearer KEY", except for health requests. "" = no key is required.
  std::string api_key = {};
  /// Null: no encryption.
  std::shared_ptr<const TlsIdentity> tls = {};
};

/// Throws InvalidInput that names host and port if it is impossible to listen there now; 0 is any port.
void require_free_port(const std::string& host, int port);

/// Serves the models over HTTP/1.1 with the Open Inference Protocol, version 2:
///
///   GET  /v2, /v2/models/NAME                               the models, or one's inputs and outputs
///   GET  /v2/health/live, /v2/health/ready, /v2/models/NAME/ready
///   POST /v2/models/NAME/infer                              one request per row of the input
///   GET  /metrics                                           for Prometheus
///
/// Inputs and outputs are JSON tensors, described in docs/serving_http.md. A dropped request is answered with 503, a
/// failed one with 500, one without the key with 401, and an invalid one with 400 (404, 405, 411, ... for some
/// reasons), each with {"error": "..."}.
class HttpServer {
 public:
  /// Starts to listen; `models` must outlive the server. Throws InvalidInput that names host and port if it cannot
  /// listen.
  HttpServer(ServedModels& models, const HttpServerOptions& options);
  /// Accepts no more requests, answers those in progress, and returns.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  int port() const;
  /// True if other hosts can reach it.
  bool is_beyond_loopback() const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace frostpipe
