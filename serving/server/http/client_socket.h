#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/descriptor.h"
#include "serving/server/http/tls.h"

namespace frostpipe {

/// True if the client has closed the connection or its sending half; the two cannot be told apart.
bool is_disconnected(const Descriptor& connection);

/// A client's connection. No wait exceeds the patience. For use by one thread.
class ClientSocket {
 public:
  /// Called at least ten times a second while the socket waits for bytes; returns true to stop waiting. `has_begun`
  /// says whether a request has begun, `silent` is the time for which the latest 64 KiB have been awaited. Time in
  /// which the server itself was delayed because its cores were busy does not count.
  using MustEnd = std::function<bool(bool has_begun, std::chrono::milliseconds silent)>;
  /// With an identity the connection uses TLS. Throws std::bad_alloc if there is no memory for that.
  ClientSocket(Descriptor socket, const TlsIdentity* identity, std::chrono::milliseconds patience, MustEnd must_end);

  enum class Head {
    complete,
    too_long,   // more than kMaxHeadBytes
    malformed,  // see is_well_formed()
    none,       // the client has left or was silent for too long, or must_end() returned true
  };
  static constexpr std::size_t kMaxHeadBytes = 16 << 10;

  /// Receives a request's head, which read() returns afterwards. Waits one patience for its first byte, and another for
  /// the rest. A preceding TLS handshake may take as long, including its first byte; the request has then begun.
  /// Removes the fields named Range, because answers are always sent whole.
  Head receive_head();
  /// Sets the largest number of bytes that may follow the head.
  void allow(std::size_t bytes) { allowed_ = bytes; }

  /// Returns some bytes of the head or of the body after it. Returns -1 at the end, after a failure, and if the client
  /// sends less than 64 KiB within the patience or more than is allowed.
  ssize_t read(char* to, std::size_t size);
  /// Writes all bytes. Returns -1 after a failure, and if the client receives less than 64 KiB within the patience.
  ssize_t write(const char* from, std::size_t size);
  /// Returns the number of bytes that read() has returned after the last head.
  std::size_t body_bytes() const { return body_bytes_; }

  /// Call it when an answer has taken long, and before a TLS handshake.
  bool is_disconnected() const { return frostpipe::is_disconnected(socket_); }

  /// Ends the answer to a request that was not read completely. Closing at once would reset the connection, and the
  /// client might lose the answer; therefore discards what it still sends, for at most a second or a MiB.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;

  bool wait_for(short events, Clock::time_point deadline, bool may_end);
  template <class Call>
  ssize_t wait_and_do(short events, Clock::time_point deadline, bool may_end, const Call& call);
  bool shake_hands();
  ssize_t receive(char* to, std::size_t size);
  bool receive_more();
  void renew();

  Descriptor socket_;
  std::optional<TlsConnection> tls_;
  std::chrono::milliseconds patience_;
  MustEnd must_end_;
  std::string buffer_;  // received bytes, of which begin_ have been returned
  std::size_t begin_ = 0, head_bytes_ = 0;
  std::size_t body_bytes_ = 0, allowed_ = 0;
  Clock::time_point deadline_;
  Clock::duration waited_{};
  std::size_t until_renewal_ = 0;  // bytes
  bool has_begun_ = false, has_shaken_hands_ = false;
};

/// True if all lines of a request's head end in CR LF, and all but the first have the form "Name: value". httplib
/// ignores other lines, in which another program might see the body's length.
bool is_well_formed(std::string_view head);
/// Returns the head of a request without a field; field names are case-insensitive.
std::string without_field(std::string_view head, std::string_view name);

}  // namespace frostpipe
