#pragma once
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/descriptor.h"

namespace frostpipe::test {

struct Reply {
  int status = 0;
  std::string head, body;
};

/// Sends any bytes to a port of this host.
class RawClient {
 public:
  explicit RawClient(int port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    is_connected_ = connect(socket_.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    EXPECT_TRUE(is_connected_);
  }
  virtual ~RawClient() = default;

  /// Returns false if the connection ends before all bytes are sent.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = put(bytes.data(), bytes.size());
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  virtual void half_close() { shutdown(socket_.number(), SHUT_WR); }
  /// Resets the connection.
  void reset() {
    const linger at_once = {.l_onoff = 1, .l_linger = 0};
    setsockopt(socket_.number(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    socket_.close();
  }

  /// Returns the next answer; none if the connection ends before it, or if nothing arrives for 10 s.
  std::optional<Reply> receive() {
    while (true) {
      const std::size_t end = received_.find("\r\n\r\n");
      if (end != std::string::npos) {
        Reply reply = {.status = std::stoi(received_.substr(9, 3)), .head = received_.substr(0, end + 2)};
        if (reply.status != 100) {
          const std::size_t length = reply.head.find("Content-Length: ");
          EXPECT_NE(length, std::string::npos) << reply.head;
          const std::size_t size = std::stoul(reply.head.substr(length + 16));
          while (received_.size() < end + 4 + size && receive_more()) {
          }
          reply.body = received_.substr(end + 4, size);
          received_.erase(0, end + 4 + size);
          return reply;
        }
        received_.erase(0, end + 4);
        return reply;
      }
      if (!receive_more()) return std::nullopt;
    }
  }
  /// Returns whether the server ends the connection within the time; data received until then are kept for receive().
  bool ends_within(std::chrono::milliseconds time) {
    const auto deadline = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < deadline) {
      if (!receive_more(100)) return true;
    }
    return false;
  }

 protected:
  int descriptor() const { return socket_.number(); }
  virtual ssize_t put(const char* from, std::size_t size) { return ::send(socket_.number(), from, size, MSG_NOSIGNAL); }
  /// -1 with EAGAIN means that there are no data yet.
  virtual ssize_t take(char* to, std::size_t size) { return recv(socket_.number(), to, size, 0); }

 private:
  bool receive_more(int timeout_ms = 10'000) {
    pollfd asked{.fd = socket_.number(), .events = POLLIN, .revents = 0};
    if (poll(&asked, 1, timeout_ms) <= 0) return timeout_ms < 10'000;
    std::array<char, 65536> bytes{};
    errno = 0;
    const ssize_t received = take(bytes.data(), bytes.size());
    if (received < 0 && errno == EAGAIN) return true;
    if (received <= 0) return false;
    received_.append(bytes.data(), static_cast<std::size_t>(received));
    return true;
  }

  Descriptor socket_;
  bool is_connected_ = false;
  std::string received_;
};

inline std::string post(std::string_view model, std::string_view body, std::string_view more_headers = "") {
  return fmt::format(
      "POST /v2/models/{}/infer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Content-Length: {}\r\n{}\r\n{}",
      model, body.size(), more_headers, body);
}

inline std::string get(std::string_view path, std::string_view method = "GET") {
  return fmt::format("{} {} HTTP/1.1\r\nHost: localhost\r\n\r\n", method, path);
}

/// Sends a request on a separate connection.
inline Reply reply_to(int port, std::string_view request) {
  RawClient client(port);
  client.send(request);
  return client.receive().value_or(Reply{});
}

inline int num_open_descriptors() {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

}  // namespace frostpipe::test
