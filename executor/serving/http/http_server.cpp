#include "executor/serving/http/http_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <httplib.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <strings.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <optional>
#include <thread>
#include <utility>

#include "executor/serving/http/client_socket.h"
#include "executor/serving/http/connection_threads.h"
#include "executor/serving/http/http_routes.h"
#include "profiles/error.h"
#include "profiles/system_reason.h"

namespace frostpipe {
namespace {

/// Requests wait in their threads for their answers: so many may wait at a time.
constexpr std::size_t kMostThreads = 256;
/// Connections that wait for a thread; others are closed.
constexpr std::size_t kMostWaiting = 768;
/// Of one connection.
constexpr int kMostRequests = 10'000;
/// httplib finds a path by recursion.
constexpr std::size_t kLongestPath = 1024;
/// The sizes of a body's chunks, which are read beside it.
constexpr std::size_t kMostChunkSizes = 1 << 20;

/// httplib asks it for bytes one by one.
class ClientStream final : public httplib::Stream {
 public:
  explicit ClientStream(ClientSocket& socket) : socket_(socket) {}
  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  ssize_t read(char* to, std::size_t size) override { return socket_.read(to, size); }
  ssize_t write(const char* from, std::size_t size) override { return socket_.write(from, size); }
  void get_remote_ip_and_port(std::string& ip, int& port) const override { ip.clear(), port = 0; }
  void get_local_ip_and_port(std::string& ip, int& port) const override { ip.clear(), port = 0; }
  /// Looked at only to refuse sockets of large numbers, which select() cannot wait for.
  socket_t socket() const override { return 0; }

 private:
  ClientSocket& socket_;
};

bool is_same(std::string_view one, std::string_view other) {
  return one.size() == other.size() && strncasecmp(one.data(), other.data(), one.size()) == 0;
}

bool is_chunked(const httplib::Request& request) { return request.has_header("Transfer-Encoding"); }

/// Bytes; none where the header is missing, given twice or no number.
std::optional<std::size_t> content_length(const httplib::Request& request) {
  const std::string text = request.get_header_value("Content-Length");
  if (request.get_header_value_count("Content-Length") != 1 || text.empty() || text.size() > 18) return std::nullopt;
  if (!std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; })) return std::nullopt;
  return std::stoull(text);
}

bool has_body(const httplib::Request& request) {
  return is_chunked(request) || (request.has_header("Content-Length") && content_length(request) != 0u);
}

bool is_json(const httplib::Request& request) {
  if (!request.has_header("Content-Type")) return true;
  const std::string type = request.get_header_value("Content-Type");
  std::string_view name = std::string_view(type).substr(0, type.find(';'));
  while (name.ends_with(' ')) name.remove_suffix(1);
  return is_same(name, "application/json");
}

/// Why the body of a request to infer cannot be read; none: it can.
std::optional<HttpAnswer> body_refusal(const httplib::Request& request, std::size_t most_bytes) {
  if (request.has_header("Inference-Header-Content-Length"))
    return http_error(400,
                      "header Inference-Header-Content-Length: must not be given: tensors are JSON here, without "
                      "the extension for binary ones");
  if (!is_json(request))
    return http_error(415, "header Content-Type: must be application/json, is " +
                               request.get_header_value("Content-Type") +
                               "; curl says it with -H 'Content-Type: application/json'");
  if (request.has_header("Content-Encoding"))
    return http_error(415,
                      "header Content-Encoding: must not be given, is " + request.get_header_value("Content-Encoding"));
  if (is_chunked(request)) {
    if (request.has_header("Content-Length") || request.get_header_value_count("Transfer-Encoding") != 1 ||
        !is_same(request.get_header_value("Transfer-Encoding"), "chunked"))
      return http_error(400, "header Transfer-Encoding: must be chunked, and stand alone");
    return std::nullopt;
  }
  if (!request.has_header("Content-Length")) return http_error(411, "header Content-Length: must be given");
  const std::optional<std::size_t> length = content_length(request);
  if (!length) return http_error(400, "header Content-Length: must be one number of bytes");
  if (*length > most_bytes)
    return http_error(413, fmt::format("header Content-Length: must be at most {} bytes, is {}", most_bytes, *length));
  return std::nullopt;
}

