#include "executor/communication/guarded.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <new>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "executor/communication/heartbeat.h"

namespace frostpipe {
namespace {

/// Returns whether an error of CUDA or NCCL is this rank's own. After the loss of a peer NCCL says ncclRemoteError or
/// ncclSystemError.
bool is_own_failure(std::string_view text) {
  return std::ranges::any_of(std::array{"ncclInvalidUsage", "ncclUnhandledCudaError", "CUDA error", "out of memory"},
                             [&](const char* words) { return text.find(words) != text.npos; });
}

/// Returns the first line of a LibTorch or Gloo message, without the C++ stack that may follow, and NCCL's reason.
std::string first_line(std::string text) {
  constexpr std::string_view kReason = "Last error:\n";
  std::string reason;
  if (const std::size_t at = text.find(kReason); at != text.npos) {
    reason = text.substr(at + kReason.size());
    reason = ": " + reason.substr(0, reason.find('\n'));
  }
  text = text.substr(0, text.find('\n')) + reason;
  const std::size_t source_end = text.starts_with('[') ? text.find("] ") : std::string::npos;  // Gloo: [file:line]
  return source_end == std::string::npos ? text : text.substr(source_end + 2);
}

}  // namespace

void rethrow_from_c10d(int self, const std::string& what) {
  try {
    throw;
  } catch (const RuntimeFailure&) {
    throw;  // for example out of memory
  } catch (const InternalError&) {
    throw;
  } catch (const InvalidInput&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::system_error&) {
    throw;  // for example no more threads, which is this rank's own failure
  } catch (const std::exception& error) {
    const std::string text = error.what(), sentence = fmt::format("rank {}: {}: {}", self, what, first_line(text));
    if (is_own_failure(text)) throw RuntimeFailure(sentence);
    wait_for_failed_peer();
    throw PeerLost(sentence);
  }
}

}  // namespace frostpipe
