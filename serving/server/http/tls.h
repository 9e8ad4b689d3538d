#pragma once
#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <string>

struct ssl_st;      // OpenSSL's SSL
struct ssl_ctx_st;  // its SSL_CTX

namespace frostpipe {

/// A server's certificate and its private key, by which it speaks TLS 1.2 or 1.3.
class TlsIdentity {
 public:
  /// From PEM files, which may be one: the server's certificate, then those of the authorities between it and one that
  /// clients trust, and the key, without a passphrase. Throws InvalidInput that names the file and what to try.
  TlsIdentity(const std::string& certificate_file, const std::string& key_file);

 private:
  friend class TlsConnection;
  std::shared_ptr<ssl_ctx_st> context_;
};

/// What OpenSSL reads from and writes to.
struct TlsSocket {
  int number;
  int reads_left = 0;  // in this call of OpenSSL
};

/// The server's end of one connection, over a socket that is open for longer. Of one thread. Nothing waits: accept,
/// receive and send return what recv and send would with MSG_DONTWAIT: bytes, 0 at the end, or -1.
class TlsConnection {
 public:
  TlsConnection(const TlsIdentity& identity, int socket);
  /// Tells the client that nothing more comes, where that can be told at once.
  ~TlsConnection();
  TlsConnection(const TlsConnection&) = delete;
  TlsConnection& operator=(const TlsConnection&) = delete;

  /// The handshake, which comes before all else; 1 when it is over.
  ssize_t accept();
  ssize_t receive(char* to, std::size_t size);
  ssize_t send(const char* from, std::size_t size);
  /// After -1: what to poll the socket for before the same call is tried again; 0: the connection has failed. Also who
  /// sends records without end that hold nothing for us is answered by -1 now and then.
  short events() const { return events_; }
  /// There are bytes to receive that the socket does not have any more.
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