void give(const HttpAnswer& answer, httplib::Response& response) {
  response.status = answer.status;
  response.set_content(answer.body, answer.content_type);
  for (const auto& [name, value] : answer.headers) response.set_header(name, value);
}

struct sigaction sigpipe_action() {
  struct sigaction action = {};
  sigaction(SIGPIPE, nullptr, &action);
  return action;
}

}  // namespace

/// httplib reads requests and writes answers. It listens, too, but accepting and waiting is done here: its own sockets
/// are inherited by child processes, wait by select(), and are held open for as long as a client sends a byte in time;
/// and after an error it would take the rest of a body for the next request.
class HttpServer::Implementation : private httplib::Server {
 public:
  Implementation(ServedModels& models, const HttpServerOptions& options)
      : Implementation(models, options, sigpipe_action()) {}

  ~Implementation() override {
    is_ending_ = true;
    ::shutdown(listener_.number(), SHUT_RDWR);  // wakes accept()
    acceptor_.join();
  }

  int port() const { return port_; }

 private:
  /// httplib makes the process ignore SIGPIPE for good. Nothing here raises it, so it is left as it was.
  Implementation(ServedModels& models, const HttpServerOptions& options, const struct sigaction& sigpipe)
      : options_(options),
        routes_(models),
        threads_(kMostThreads, kMostWaiting, [this](Descriptor connection) { serve(std::move(connection)); }) {
    sigaction(SIGPIPE, &sigpipe, nullptr);
    set_handlers();
    open();
    acceptor_ = std::thread([this] { accept_all(); });
  }

