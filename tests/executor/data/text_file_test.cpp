#include "executor/data/text_file.h"

#include <gtest/gtest.h>

#include <string_view>

#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using namespace std::string_view_literals;

class TextFileTest : public test::ScratchFolderTest {
 protected:
  std::string refusal_of(std::string_view content) const {
    return message_of([&] { read_utf8_file(file("t.txt", content)); });
  }
};

TEST_F(TextFileTest, AByteOrderMarkIsNoText) {
  EXPECT_EQ(read_utf8_file(file("t.txt",
                                "\xEF\xBB\xBF"
                                "é\n")),
            "é\n");
  EXPECT_EQ(read_utf8_file(file("t.txt", "")), "");
}

TEST_F(TextFileTest, TheFirstLineThatIsNoTextIsNamedAndTheOthersCounted) {
  EXPECT_EQ(refusal_of("a\nb\xE9\nc\n"),
            "t.txt:2: must be UTF-8 text (of Latin-1 make it by: iconv -f latin1 -t utf8 OLD > NEW), is something else "
            "in this line");
  EXPECT_EQ(refusal_of("a\nb\nc\xE9\n\xE9\nd"),
            "t.txt:3: must be UTF-8 text (of Latin-1 make it by: iconv -f latin1 -t utf8 OLD > NEW), is something else "
            "in 2 lines, this being the first");
  EXPECT_EQ(refusal_of("a\0b\n"sv),
            "t.txt:1: must be text without NUL bytes (drop them by: tr -d '\\0' < OLD > NEW), is with some in this "
            "line");
}

TEST_F(TextFileTest, Utf16IsNamedAsSuch) {
  EXPECT_EQ(refusal_of("\xFF\xFE"
                       "a\0"sv),
            "t.txt: must be UTF-8 text (iconv -f utf16 -t utf8 OLD > NEW), is UTF-16");
}

}  // namespace
}  // namespace frostpipe
