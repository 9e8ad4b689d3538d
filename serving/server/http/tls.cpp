#include "serving/server/http/tls.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <new>

#include "base/error.h"
#include "base/files.h"

namespace frostpipe {
namespace {

/// Certificate chains have a few KiB.
constexpr std::size_t kMaxPemBytes = 1 << 20;
/// Socket reads per call of OpenSSL; a record takes two.
constexpr int kMaxReads = 16;
constexpr const char* kToMakeOne =
    "`openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=HOST -addext "
    "subjectAltName=DNS:HOST -keyout KEY -out CERTIFICATE` makes a pair that clients can be told to trust";

template <class T>
using Owned = std::unique_ptr<T, void (*)(T*)>;

/// Replaces OpenSSL's callback, which would ask at the terminal.
int no_passphrase(char*, int, int, void* was_asked) {
  if (was_asked != nullptr) *static_cast<bool*>(was_asked) = true;
  return -1;
}

[[noreturn]] void refuse(const std::string& file, const std::string& rule) {
  throw InvalidInput(fmt::format("{}: {}; {}", file, rule, kToMakeOne));
}

/// Throws with OpenSSL's reason: "... cannot be used: ee key too small".
[[noreturn]] void refuse_unusable(const std::string& file, const std::string& what) {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  refuse(file, fmt::format("has {} that cannot be used: {}", what, reason != nullptr ? reason : "no reason is known"));
}

/// The text of a PEM file, for OpenSSL.
class Pem {
 public:
  explicit Pem(const std::string& file)
      : text_(read_named_file(file, kMaxPemBytes)),
        bio_(BIO_new_mem_buf(text_.data(), static_cast<int>(text_.size())), BIO_free_all) {}
  /// Returns null at the end of the file, and if it is damaged.
  Owned<X509> next_certificate() {
    ERR_clear_error();
    return {PEM_read_bio_X509(bio_.get(), nullptr, no_passphrase, nullptr), X509_free};
  }
  Owned<EVP_PKEY> key(bool& has_passphrase) {
    ERR_clear_error();
    return {PEM_read_bio_PrivateKey(bio_.get(), nullptr, no_passphrase, &has_passphrase), EVP_PKEY_free};
  }
  static bool is_at_end() { return ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE; }

