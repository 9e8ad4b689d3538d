#include "bench/training/bench_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace frostpipe {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

TEST(BenchText, SaysWhatARowIsComparedWithAndWhatIsMissing) {
  const BenchSuite suite{
      .title = "A suite", .configurations = {{.name = "elastic", .paper_speedup = "2.83"}}, .data = {}};
  const BenchRow row{.dataset = "texts",
                     .configuration = "elastic",
                     .threads_per_rank = 2,
                     .freezes = true,
                     .num_seeds = 2,
                     .samples_per_second = 12.34,
                     .to_static = {2, 1.5, 2.5},
                     .to_data_parallel = {1.25, 1.25, 1.25},
                     .accuracy = 0.915,
                     .difference = 0.005,
                     .low = -0.01,
                     .high = 0.02,
                     .has_difference = true,
                     .peak_memory_bytes = 300 << 20,
                     .on_frontier = true};
  const std::string text =
      bench_text(suite, {.rows = {row}, .left_out = {"texts/elastic seed 3"}, .failed = {"texts/static seed 1: no"}});
  EXPECT_THAT(text, StartsWith("A suite\n\n"));
  EXPECT_THAT(text, HasSubstr("1 rank with 2 threads"));
  for (const char* const cell :
       {" 12.3 ", " 2.00 (1.50-2.50) ", " 1.25 ", " - ", " 91.50 ", " +0.50 (-1.00 to +2.00) ", " 300 ", " *\n"})
    EXPECT_THAT(text, HasSubstr(cell));
  EXPECT_THAT(text, HasSubstr("on 1 rank: freezing, and the cache where it is on, without a pipeline\n"));
  EXPECT_THAT(text,
              EndsWith("breakdown, texts: elastic 2.00 times the static pipeline (the paper's figure for ViT: 2.83)\n"
                       "not run, out of budget: texts/elastic seed 3\n"
                       "failed: texts/static seed 1: no\n"));
}

}  // namespace
}  // namespace frostpipe
