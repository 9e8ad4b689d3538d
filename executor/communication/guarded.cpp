#include "executor/communication/guarded.h"

#include <fmt/format.h>

#include <new>
#include <system_error>

#include "base/error.h"
#include "executor/communication/heartbeat.h"

namespace frostpipe {
namespace {

/// Returns the first line of a LibTorch or Gloo message, without the C++ stack that may follow.
std::string first_line(const std::exception& error) {
  std::string text = error.what();
  text = text.substr(0, text.find('\n'));
  const std::size_t source_end = text.starts_with('[') ? text.find("] ") : std::string::npos;  // Gloo: [file:line]
  return source_end == std::string::npos ? text : text.substr(source_end + 2);
}

}  // namespace

void rethrow_from_c10d(int self, const std::string& what) {
  try {
    throw;
  } catch (const RuntimeFailure&) {
    throw;  // out of memory, say
  } catch (const InternalError&) {
    throw;
  } catch (const InvalidInput&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::system_error&) {
    throw;  // no more threads: this rank's own failure
  } catch (const std::exception& error) {
    wait_for_failed_peer();
    throw PeerLost(fmt::format("rank {}: {}: {}", self, what, first_line(error)));
  }
}

}  // namespace frostpipe
