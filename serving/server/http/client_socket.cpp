#include "serving/server/http/client_socket.h"

#include <poll.h>
#include <strings.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace frostpipe {
namespace {

using namespace std::chrono_literals;

constexpr auto kSlice = 100ms;
constexpr std::size_t kRenewalBytes = 64 << 10;
constexpr std::size_t kMaxThrownAway = 1 << 20;

bool names_field(std::string_view line, std::string_view name) {
  return line.size() > name.size() && line[name.size()] == ':' &&
         strncasecmp(line.data(), name.data(), name.size()) == 0;
}

}  // namespace

bool is_well_formed(std::string_view head) {
  for (bool is_first = true; !head.empty(); is_first = false) {
    const std::size_t end = head.find("\r\n");
    const std::string_view line = head.substr(0, end);
    if (end == std::string_view::npos || line.find('\n') != std::string_view::npos) return false;
    const std::size_t colon = line.find(':');
    const bool names_a_value = colon != 0 && colon != std::string_view::npos && line.find_first_of(": \t") == colon;
    if (!is_first && !line.empty() && !names_a_value) return false;
    head.remove_prefix(end + 2);
  }
  return true;
}

std::string without_field(std::string_view head, std::string_view name) {
  std::string kept;
  while (!head.empty()) {
    const std::size_t end = std::min(head.find('\n'), head.size() - 1) + 1;
    if (!names_field(head.substr(0, end), name)) kept += head.substr(0, end);
    head.remove_prefix(end);
  }
  return kept;
}

bool is_disconnected(const Descriptor& connection) {
  pollfd asked{.fd = connection.number(), .events = POLLRDHUP, .revents = 0};
  return poll(&asked, 1, 0) > 0;
}

ClientSocket::ClientSocket(Descriptor socket, const TlsIdentity* identity, std::chrono::milliseconds patience,
                           MustEnd must_end)
    : socket_(std::move(socket)), patience_(patience), must_end_(std::move(must_end)) {
  if (identity != nullptr) tls_.emplace(*identity, socket_.number());
}

bool ClientSocket::wait_for(short events, Clock::time_point deadline, bool may_end) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left <= 0ms) return false;
    if (may_end && must_end_(has_begun_, std::chrono::floor<std::chrono::milliseconds>(waited_))) return false;
    if (events == POLLIN && tls_ && tls_->has_pending()) return true;
    pollfd asked{.fd = socket_.number(), .events = events, .revents = 0};
    const auto most = std::min<std::chrono::milliseconds>(left, kSlice);
    const auto begin = Clock::now();
    const int found = poll(&asked, 1, static_cast<int>(most.count()));
    waited_ += std::min<Clock::duration>(Clock::now() - begin, most);  // any longer time was spent waiting for a core
    if (found > 0)
      return true;  // or the connection is broken, which the next
                    // call reports
    if (found < 0 && errno != EINTR) return false;
  }
}

/// Repeats `call`, which returns -1 if it would block, until it returns something else, has failed, or must not wait
/// any longer.
template <class Call>
ssize_t ClientSocket::wait_and_do(short events, Clock::time_point deadline, bool may_end, const Call& call) {
  while (wait_for(events, deadline, may_end)) {
    const ssize_t result = call();
    if (result >= 0) return result;
    if (tls_) events = tls_->events();
    if (tls_ ? events == 0 : errno != EINTR && errno != EAGAIN) return -1;
  }
  return -1;
}

bool ClientSocket::shake_hands() {
  renew();
  has_shaken_hands_ = wait_and_do(POLLIN, deadline_, true, [this] {
                        // The client may have left while it waited for a thread, and a handshake is expensive. Later
                        // it may only have closed its sending half, after its request.
                        const bool is_first = !std::exchange(has_begun_, true);
                        return is_first && is_disconnected() ? 0 : tls_->accept();
                      }) > 0;
  return has_shaken_hands_;
}

ssize_t ClientSocket::receive(char* to, std::size_t size) {
  const ssize_t received = wait_and_do(POLLIN, deadline_, true, [&] {
    return tls_ ? tls_->receive(to, size) : recv(socket_.number(), to, size, MSG_DONTWAIT);
  });
  if (received <= 0) return received;
  const auto count = static_cast<std::size_t>(received);
  if (count >= until_renewal_) {
    renew();
  } else {
    until_renewal_ -= count;
  }
  return received;
}

