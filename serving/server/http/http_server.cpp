#include "serving/server/http/http_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <httplib.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <optional>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/system_reason.h"
#include "serving/server/http/body_budget.h"
#include "serving/server/http/client_socket.h"
#include "serving/server/http/connection_threads.h"
#include "serving/server/http/http_routes.h"
#include "serving/server/http/request_head.h"

namespace frostpipe {
namespace {

/// The largest number of concurrent requests; each waits in its thread for its answer.
constexpr std::size_t kMaxThreads = 256;
/// The largest number of connections that wait for a thread, if there are descriptors for them.
constexpr std::size_t kMaxWaiting = 768;
/// While connections wait, and when the server ends, the patience is only so long; the second value holds for a client
/// that has not begun a request, and for all clients when the server ends.
constexpr std::chrono::milliseconds kPatienceUnderLoad{200}, kPatienceWithIdle{100};
/// The largest number of requests per connection.
constexpr int kMaxRequests = 10'000;
/// Longer paths are refused, since httplib matches them recursively.
constexpr std::size_t kLongestPath = 1024;
/// The largest size of a body's chunk headers, which are read in addition to it.
constexpr std::size_t kMaxChunkSizes = 1 << 20;

/// The connection that this thread serves; httplib does not pass it to handlers.
thread_local const ClientSocket* current_socket = nullptr;

/// Adapts a socket to httplib, which reads byte by byte.
class ClientStream final : public httplib::Stream {
 public:
  explicit ClientStream(ClientSocket& socket) : socket_(socket) {}
  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  ssize_t read(char* to, std::size_t size) override { return socket_.read(to, size); }
  ssize_t write(const char* from, std::size_t size) override { return socket_.write(from, size); }
  void get_remote_ip_and_port(std::string& ip, int& port) const override { ip.clear(), port = 0; }
  void get_local_ip_and_port(std::string& ip, int& port) const override { ip.clear(), port = 0; }
  /// httplib only uses it to refuse large descriptors, for which select() does not work.
  socket_t socket() const override { return 0; }

 private:
  ClientSocket& socket_;
};

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

InvalidInput cannot_listen(const std::string& host, int port, const std::string& why) {
  return InvalidInput(fmt::format("{}:{}: cannot be listened on: {}", host, port, why));
}

}  // namespace

void require_free_port(const std::string& host, int port) {
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  if (const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found); error != 0)
    throw cannot_listen(host, port, gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, freeaddrinfo);
  int reason = 0;
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    const Descriptor socket(::socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC, address->ai_protocol));
    const int yes = 1;
    if (socket.is_open()) setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (socket.is_open() && bind(socket.number(), address->ai_addr, address->ai_addrlen) == 0) return;
    reason = errno;
  }
  throw cannot_listen(host, port, system_reason(reason));
}