  void open() {
    // httplib lets several servers share a port.
    set_socket_options([](socket_t socket) {
      const int yes = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    addrinfo* found = nullptr;
    if (const int error = getaddrinfo(options_.host.c_str(), nullptr, nullptr, &found); error != 0)
      throw InvalidInput(
          fmt::format("{}:{}: cannot be listened on: {}", options_.host, options_.port, gai_strerror(error)));
    freeaddrinfo(found);
    if (options_.port == 0) {
      port_ = bind_to_any_port(options_.host);
    } else {
      port_ = bind_to_port(options_.host, options_.port) ? options_.port : -1;
    }
    if (port_ < 0)
      throw InvalidInput(
          fmt::format("{}:{}: cannot be listened on: {}", options_.host, options_.port, system_reason(errno)));
    listener_ = Descriptor(svr_sock_.exchange(INVALID_SOCKET));
    // More clients than httplib's five may come between two calls of accept().
    if (::listen(listener_.number(), SOMAXCONN) != 0 || fcntl(listener_.number(), F_SETFD, FD_CLOEXEC) != 0)
      throw InvalidInput(
          fmt::format("{}:{}: cannot be listened on: {}", options_.host, options_.port, system_reason(errno)));
  }

  void set_handlers() {
    set_keep_alive_max_count(kMostRequests);
    set_keep_alive_timeout(std::chrono::ceil<std::chrono::seconds>(options_.patience).count());
    set_pre_routing_handler([this](const auto& request, auto& response) {
      const std::optional<HttpAnswer> answer = answer_before_body(request);
      if (answer) give(*answer, response);
      return answer ? HandlerResponse::Handled : HandlerResponse::Unhandled;
    });
    set_expect_100_continue_handler([this](const auto& request, auto& response) {
      const std::optional<HttpAnswer> answer = answer_before_body(request);
      if (!answer || answer->status < 400) return 100;
      give(*answer, response);
      return answer->status;
    });
    Post(".*", [this](const auto& request, auto& response, const auto& read) { infer(request, response, read); });
    set_exception_handler([](const auto&, auto& response, std::exception_ptr thrown) {
      try {
        std::rethrow_exception(thrown);
      } catch (const std::exception& error) {
        give(http_error(500, error.what()), response);
      } catch (...) {
        give(http_error(500, "the request failed"), response);
      }
    });
    set_error_handler([](const auto&, auto& response) {
      if (response.body.empty())
        give(http_error(response.status, "the request cannot be understood as HTTP/1.1"), response);
    });
  }

  /// None where the request's body is what it depends on.
  std::optional<HttpAnswer> answer_before_body(const httplib::Request& request) const {
    if (request.path.size() > kLongestPath)
      return http_error(414, fmt::format("a path must have at most {} bytes", kLongestPath));
    if (request.method == "POST" && !routes_.inferred_model(request.path).empty())
      return body_refusal(request, options_.most_body_bytes);
    const HttpAnswer answer = routes_.answer(request.method, request.path);
    if (answer.status < 400 && has_body(request)) return http_error(400, "a body must not be sent here");
    return answer;
  }

  void infer(const httplib::Request& request, httplib::Response& response, const httplib::ContentReader& read) {
    std::string body;
    bool is_too_long = false;
    const bool is_read = read([&](const char* bytes, std::size_t size) {
      is_too_long = body.size() + size > options_.most_body_bytes;
      if (!is_too_long) body.append(bytes, size);
      return !is_too_long;
    });
    if (is_too_long)
      give(http_error(413, fmt::format("a body must have at most {} bytes", options_.most_body_bytes)), response);
    else if (!is_read)
      give(http_error(400, "the body ended early, came too slowly, or is not what its headers say"), response);
    else
      give(routes_.infer(routes_.inferred_model(request.path), body), response);
  }

  void serve(Descriptor connection) {
    ClientSocket socket(std::move(connection), options_.patience,
                        [this](bool has_begun) { return is_ending_ || (!has_begun && threads_.are_all_busy()); });
    try {
      for (int i = 1; i <= kMostRequests && !is_ending_; ++i) {
        const ClientSocket::Head head = socket.receive_head();
        if (head == ClientSocket::Head::none) return;
        if (head != ClientSocket::Head::complete) return refuse_head(socket, head);
        if (!answer_one(socket, i == kMostRequests || threads_.are_all_busy())) return;
      }
    } catch (const std::exception&) {
      // There is no memory even for an answer of 500: the connection ends.
    }
  }

  /// Whether the connection may be used again.
  bool answer_one(ClientSocket& socket, bool is_last) {
    bool must_close = is_last, is_last_wish = false;
    std::optional<std::size_t> body_bytes;  // none: nobody knows where the body ends, or the head could not be read
    ClientStream stream(socket);
    const bool is_answered = process_request(stream, is_last, is_last_wish, [&](httplib::Request& request) {
      if (!has_body(request)) {
        body_bytes = 0;
      } else if (!is_chunked(request)) {
        body_bytes = content_length(request);
      }
      must_close |= !body_bytes || (has_body(request) && answer_before_body(request).has_value());
      socket.allow(body_bytes.value_or(2 * options_.most_body_bytes + kMostChunkSizes));
      request.headers.erase("Accept-Encoding");  // answers are small
      if (!must_close) return;
      request.headers.erase("Connection");
      request.headers.emplace("Connection", "close");
    });
    if (!is_answered) return false;
    const bool is_read_whole = body_bytes && socket.body_bytes() == *body_bytes;
    if (!is_read_whole) socket.finish();
    return is_read_whole && !must_close && !is_last_wish;
  }

  static void refuse_head(ClientSocket& socket, ClientSocket::Head head) {
    const bool is_too_long = head == ClientSocket::Head::too_long;
    const std::string why =
        is_too_long ? fmt::format("a request's head must have at most {} bytes", ClientSocket::kMostHeadBytes)
                    : "a request's head must be lines of the form \"Name: value\" that end in CR LF";
    const std::string body = http_error(0, why).body;
    const std::string answer = fmt::format(
        "HTTP/1.1 {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
        is_too_long ? "431 Request Header Fields Too Large" : "400 Bad Request", body.size(), body);
    if (socket.write(answer.data(), answer.size()) > 0) socket.finish();
  }

  void accept_all() {
    while (!is_ending_) {
      Descriptor connection(accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC));
      if (is_ending_) return;
      if (connection.is_open()) {
        const int yes = 1;
        setsockopt(connection.number(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        threads_.add(std::move(connection));
      } else if (errno != EINTR && errno != ECONNABORTED) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));  // no descriptors, or no memory, are left for now
      }
    }
  }

  const HttpServerOptions options_;
  HttpRoutes routes_;
  int port_ = 0;
  Descriptor listener_;
  std::atomic<bool> is_ending_ = false;
  ConnectionThreads threads_;
  std::thread acceptor_;
};

HttpServer::HttpServer(ServedModels& models, const HttpServerOptions& options)
    : implementation_(std::make_unique<Implementation>(models, options)) {}

HttpServer::~HttpServer() = default;

int HttpServer::port() const { return implementation_->port(); }

}  // namespace frostpipe
