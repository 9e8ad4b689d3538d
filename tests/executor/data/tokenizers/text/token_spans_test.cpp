#include "executor/data/tokenizers/text/token_spans.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace frostpipe {
namespace {

using Starts = std::vector<std::size_t>;

TEST(CodePointStarts, CountBytes) {
  EXPECT_EQ(code_point_starts(""), (Starts{0}));
  EXPECT_EQ(code_point_starts("aé中😀b"), (Starts{0, 1, 3, 6, 10, 11}));
}

// Oracle: len(bytes.decode("utf-8", "replace")) of Python, which reads one U+FFFD for each maximal part of a sequence.
TEST(CodePointStarts, BrokenSequencesCountAsPythonReadsThem) {
  EXPECT_EQ(code_point_starts("a\xFF"
                              "b"),
            (Starts{0, 1, 2, 3}));
  EXPECT_EQ(code_point_starts("\xE4\xB8"
                              "b"),
            (Starts{0, 2, 3}))
      << "two bytes of three are one";
  EXPECT_EQ(code_point_starts("\x80\x80"), (Starts{0, 1, 2})) << "nothing begins with 80";
  EXPECT_EQ(code_point_starts("\xED\xA0\x80"), (Starts{0, 1, 2, 3})) << "a surrogate has no beginning";
}

}  // namespace
}  // namespace frostpipe
