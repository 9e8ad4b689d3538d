#include "executor/communication/guarded.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

#include "base/error.h"

namespace frostpipe {
namespace {

/// The exception that guarded() throws if this one is thrown inside.
template <class Expected, class Thrown>
std::string text_of(const Thrown& thrown) {
  try {
    guarded(2, "SEND_F3 to rank 1", [&] { throw thrown; });
  } catch (const Expected& error) {
    return error.what();
  }
  return "nothing";
}

TEST(Guarded, GivesTheResult) {
  EXPECT_EQ(guarded(0, "adding", [] { return 3 + 4; }), 7);
}

// Oracle: original messages of c10d's TCPStore, with its stack, and of Gloo, with its source position.
TEST(Guarded, ExceptionsOfC10dBecomeALostPeerInOneLine) {
  EXPECT_EQ(text_of<PeerLost>(std::runtime_error("Connection reset by peer\nException raised from recvBytes at ...")),
            "rank 2: SEND_F3 to rank 1: Connection reset by peer");
  EXPECT_EQ(text_of<PeerLost>(std::runtime_error("[/src/gloo/transport/tcp/pair.cc:553] Connection closed by peer")),
            "rank 2: SEND_F3 to rank 1: Connection closed by peer");
}

// Oracle: messages of ProcessGroupNCCL, with NCCL's reason in a line of its own.
TEST(Guarded, ErrorsOfCudaAndNcclThatAreNotOfAPeerAreTheRanksOwn) {
  EXPECT_EQ(text_of<RuntimeFailure>(std::runtime_error(
                "NCCL error in: NCCLUtils.cpp:94, invalid usage (run with NCCL_DEBUG=WARN for details), "
                "ncclInvalidUsage\nLast error:\nDuplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000\n"
                "Exception raised from ...")),
            "rank 2: SEND_F3 to rank 1: NCCL error in: NCCLUtils.cpp:94, invalid usage (run with NCCL_DEBUG=WARN for "
            "details), ncclInvalidUsage: Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000");
  EXPECT_EQ(text_of<RuntimeFailure>(std::runtime_error("CUDA error: an illegal memory access was encountered\nx")),
            "rank 2: SEND_F3 to rank 1: CUDA error: an illegal memory access was encountered");
  EXPECT_EQ(text_of<PeerLost>(std::runtime_error("NCCL error in: NCCLUtils.cpp:94, ncclRemoteError\nLast error:\n"
                                                 "socketProgress: Connection closed by remote peer")),
            "rank 2: SEND_F3 to rank 1: NCCL error in: NCCLUtils.cpp:94, ncclRemoteError: socketProgress: Connection "
            "closed by remote peer");
}

TEST(Guarded, ARanksOwnFailuresGoOnAsTheyAre) {
  EXPECT_EQ(text_of<RuntimeFailure>(RuntimeFailure("rank 2: out of memory\nin 1F0")), "rank 2: out of memory\nin 1F0");
  EXPECT_EQ(text_of<InvalidInput>(InvalidInput("host b: lacks x")), "host b: lacks x");
  EXPECT_EQ(text_of<InternalError>(InternalError("a bug")), "a bug");
  EXPECT_EQ(text_of<std::bad_alloc>(std::bad_alloc()), std::bad_alloc().what());
  const std::system_error no_thread(std::make_error_code(std::errc::resource_unavailable_try_again));
  EXPECT_EQ(text_of<std::system_error>(no_thread), no_thread.what());
}

}  // namespace
}  // namespace frostpipe
