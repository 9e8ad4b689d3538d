#include "base/process/control_channel.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <optional>
#include <string>

namespace frostpipe {
namespace {

using namespace std::chrono_literals;

TEST(ControlChannel, KeepsTextsApartAndNoticesTheEnd) {
  auto [ours, theirs] = ControlChannel::make_pair();
  EXPECT_TRUE(ours.send("one"));
  EXPECT_TRUE(ours.send("two"));
  EXPECT_EQ(theirs.receive(0ms)->text, "one");
  EXPECT_EQ(theirs.receive(0ms)->text, "two");
  EXPECT_FALSE(theirs.receive(1ms));
  EXPECT_FALSE(theirs.closed());
  { const ControlChannel gone = std::move(ours); }
  EXPECT_FALSE(theirs.receive(1ms));
  EXPECT_TRUE(theirs.closed());
  EXPECT_FALSE(theirs.send("three"));
}

TEST(ControlChannel, NeverBlocksAWriterWithoutAReader) {
  auto [ours, theirs] = ControlChannel::make_pair();
  int sent = 0;
  while (sent < 1'000'000 && ours.send("beat")) ++sent;
  EXPECT_GT(sent, 10);
  EXPECT_LT(sent, 1'000'000);
  EXPECT_FALSE(ours.closed());
}

// Oracle: text written into one end of a pipe comes out of the other end, whichever process wrote it.
TEST(ControlChannel, ADescriptorThatGoesAlongIsTheSameThing) {
  auto [ours, theirs] = ControlChannel::make_pair();
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const Descriptor read_end(ends[0]);
  {
    const Descriptor write_end(ends[1]);
    EXPECT_TRUE(ours.send("take this", write_end.number()));
  }
  const std::optional<ControlText> said = theirs.receive(0ms);
  ASSERT_TRUE(said);
  EXPECT_EQ(said->text, "take this");
  ASSERT_TRUE(said->descriptor.is_open());
  ASSERT_EQ(write(said->descriptor.number(), "word", 4), 4);
  std::array<char, 5> word{};
  ASSERT_EQ(read(read_end.number(), word.data(), word.size()), 4);
  EXPECT_EQ(std::string(word.data()), "word");
}

TEST(ControlChannel, ATextWithoutADescriptorBringsNone) {
  auto [ours, theirs] = ControlChannel::make_pair();
  EXPECT_TRUE(ours.send("alone"));
  EXPECT_FALSE(theirs.receive(0ms)->descriptor.is_open());
}

}  // namespace
}  // namespace frostpipe
