// Oracle: the test's own file in place of /etc/hosts, in a separate process; this needs root.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>

#include <chrono>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>

#include "executor/elastic/addresses.h"
#include "tests/support/child_process.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class HostNamesTest : public test::ScratchFolderTest {
 protected:
  /// From now on names are looked up only in hosts(). Returns false if neither root nor a user namespace is available.
  bool takes_names_from_hosts() const {
    return (unshare(CLONE_NEWNS) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0) &&
           mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           mount(hosts().c_str(), "/etc/hosts", nullptr, MS_BIND, nullptr) == 0 &&
           mount(file("switch", "hosts: files\n").c_str(), "/etc/nsswitch.conf", nullptr, MS_BIND, nullptr) == 0;
  }
  std::filesystem::path hosts() const { return folder_ / "hosts"; }

  void SetUp() override {
    file("hosts");
    if (!test::holds_in_a_child([&] { return takes_names_from_hosts(); }))
      GTEST_SKIP() << "needs root or a user namespace, for an /etc/hosts of its own";
  }

  /// Applies a matcher to the result of `action`, or to its error message, in a process with these host names.
  void expect_with_names(const std::string& names, const auto& action, const testing::Matcher<std::string>& expected) {
    file("hosts", names);
    EXPECT_TRUE(test::holds_in_a_child([&] {
      if (!takes_names_from_hosts()) return false;
      std::string result;
      try {
        result = action();
      } catch (const std::runtime_error& error) {
        result = error.what();
      }
      if (!expected.Matches(result)) std::cerr << "it is: " << result << std::endl;
      return expected.Matches(result);
    }));
  }
};

TEST_F(HostNamesTest, AMasterWhoseNameIsLoopbackHereIsRefused) {
  for (const int rank : {0, 1}) {
    expect_with_names(
        "127.0.1.1 vm7\n", [&] { return own_address({.rank = rank, .master_address = "vm7"}); },
        HasSubstr(
            "rank " + std::to_string(rank) + " on host " + host_name() +
            ": MASTER_ADDR: vm7 resolves to 127.0.1.1 here (see /etc/hosts), at which no other host can reach this "
            "one; give a numeric address of rank 0's host"));
  }
  expect_with_names(
      "127.0.1.1 vm7\n", [] { return store_address({.master_address = "vm7", .interface = "127.0.0.3"}); },
      HasSubstr("MASTER_ADDR: vm7 resolves to 127.0.1.1 here"));
  expect_with_names(
      "127.0.1.1 vm7\n", [] { return own_address({.master_address = "vm7", .is_on_one_host = true}); },
      testing::Eq("127.0.0.1"));
}

TEST_F(HostNamesTest, ANameThatIsNotKnownYetIsWaitedFor) {
  expect_with_names(
      "127.0.0.2 other\n",
      [&] {
        const std::jthread late([&] {
          std::this_thread::sleep_for(300ms);
          file("hosts", "127.0.0.2 localhost\n");
        });
        return own_address({.master_address = "localhost"}, {.unanswered = 2min});
      },
      testing::Eq("127.0.0.2"));
}

TEST_F(HostNamesTest, OfSeveralAddressesAllRanksTakeTheSame) {
  const Descriptor one = bound_socket("127.0.0.2", 0), other = bound_socket("127.0.0.3", port_of(one));
  for (const Descriptor* const socket : {&one, &other}) listen(socket->number(), 8);
  for (const std::string names : {"127.0.0.2 n7\n127.0.0.3 n7\n", "127.0.0.3 n7\n127.0.0.2 n7\n"}) {
    expect_with_names(
        names,
        [&] {
          return wait_for_listener(1, {"n7", port_of(one), "where rank 0 listens", ""});
        },
        testing::Eq("127.0.0.2"));
  }
}

/// The queue of the first socket is full, so the system drops new connections.
TEST_F(HostNamesTest, AnAddressThatIsSilentHoldsUpNoOther) {
  const Descriptor silent = bound_socket("127.0.0.2", 0);
  listen(silent.number(), 0);
  const Listener first{"127.0.0.2", port_of(silent), "where rank 0 listens", ""}, both{"n7", first.port, "", ""};
  EXPECT_EQ(wait_for_listener(1, first), "127.0.0.2") << "this one fills the queue";
  const Descriptor second = bound_socket("127.0.0.3", first.port);
  listen(second.number(), 8);
  const ConnectLimits as_long_as_the_test{.unanswered = 2min};
  const auto begin = std::chrono::steady_clock::now();
  expect_with_names(
      "127.0.0.2 n7\n127.0.0.3 n7\n", [&] { return wait_for_listener(1, both, as_long_as_the_test); },
      testing::Eq("127.0.0.3"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 1min) << "it has waited for the silent one";
}

}  // namespace
}  // namespace frostpipe