 private:
  std::string text_;
  Owned<BIO> bio_;
};

Owned<X509> take_certificates(SSL_CTX* context, const std::string& file) {
  Pem pem(file);
  Owned<X509> own = pem.next_certificate();
  if (!own) refuse(file, "must hold a certificate in PEM form (BEGIN CERTIFICATE)");
  if (SSL_CTX_use_certificate(context, own.get()) != 1) refuse_unusable(file, "a certificate");
  while (Owned<X509> authority = pem.next_certificate()) {
    if (SSL_CTX_add1_chain_cert(context, authority.get()) != 1) refuse_unusable(file, "a further certificate");
  }
  if (!Pem::is_at_end()) refuse(file, "has a further certificate that cannot be read");
  return own;
}

void take_key(SSL_CTX* context, X509* certificate, const std::string& file, const std::string& certificate_file) {
  bool has_passphrase = false;
  const Owned<EVP_PKEY> key = Pem(file).key(has_passphrase);
  if (has_passphrase)
    throw InvalidInput(fmt::format(
        "{}: must hold a key without a passphrase; `openssl pkey -in {} -out FILE` writes it without", file, file));
  if (!key) refuse(file, "must hold a private key in PEM form (BEGIN PRIVATE KEY)");
  if (X509_check_private_key(certificate, key.get()) != 1)
    throw InvalidInput(
        fmt::format("{}: is not the key of the certificate in {}; for a matching pair `openssl pkey -pubout -in "
                    "KEY` and `openssl x509 -noout -pubkey -in CERTIFICATE` print the same public key",
                    file, certificate_file));
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1) refuse_unusable(file, "a key");
}

TlsSocket& socket_of(BIO* bio) { return *static_cast<TlsSocket*>(BIO_get_data(bio)); }

bool must_wait() { return errno == EAGAIN || errno == EINTR; }

int read_socket(BIO* bio, char* to, int size) {
  TlsSocket& socket = socket_of(bio);
  BIO_clear_retry_flags(bio);
  const bool may_read = socket.reads_left-- > 0;
  const ssize_t received = may_read ? recv(socket.number, to, static_cast<std::size_t>(size), MSG_DONTWAIT) : -1;
  if (received < 0 && (!may_read || must_wait())) BIO_set_retry_read(bio);
  return static_cast<int>(received);
}

int write_socket(BIO* bio, const char* from, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t sent = ::send(socket_of(bio).number, from, static_cast<std::size_t>(size), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0 && must_wait()) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

int at_most_int(std::size_t size) { return static_cast<int>(std::min<std::size_t>(size, INT_MAX)); }

long control_socket(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

/// Returns the method of a socket BIO in place of OpenSSL's own, which would raise SIGPIPE and would be read as long as
/// data arrive.
const BIO_METHOD* socket_method() {
  static const Owned<BIO_METHOD> method = [] {
    Owned<BIO_METHOD> made(BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket"), BIO_meth_free);
    if (!made) throw std::bad_alloc();
    BIO_meth_set_read(made.get(), read_socket);
    BIO_meth_set_write(made.get(), write_socket);
    BIO_meth_set_ctrl(made.get(), control_socket);
    return made;
  }();
  return method.get();
}

}  // namespace

TlsIdentity::TlsIdentity(const std::string& certificate_file, const std::string& key_file)
    : context_(SSL_CTX_new(TLS_server_method()), SSL_CTX_free) {
  if (!context_) throw std::bad_alloc();
  SSL_CTX* context = context_.get();
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  // Forbid renegotiation, which costs work; session state is kept by the clients.
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context,
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  const Owned<X509> certificate = take_certificates(context, certificate_file);
  take_key(context, certificate.get(), key_file, certificate_file);
}

TlsConnection::TlsConnection(const TlsIdentity& identity, int socket)
    : socket_{.number = socket}, session_(SSL_new(identity.context_.get()), SSL_free) {
  BIO* bio = BIO_new(socket_method());
  if (!session_ || bio == nullptr) {
    BIO_free(bio);
    throw std::bad_alloc();
  }
  BIO_set_data(bio, &socket_);
  BIO_set_init(bio, 1);
  SSL_set_bio(session_.get(), bio, bio);  // takes ownership
}

TlsConnection::~TlsConnection() {
  if (!has_failed_ && SSL_is_init_finished(session_.get())) SSL_shutdown(session_.get());
}

bool TlsConnection::has_pending() const { return SSL_pending(session_.get()) > 0; }

template <class Call>
ssize_t TlsConnection::outcome(const Call& call) {
  ERR_clear_error();  // from another connection of this thread
  socket_.reads_left = kMaxReads;
  events_ = 0;
  const int result = call();
  if (result > 0) return result;
  switch (SSL_get_error(session_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      events_ = POLLIN;
      return -1;
    case SSL_ERROR_WANT_WRITE:
      events_ = POLLOUT;
      return -1;
    case SSL_ERROR_ZERO_RETURN:
      return 0;
    default:
      has_failed_ = true;
      return -1;
  }
}

ssize_t TlsConnection::accept() {
  return outcome([&] { return SSL_accept(session_.get()); });
}

ssize_t TlsConnection::receive(char* to, std::size_t size) {
  return outcome([&] { return SSL_read(session_.get(), to, at_most_int(size)); });
}

ssize_t TlsConnection::send(const char* from, std::size_t size) {
  return outcome([&] { return SSL_write(session_.get(), from, at_most_int(size)); });
}

}  // namespace frostpipe
