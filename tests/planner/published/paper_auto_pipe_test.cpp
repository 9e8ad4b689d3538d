#include "planner/published/paper_auto_pipe.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"
#include "tests/support/published_sizes.h"

namespace frostpipe {
namespace {

/// Pipeline lengths for 0, 1, .. `blocks` frozen blocks, starting from 8.
std::vector<int> lengths(const std::vector<double>& sizes, int blocks) {
  std::vector<int> result;
  for (int frozen = 0; frozen <= blocks; ++frozen)
    result.push_back(paper_pipeline_length(sizes, frozen == 0 ? 0 : 1 + 2 * frozen, 8));
  return result;
}

// Expands a table that gives the largest number of frozen blocks that still needs 8, 4 and 2 stages.
std::vector<int> table(int until_8, int until_4, int until_2, int blocks) {
  std::vector<int> result;
  for (int f = 0; f <= blocks; ++f) result.push_back(f <= until_8 ? 8 : f <= until_4 ? 4 : f <= until_2 ? 2 : 1);
  return result;
}

TEST(PaperPipelineLength, EqualsThePublishedTableOfViTBase) {
  EXPECT_EQ(lengths(test::vit_base_sizes(), 12), table(4, 8, 10, 12));
}

TEST(PaperPipelineLength, EqualsThePublishedTableOfBertLarge) {
  EXPECT_EQ(lengths(test::bert_large_sizes(), 24), table(8, 16, 20, 24));
}

TEST(PaperPipelineLength, EqualsThePublishedTableOfBertBase) {
  EXPECT_EQ(lengths(test::bert_base_sizes(), 12), table(0, 5, 8, 12));
}

TEST(PaperPipelineLength, RefusesMoreFrozenUnitsThanThereAre) {
  EXPECT_THROW(paper_pipeline_length(test::vit_base_sizes(), 29, 8), InvalidInput);
  EXPECT_THROW(paper_pipeline_length(test::vit_base_sizes(), -1, 8), InvalidInput);
  EXPECT_THROW(paper_pipeline_length(test::vit_base_sizes(), 0, 0), InvalidInput);
}

}  // namespace
}  // namespace frostpipe
