// Oracle: the estimate by hand.
#include "bench/published/helix_throughputs.h"

#include <gtest/gtest.h>

#include "tests/bench/published/helix_folder.h"

namespace frostpipe {
namespace {

using test::HelixFolder;

TEST_F(HelixFolder, EstimatesThroughputsByTheCacheInUse) {
  // One type alone, all layers on a machine: all requests in flight are there, 0.3 of 10,000 tokens over 990 each, a
  // batch of three. A layer takes 6 ms for 750 tokens of a prompt, 1.75 ms for three decodes.
  const HelixData data = load_helix_data(folder_);
  const HelixThroughputs throughputs(data, "LLaMA-30B", 60, {"a100", "a100"});
  const double batches = 240 / (0.3 * 10'000 / 990);  // of decodes for each prompt
  EXPECT_NEAR(throughputs.of("a100", 60), (750 + batches * 3) / (60 * (0.006 + batches * 0.00175)), 1e-9);
}

TEST_F(HelixFolder, EstimatesHalfAMachineByHalfOfTheWay) {
  // Half of the layers, so half of the time around: 0.15 of 20,000 tokens, the same batch.
  const HelixData data = load_helix_data(folder_);
  const HelixThroughputs throughputs(data, "LLaMA-30B", 60, {"a100", "a100"});
  EXPECT_NEAR(throughputs.of("a100", 30), 2 * throughputs.of("a100", 60), 1e-9);
}

}  // namespace
}  // namespace frostpipe
