#pragma once
#include <chrono>
#include <memory>
#include <string>

#include "serving/server/http/tls.h"
#include "serving/server/served_models.h"

namespace frostpipe {

struct HttpServerOptions {
  std::string host = "127.0.0.1";
  int port = 8000;  // 0: any that is free
  /// A client that sends nothing, or takes nothing, for so long is gone.
  std::chrono::milliseconds patience = std::chrono::seconds(5);
  std::size_t most_body_bytes = std::size_t{64} << 20;
  /// Of all requests that are being read or answered, but for the first 64 KiB of each.
  std::size_t most_bytes_of_bodies = std::size_t{256} << 20;
  /// Without it nothing but the health of the server is told: "Authorization: Bearer KEY". None: all may ask.
  std::string api_key = {};
  /// Null: HTTP without encryption.
  std::shared_ptr<const TlsIdentity> tls = {};
};

/// Serves the models over HTTP/1.1 in the form of the Open Inference Protocol, version 2:
///
///   GET  /v2, /v2/models/NAME                               what is served
///   GET  /v2/health/live, /v2/health/ready, /v2/models/NAME/ready
///   POST /v2/models/NAME/infer                              one request per row of the input
///   GET  /metrics                                           for Prometheus
///
/// Inputs and outputs are JSON tensors, described in docs/serving_http.md. A request that is dropped is answered with
/// 503, one that failed with 500, one without the key with 401, what cannot be understood with 400 and {"error":
/// "..."}.
class HttpServer {
 public:
  /// Listens at once; `models` outlives it. Throws InvalidInput that names host and port where it cannot.
  HttpServer(ServedModels& models, const HttpServerOptions& options);
  /// Takes no more requests, answers those it has, and returns.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  int port() const;
  /// Other hosts may reach it.
  bool is_beyond_loopback() const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace frostpipe