/// Uses httplib to parse requests and write answers, and to open the listening socket. Accepting and waiting are done
/// here, because httplib's sockets are inherited by child processes, use select(), and stay open as long as a client
/// sends a byte in time, and because after an error it would read the rest of a body as the next request.
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

  bool is_beyond_loopback() const {
    sockaddr_storage address = {};
    socklen_t size = sizeof address;
    getsockname(listener_.number(), reinterpret_cast<sockaddr*>(&address), &size);
    if (address.ss_family == AF_INET)
      return ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 24 != 127;
    return address.ss_family != AF_INET6 ||
           !IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
  }

 private:
  /// Restores SIGPIPE, which httplib ignores for the whole process. This code never raises it.
  Implementation(ServedModels& models, const HttpServerOptions& options, const struct sigaction& sigpipe)
      : options_(options),
        routes_(models),
        budget_(options.max_bytes_of_bodies),
        threads_(max_connections(kMaxThreads + kMaxWaiting), kMaxThreads,
                 [this](Descriptor connection) { serve(std::move(connection)); }) {
    sigaction(SIGPIPE, &sigpipe, nullptr);
    set_handlers();
    open();
    acceptor_ = std::thread([this] { accept_all(); });
  }

  void open() {
    // SO_REUSEPORT, by which httplib would let several servers share a port, is not set.
    set_socket_options([](socket_t socket) {
      const int yes = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    addrinfo* found = nullptr;
    if (const int error = getaddrinfo(options_.host.c_str(), nullptr, nullptr, &found); error != 0)
      throw cannot_listen(options_.host, options_.port, gai_strerror(error));
    freeaddrinfo(found);
    if (options_.port == 0) {
      port_ = bind_to_any_port(options_.host);
    } else {
      port_ = bind_to_port(options_.host, options_.port) ? options_.port : -1;
    }
    if (port_ < 0) throw cannot_listen(options_.host, options_.port, system_reason(errno));
    listener_ = Descriptor(svr_sock_.exchange(INVALID_SOCKET));
    // More clients than httplib's backlog of five may connect between two calls of accept().
    if (::listen(listener_.number(), SOMAXCONN) != 0 || fcntl(listener_.number(), F_SETFD, FD_CLOEXEC) != 0)
      throw cannot_listen(options_.host, options_.port, system_reason(errno));
  }

  void set_handlers() {
    set_keep_alive_max_count(kMaxRequests);
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
    Post(".*", [this](const auto& request, auto& response, const auto& read) {
      infer(request, response, read, *current_socket);
    });
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

  /// Returns the answer to a request that can be answered without its body; nothing for others.
  std::optional<HttpAnswer> answer_before_body(const httplib::Request& request) const {
    if (auto refusal = key_refusal(request, options_.api_key)) return refusal;
    if (request.path.size() > kLongestPath)
      return http_error(414, fmt::format("a path must have at most {} bytes", kLongestPath));
    if (request.method == "POST" && !routes_.inferred_model(request.path).empty())
      return body_refusal(request, options_.max_body_bytes);
    const HttpAnswer answer = routes_.answer(request.method, request.path);
    if (answer.status < 400 && has_body(request)) return http_error(400, "a body must not be sent here");
    return answer;
  }

  void infer(const httplib::Request& request, httplib::Response& response, const httplib::ContentReader& read,
             const ClientSocket& socket) {
    std::string body;
    BodyBudget::Share share(budget_);  // held until the answer, since the rows take memory too
    bool is_too_long = false, is_too_much = false;
    const bool is_read = read([&](const char* bytes, std::size_t size) {
      is_too_long = body.size() + size > options_.max_body_bytes;
      is_too_much = body.size() + size > HttpRoutes::kShortBody && !share.add(size);
      const bool is_accepted = !is_too_long && !is_too_much && !is_ending_;
      if (is_accepted) body.append(bytes, size);
      return is_accepted;
    });
    if (is_too_long)
      give(http_error(413, fmt::format("a body must have at most {} bytes", options_.max_body_bytes)), response);
    else if (is_too_much)
      give(busy_answer("the bodies of other requests take all memory that there is for them"), response);
    else if (!is_read && is_ending_)
      give(busy_answer("the server ends"), response);
    else if (!is_read)
      give(http_error(400, "the body ended early, came too slowly, or is not what its headers say"), response);
    else
      give(routes_.infer(routes_.inferred_model(request.path), std::move(body),
                         [&] { return !is_ending_ && !socket.is_disconnected(); }),
           response);
  }

  void serve(Descriptor connection) {
    try {
      ClientSocket socket(std::move(connection), options_.tls.get(), options_.patience,
                          [this](bool has_begun, std::chrono::milliseconds silent) {
                            const auto patience = has_begun && !is_ending_ ? kPatienceUnderLoad : kPatienceWithIdle;
                            return silent > patience && (is_ending_ || threads_.are_all_busy());
                          });
      for (int i = 1; i <= kMaxRequests && !is_ending_; ++i) {
        const ClientSocket::Head head = socket.receive_head();
        if (head == ClientSocket::Head::none) return;
        if (head != ClientSocket::Head::complete) return refuse_head(socket, head);
        if (!answer_one(socket, i == kMaxRequests || threads_.are_all_busy())) return;
      }
    } catch (const std::exception&) {
      // There is no memory for an answer of 500: close the connection.
    }
  }

  /// Returns whether the connection can be reused.
  bool answer_one(ClientSocket& socket, bool is_last) {
    bool must_close = is_last, client_closes = false;
    std::optional<std::size_t> body_bytes;  // not set if the end of the body is unknown, or the head could not be read
    ClientStream stream(socket);
    current_socket = &socket;
    const bool is_answered = process_request(stream, is_last, client_closes, [&](httplib::Request& request) {
      if (!has_body(request)) {
        body_bytes = 0;
      } else if (!is_chunked(request)) {
        body_bytes = content_length(request);
      }
      must_close |= !body_bytes || (has_body(request) && answer_before_body(request).has_value());
      socket.allow(body_bytes.value_or(2 * options_.max_body_bytes + kMaxChunkSizes));
      request.headers.erase("Accept-Encoding");  // answers are too small to compress
      if (!must_close) return;
      request.headers.erase("Connection");
      request.headers.emplace("Connection", "close");
    });
    if (!is_answered) return false;
    const bool is_read_whole = body_bytes && socket.body_bytes() == *body_bytes;
    if (!is_read_whole) socket.finish();
    return is_read_whole && !must_close && !client_closes;
  }

  static void refuse_head(ClientSocket& socket, ClientSocket::Head head) {
    const bool is_too_long = head == ClientSocket::Head::too_long;
    const std::string why =
        is_too_long ? fmt::format("a request's head must have at most {} bytes", ClientSocket::kMaxHeadBytes)
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
        try {
          threads_.add(std::move(connection));
        } catch (const std::exception&) {
          // no memory: close the connection
        }
      } else if (errno != EINTR && errno != ECONNABORTED) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));  // no descriptors or memory at present
      }
    }
  }

  const HttpServerOptions options_;
  HttpRoutes routes_;
  BodyBudget budget_;
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

bool HttpServer::is_beyond_loopback() const { return implementation_->is_beyond_loopback(); }

}  // namespace frostpipe