bool ClientSocket::receive_more() {
  std::array<char, 16 << 10> bytes{};
  const ssize_t received = receive(bytes.data(), bytes.size());
  if (received <= 0) return false;
  buffer_.append(bytes.data(), static_cast<std::size_t>(received));
  return true;
}

void ClientSocket::renew() {
  deadline_ = Clock::now() + patience_;
  waited_ = {};
  until_renewal_ = kRenewalBytes;
}

ClientSocket::Head ClientSocket::receive_head() {
  const bool is_new = tls_ && !has_shaken_hands_;
  if (is_new && !shake_hands()) return Head::none;
  buffer_.erase(0, std::exchange(begin_, 0));
  head_bytes_ = body_bytes_ = allowed_ = 0;
  has_begun_ = is_new || !buffer_.empty();  // after a handshake a request is expected
  renew();
  if (!has_begun_ && !receive_more()) return Head::none;
  has_begun_ = true;
  renew();
  while (true) {
    if (buffer_.starts_with("\r\n")) buffer_.erase(0, 2);  // some clients end a body with a newline
    const std::size_t end = buffer_.find("\n\r\n");        // the empty line, with httplib's criterion
    if (end != std::string::npos && end + 3 <= kMaxHeadBytes) {
      if (!is_well_formed(std::string_view(buffer_).substr(0, end + 3))) return Head::malformed;
      const std::string head = without_field(std::string_view(buffer_).substr(0, end + 3), "Range");
      buffer_.replace(0, end + 3, head);
      head_bytes_ = head.size();
      renew();
      return Head::complete;
    }
    if (buffer_.size() >= kMaxHeadBytes) return Head::too_long;
    if (!receive_more()) return Head::none;
  }
}

ssize_t ClientSocket::read(char* to, std::size_t size) {
  const bool is_body = head_bytes_ == 0;
  const std::size_t most = std::min(size, is_body ? allowed_ - body_bytes_ : head_bytes_);
  if (most == 0) return -1;
  if (begin_ == buffer_.size()) {
    buffer_.clear();
    begin_ = 0;
    if (!receive_more()) return -1;
  }
  const std::size_t count = std::min(most, buffer_.size() - begin_);
  buffer_.copy(to, count, begin_);
  begin_ += count;
  if (is_body) {
    body_bytes_ += count;
  } else {
    head_bytes_ -= count;
  }
  return static_cast<ssize_t>(count);
}

ssize_t ClientSocket::write(const char* from, std::size_t size) {
  std::size_t written = 0, until_renewal = kRenewalBytes;
  auto deadline = Clock::now() + patience_;
  while (written < size) {
    const ssize_t sent = wait_and_do(POLLOUT, deadline, false, [&] {
      return tls_ ? tls_->send(from + written, size - written)
                  : send(socket_.number(), from + written, size - written, MSG_DONTWAIT | MSG_NOSIGNAL);
    });
    if (sent <= 0) return -1;
    const auto count = static_cast<std::size_t>(sent);
    written += count;
    if (count >= until_renewal) {
      deadline = Clock::now() + patience_;
      until_renewal = kRenewalBytes;
    } else {
      until_renewal -= count;
    }
  }
  return static_cast<ssize_t>(size);
}

void ClientSocket::finish() {
  tls_.reset();  // discarded data need not be decrypted
  if (shutdown(socket_.number(), SHUT_WR) != 0) return;
  deadline_ = Clock::now() + std::min<std::chrono::milliseconds>(patience_, 1s);
  until_renewal_ = 2 * kMaxThrownAway;
  waited_ = patience_;  // passed to must_end(), so that this wait is the first to end
  std::array<char, 16 << 10> bytes{};
  for (std::size_t thrown_away = 0; thrown_away < kMaxThrownAway;) {
    const ssize_t received = receive(bytes.data(), bytes.size());
    if (received <= 0) return;
    thrown_away += static_cast<std::size_t>(received);
  }
}

}  // namespace frostpipe
