#pragma once
#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <string>

struct ssl_st;      // OpenSSL's SSL
struct ssl_ctx_st;  // OpenSSL's SSL_CTX

namespace frostpipe {

/// A server's certificate and private key for TLS 1.2 and 1.3.
class TlsIdentity {
 public:
  /// Reads PEM files, which may be the same file: the server's certificate followed by those of intermediate
  /// authorities, and the key, without a passphrase. Throws InvalidInput that names the file and what to try.
  TlsIdentity(const std::string& certificate_file, const std::string& key_file);

 private:
  friend class TlsConnection;
  std::shared_ptr<ssl_ctx_st> context_;
};

/// The socket under OpenSSL's BIO.
struct TlsSocket {
  int number;
  int reads_left = 0;  // in the current call of OpenSSL
};

/// The server's end of one TLS connection, over a socket that must outlive it. For use by one thread. Nothing blocks:
/// accept, receive and send return what recv and send return with MSG_DONTWAIT: bytes, 0 at the end, or -1.
class TlsConnection {
 public:
  TlsConnection(const TlsIdentity& identity, int socket);
  /// Sends close_notify if that is possible without blocking.
  ~TlsConnection();
  TlsConnection(const TlsConnection&) = delete;
  TlsConnection& operator=(const TlsConnection&) = delete;

  /// Performs the handshake, which must come first; returns 1 when it is complete.
  ssize_t accept();
  ssize_t receive(char* to, std::size_t size);
  ssize_t send(const char* from, std::size_t size);
  /// After a call that returned -1, returns the events to poll the socket for before the call is repeated; 0 if the
  /// connection has failed. A client that sends records without payload forever also causes -1 now and then.
  short events() const { return events_; }
  /// True if received bytes are buffered here and no longer in the socket.
  bool has_pending() const;

 private:
  template <class Call>
  ssize_t outcome(const Call& call);

  TlsSocket socket_;
  std::unique_ptr<ssl_st, void (*)(ssl_st*)> session_;
  short events_ = 0;
  bool has_failed_ = false;
};

}  // namespace frostpipe
