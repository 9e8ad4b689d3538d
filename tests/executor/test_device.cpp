#include "tests/executor/test_device.h"

#include <ATen/Context.h>

#include <cstdlib>

#include "base/error.h"

namespace frostpipe::test {

namespace {

std::optional<std::string> reason_without(const std::string& type) {
  try {
    make_device(type, 0);
    return std::nullopt;
  } catch (const RuntimeFailure& failure) {
    return failure.what();
  }
}

}  // namespace

std::unique_ptr<ComputeDevice> test_device(int local_rank) {
  const char* const type = std::getenv("FROSTPIPE_TEST_DEVICE");
  if (!type) return make_device("cpu", local_rank);
  // Sums by atomics differ from run to run, so tests that compare bits could not pass. Attention's backward still uses
  // them, but for samples of up to 64 tokens, as in the tests, each sum has one term.
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true);
  return make_device(type, local_rank);
}

std::optional<std::string> reason_without_device(const std::string& type) {
  // This is needed even for the CPU: computing makes LibTorch look for CUDA, which it does only once.
  static const std::optional<std::string> without_cuda = reason_without("cuda");
  return type == "cuda" ? without_cuda : reason_without(type);
}

}  // namespace frostpipe::test
