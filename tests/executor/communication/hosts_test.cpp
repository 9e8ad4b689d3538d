// Oracle: numbers, by hand. The ranks' hosts are made up: this program has its own gethostname.
#include "executor/communication/hosts.h"

#include <gtest/gtest.h>
#include <sys/utsname.h>

#include <cstring>
#include <string>
#include <vector>

#include "executor/communication/communicator.h"
#include "tests/executor/ranks.h"

namespace {
std::string made_up_host;  // empty: the real one
}

/// Like the C library's function, but returns the made-up name.
extern "C" int gethostname(char* name, std::size_t size) noexcept {
  utsname system{};
  uname(&system);
  std::strncpy(name, made_up_host.empty() ? system.nodename : made_up_host.c_str(), size);
  return 0;
}

namespace frostpipe::test {
namespace {

struct Hosts {
  std::vector<std::string> names;  // by rank
  std::vector<int> expected;
};

RANK_TEST(Hosts, AreNumberedInTheOrderOfTheirFirstRanks, 3) {
  const std::unique_ptr<ComputeDevice> device = make_device("cpu", self.local_rank);
  const std::unique_ptr<Communicator> communicator = Communicator::connect(self, *device);
  const std::string name(200, 'n');
  for (const Hosts& hosts : {
           Hosts{{"", "", ""}, {0, 0, 0}},
           Hosts{{"b", "b", "a"}, {0, 0, 1}},
           Hosts{{"b", "a", "b"}, {0, 1, 0}},
           Hosts{{"c", "b", "a"}, {0, 1, 2}},
           Hosts{{name + "1", name + "2", name}, {0, 1, 2}},
       }) {
    made_up_host = hosts.names[self.rank];
    CHECK_RANK(hosts_of_ranks(*communicator) == hosts.expected, hosts.names[1]);
  }
}

}  // namespace
}  // namespace frostpipe::test
