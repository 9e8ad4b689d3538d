#include "bench/training/bench_suite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "cli/shared/usage_error.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::vector<std::string> selected(const std::string& names, bool is_full) {
  BenchSuite suite{
      .title = "",
      .configurations = {{.name = "elastic"}, {.name = "elastic_fast", .is_frontier = true}, {.name = "static"}},
      .data = {}};
  select_configurations(suite, names, is_full);
  std::vector<std::string> left;
  for (const BenchConfiguration& one : suite.configurations) left.push_back(one.name);
  return left;
}

TEST(SelectConfigurations, NamesAreWholeAndOtherwiseFreezeSpeedsNeedFull) {
  EXPECT_THAT(selected("", false), ElementsAre("elastic", "static"));
  EXPECT_THAT(selected("", true), ElementsAre("elastic", "elastic_fast", "static"));
  EXPECT_THAT(selected("elastic_fast,static", false), ElementsAre("elastic_fast", "static"));
  EXPECT_THAT(selected("elastic", true), ElementsAre("elastic"));
}

TEST(SelectConfigurations, AnUnknownNameIsRefusedBesideAKnownOne) {
  for (const std::string names : {"elastic,static_gpip", "static_gpip"})
    EXPECT_THAT(
        [&] { selected(names, true); },
        testing::ThrowsMessage<UsageError>("--only: must name some of elastic, elastic_fast, static, is static_gpip"));
}

TEST(BenchSuites, CountTheirEpochsInTheTitle) {
  EXPECT_THAT(rehearsal_suite(1).title, StartsWith("Rehearsal: 1 epoch on 8 emulated ranks"));
  EXPECT_THAT(pipetransformer_suite(10, {}).title, HasSubstr("MiniLM, 10 epochs of mini-batch 64"));
}

class Sst2DataTest : public test::ScratchFolderTest {};

TEST_F(Sst2DataTest, DrawsEightThousandDifferentPhrasesTheSameEveryTime) {
  std::string text = "sentence\tlabel\n";
  for (int i = 0; i < 9000; ++i) text += std::to_string(i) + "\t0\n";
  file("sst2/train.tsv", text);
  file("sst2/dev.tsv", "sentence\tlabel\n");
  const BenchData data = sst2_data("minilm", folder_ / "sst2", folder_ / "out");
  const std::string drawn = read_text_file(folder_ / "out/sst2.train.tsv");
  std::istringstream lines(drawn);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "sentence\tlabel");
  std::set<std::string> phrases;
  while (std::getline(lines, line)) {
    EXPECT_TRUE(text.find("\n" + line + "\n") != std::string::npos) << line;
    phrases.insert(line);
  }
  EXPECT_EQ(phrases.size(), 8000U);
  EXPECT_EQ(std::count(drawn.begin(), drawn.end(), '\n'), 8001);
  sst2_data("minilm", folder_ / "sst2", folder_ / "again");
  EXPECT_EQ(read_text_file(folder_ / "again/sst2.train.tsv"), drawn);
  EXPECT_THAT(data.train, ElementsAre("--data", (folder_ / "out/sst2.train.tsv").string(), "--test-data",
                                      (folder_ / "sst2/dev.tsv").string()));
}

TEST_F(Sst2DataTest, AFileThatCannotBeReadIsFoundAtOnce) {
  file("sst2/train.tsv", "sentence\tlabel\n");
  EXPECT_THROW(sst2_data("minilm", folder_ / "sst2", folder_ / "out"), InvalidInput);  // no dev.tsv
  EXPECT_THROW(sections_data("minilm", folder_ / "sections.tsv"), InvalidInput);
}

}  // namespace
}  // namespace frostpipe
