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

/// The client has closed the connection, or its half of it: one that still reads cannot be told from one that is gone.
bool has_left(const Descriptor& connection);

/// A client's connection, which is never waited for longer than a patience. Of one thread.
class ClientSocket {
 public:
  /// While bytes are waited for, `must_end` is asked at least ten times a second whether to wait no longer: it is told
  /// whether a request has begun, and how long the latest 64 KiB have been waited for. What the server itself took in
  /// between, where its cores are busy, is not counted.
  using MustEnd = std::function<bool(bool has_begun, std::chrono::milliseconds silent)>;
  /// With an identity the connection is encrypted; memory for that may be missing (std::bad_alloc).
  ClientSocket(Descriptor socket, const TlsIdentity* identity, std::chrono::milliseconds patience, MustEnd must_end);

  enum class Head {
    complete,
    too_long,   // more than kMostHeadBytes
    malformed,  // not lines of "Name: value" that end in CR LF, after a first one
    none,       // the client has left, was silent for too long, or must_end() said so
  };
  static constexpr std::size_t kMostHeadBytes = 16 << 10;

  /// Waits for a request and reads its head, to be read again by read(). Its first byte is waited for as long as the
  /// patience, and the rest as long again. A TLS handshake that comes before has as long, with its first byte; then the
  /// request has begun. Takes out the fields named Range: answers are always sent whole.
  Head receive_head();
  /// At most so many bytes follow the head.
  void allow(std::size_t bytes) { allowed_ = bytes; }

  /// Some bytes of the head, then of what follows it. -1 at the end, after a failure, and where the client sends less
  /// than 64 KiB within the patience or more than is allowed.
  ssize_t read(char* to, std::size_t size);
  /// All bytes, or -1 after a failure, or where the client takes less than 64 KiB within the patience.
  ssize_t write(const char* from, std::size_t size);
  /// Since the last head: bytes that read() has given beyond it.
  std::size_t body_bytes() const { return body_bytes_; }

  /// See below. This is asked where an answer has taken long, and before a TLS handshake.
  bool has_left() const { return frostpipe::has_left(socket_); }

  /// Ends an answer to a request that was not read to its end. Closed at once, the connection would be reset, and the
  /// client might lose the answer: so what it still sends is thrown away, up to a second or a MiB.
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
  std::string buffer_;  // received; given up to begin_
  std::size_t begin_ = 0, head_bytes_ = 0;
  std::size_t body_bytes_ = 0, allowed_ = 0;
  Clock::time_point deadline_;
  Clock::duration waited_{};
  std::size_t until_renewal_ = 0;  // bytes
  bool has_begun_ = false, has_shaken_hands_ = false;
};

/// Whether all lines of a request's head but the first are of the form "Name: value", and end in CR LF. httplib passes
/// over others, and others than it may see a body's length in them.
bool is_well_formed(std::string_view head);
/// The head of a request without the lines of a field; names of fields know no case.
std::string without_field(std::string_view head, std::string_view name);

}  // namespace frostpipe
