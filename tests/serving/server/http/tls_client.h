#pragma once
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "serving/server/http/tls.h"
#include "tests/serving/server/http/raw_client.h"

namespace frostpipe::test {

template <class T>
using Owned = std::unique_ptr<T, void (*)(T*)>;

/// A server's private key and its self-signed certificate for "localhost", in PEM form.
struct SelfSigned {
  Owned<EVP_PKEY> key;
  Owned<X509> certificate = {X509_new(), X509_free};

  explicit SelfSigned(EVP_PKEY* with_key = EVP_EC_gen("P-256")) : key(with_key, EVP_PKEY_free) {
    X509_set_version(certificate.get(), X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -60);
    X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
    X509_set_pubkey(certificate.get(), key.get());
    X509_NAME* name = X509_get_subject_name(certificate.get());
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("localhost"), -1, -1,
                               0);
    X509_set_issuer_name(certificate.get(), name);
    EXPECT_GT(X509_sign(certificate.get(), key.get(), EVP_sha256()), 0);
  }
  std::string certificate_pem() const {
    return pem([&](BIO* to) { return PEM_write_bio_X509(to, certificate.get()); });
  }
  /// The key has no passphrase if none is given.
  std::string key_pem(std::string passphrase = "") const {
    return pem([&](BIO* to) {
      return PEM_write_bio_PKCS8PrivateKey(to, key.get(), passphrase.empty() ? nullptr : EVP_aes_128_cbc(),
                                           passphrase.data(), static_cast<int>(passphrase.size()), nullptr, nullptr);
    });
  }

 private:
  static std::string pem(const auto& write) {
    const Owned<BIO> memory(BIO_new(BIO_s_mem()), BIO_free_all);
    EXPECT_EQ(write(memory.get()), 1);
    char* begin = nullptr;
    const long size = BIO_get_mem_data(memory.get(), &begin);
    return std::string(begin, static_cast<std::size_t>(size));
  }
};

/// One certificate for all tests of a process.
inline const SelfSigned& self_signed() {
  static const SelfSigned pair;
  return pair;
}

/// The certificate as a server reads it from files.
inline std::shared_ptr<const TlsIdentity> tls_identity() {
  static const auto identity = [] {
    const auto file = std::filesystem::temp_directory_path() / ("frostpipe_" + std::to_string(getpid()) + ".pem");
    std::ofstream(file) << self_signed().key_pem() << self_signed().certificate_pem();
    auto made = std::make_shared<const TlsIdentity>(file, file);
    std::filesystem::remove(file);
    return made;
  }();
  return identity;
}

/// A TLS client's first bytes.
inline std::string client_hello() {
  const Owned<SSL_CTX> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  const Owned<SSL> session(SSL_new(context.get()), SSL_free);
  BIO* const from_server = BIO_new(BIO_s_mem());
  BIO* const to_server = BIO_new(BIO_s_mem());
  SSL_set_bio(session.get(), from_server, to_server);
  SSL_connect(session.get());
  char* begin = nullptr;
  const long size = BIO_get_mem_data(to_server, &begin);
  return std::string(begin, static_cast<std::size_t>(size));
}

/// The same over TLS, by OpenSSL's client, which trusts only self_signed().
class TlsClient final : public RawClient {
 public:
  explicit TlsClient(int port, int version = 0)
      : RawClient(port), context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free), session_(nullptr, SSL_free) {
    sigset_t of_writing;  // SIGPIPE, from writing to a closed connection, which this thread's clients may do
    sigemptyset(&of_writing);
    sigaddset(&of_writing, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &of_writing, nullptr);
    if (version != 0 && version < TLS1_2_VERSION) SSL_CTX_set_security_level(context_.get(), 0);
    SSL_CTX_set_min_proto_version(context_.get(), version);
    SSL_CTX_set_max_proto_version(context_.get(), version);
    SSL_CTX_clear_mode(context_.get(), SSL_MODE_AUTO_RETRY);  // so that receive() waits only in poll()
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context_.get()), self_signed().certificate.get());
    session_.reset(SSL_new(context_.get()));
    SSL_set1_host(session_.get(), "localhost");
    SSL_set_verify(session_.get(), SSL_VERIFY_PEER, nullptr);
    SSL_set_fd(session_.get(), descriptor());
    is_established_ = SSL_connect(session_.get()) == 1;
  }

  /// Returns whether the handshake has succeeded with the trusted server.
  bool is_established() const { return is_established_; }
  std::string version() const { return SSL_get_version(session_.get()); }
  SSL* session() { return session_.get(); }
  /// Returns whether the server has closed its side.
  bool has_been_told_the_end() const { return (SSL_get_shutdown(session_.get()) & SSL_RECEIVED_SHUTDOWN) != 0; }
  void half_close() override {
    SSL_shutdown(session_.get());
    RawClient::half_close();
  }

 private:
  ssize_t put(const char* from, std::size_t size) override {
    return SSL_write(session_.get(), from, static_cast<int>(size));
  }
  ssize_t take(char* to, std::size_t size) override {
    const int received = SSL_read(session_.get(), to, static_cast<int>(size));
    if (received <= 0 && SSL_get_error(session_.get(), received) == SSL_ERROR_WANT_READ) errno = EAGAIN;
    return received;
  }

  Owned<SSL_CTX> context_;
  Owned<SSL> session_;
  bool is_established_ = false;
};

}  // namespace frostpipe::test
