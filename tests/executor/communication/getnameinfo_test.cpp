#include <arpa/inet.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <sys/socket.h>

#include <array>
#include <string>

namespace frostpipe {
namespace {

// Oracle: 127.0.0.1, for which the C library's own function returns localhost. The function is looked up in the same
// way as LibTorch's reference to it, since a direct call would make the linker take the definition in any case.
TEST(Getnameinfo, ThatLibTorchCallsLeavesAddressesNumbers) {
  const auto found = reinterpret_cast<decltype(&::getnameinfo)>(dlsym(RTLD_DEFAULT, "getnameinfo"));
  ASSERT_TRUE(found);
  sockaddr_in loopback{};
  loopback.sin_family = AF_INET;
  loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::array<char, NI_MAXHOST> host{};
  ASSERT_EQ(found(reinterpret_cast<const sockaddr*>(&loopback), sizeof loopback, host.data(), host.size(), nullptr, 0,
                  /*flags=*/0),
            0);
  EXPECT_EQ(std::string(host.data()), "127.0.0.1");
}

}  // namespace
}  // namespace frostpipe
