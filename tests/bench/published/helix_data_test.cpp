#include "bench/published/helix_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/bench/published/helix_folder.h"

namespace frostpipe {
namespace {

using test::HelixFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Nanoseconds kMs = 1'000'000;

TEST_F(HelixFolder, HasResultsWithTheirLatenciesOrNone) {
  write_results(
      "6.3,two,,simulated,LLaMA-30B,online,swarm,80.5,,\n6.7,two,a100,measured,LLaMA-30B,offline,helix,100,0.5,0.25\n");
  const HelixData data = load_helix_data(folder_);
  ASSERT_EQ(data.results.size(), 2U);
  const HelixResult &first = data.results[0], &second = data.results[1];
  EXPECT_FALSE(first.is_measured);
  EXPECT_TRUE(first.is_online);
  EXPECT_EQ(first.method, "swarm");
  EXPECT_DOUBLE_EQ(first.decode_tokens_per_s, 80.5);
  EXPECT_EQ(first.prompt_s, std::nullopt);
  EXPECT_TRUE(second.is_measured);
  EXPECT_FALSE(second.is_online);
  EXPECT_EQ(second.section, "6.7");
  EXPECT_EQ(second.sub_cluster, "a100");
  EXPECT_EQ(second.prompt_s, 0.5);
  EXPECT_EQ(second.decode_s, 0.25);
}

TEST_F(HelixFolder, HasTimesThatDoNotFallAndBeginWithOneDecode) {
  const HelixData data = load_helix_data(folder_);
  const HelixMachine& machine = data.machines.at({"LLaMA-30B", "a100"});
  EXPECT_EQ(machine.decode_ns, (BatchTimes{{{2, 1 * kMs}, {4, 2'500'000}, {6, 2'500'000}}}));
  EXPECT_EQ(machine.prompt_ns, (BatchTimes{{{0, 1 * kMs}, {500, 4 * kMs}}}));
}

TEST_F(HelixFolder, HasTheRequestsThatHelixTakes) {
  const HelixData data = load_helix_data(folder_);
  ASSERT_EQ(data.requests.size(), 1U);
  EXPECT_EQ(data.requests[0].prompt_tokens, 760);
  EXPECT_DOUBLE_EQ(mean_of(data.requests).tokens(), 1000);
}

// The artifact divides bytes by what its files, and from them these, call bits per second.
TEST_F(HelixFolder, HasLinksOfBytes) {
  const auto cluster = helix_cluster(load_helix_data(folder_), "two", "LLaMA-30B", "a100", "helix");
  const auto& made = std::get<GenerationCluster>(cluster);
  ASSERT_EQ(made.machines.size(), 1U);
  EXPECT_EQ(made.machines[0].end_layer, 60);
  EXPECT_EQ(made.machines[0].cache_tokens, 625 * 16);
  EXPECT_EQ(made.machines[0].largest_decode_batch, 80);
  EXPECT_EQ(made.activation_bytes, 2 * 6656);
  EXPECT_DOUBLE_EQ(made.links[1][0].bytes_per_second, 2e9);
  EXPECT_EQ(made.links[0][1].latency_ns, 1 * kMs);
}

TEST_F(HelixFolder, HasCachesOnALineBeyondWhatWasMeasured) {
  // 16,000 and 14,400 tokens for one and two layers together: 12,800 for three.
  const HelixData data = load_helix_data(folder_);
  const auto cluster = helix_cluster(data, "two", "LLaMA-30B", "", "short");
  EXPECT_EQ(std::get<GenerationCluster>(cluster).machines[1].cache_tokens, 12'800 / 3);
}

TEST_F(HelixFolder, JoinsMachinesInTheirMiddlesInPetalsPlacementAlone) {
  const HelixData data = load_helix_data(folder_);
  const auto next = [&](const std::string& method) {
    return successors(std::get<GenerationCluster>(helix_cluster(data, "two", "LLaMA-30B", "", method)))[0];
  };
  EXPECT_THAT(next("petals"), ElementsAre(1));
  EXPECT_THAT(next("short"), ElementsAre());
}

TEST_F(HelixFolder, SaysWhyAClusterCannotBeMade) {
  const auto reason = [&](const std::string& method) {
    return std::get<std::string>(helix_cluster(load_helix_data(folder_), "two", "LLaMA-30B", "", method));
  };
  EXPECT_THAT(reason("swarm"), HasSubstr("no placement two LLaMA-30B swarm"));
  EXPECT_THAT(reason("helix"), HasSubstr("30 layers on l4 leave its caches 0 tokens"));
}

TEST_F(HelixFolder, PlacedLayersAreTheModels) {
  for (const char* placed : {R"("first_layer": 2000000, "layers": 60)", R"("first_layer": -1, "layers": 2)",
                             R"("first_layer": 31, "layers": 30)", R"("first_layer": 0, "layers": 0)"}) {
    write("helix/placements.json",
          std::string(R"({"two": {"LLaMA-30B": {"helix": [{"machine": 0, )") + placed + "}]}}}");
    const HelixData data = load_helix_data(folder_);
    EXPECT_THAT(message_of([&] { helix_cluster(data, "two", "LLaMA-30B", "", "helix"); }),
                HasSubstr("must give machine 0 some of the model's 60 layers"))
        << placed;
  }
}

TEST_F(HelixFolder, MachinesWithoutTimesAreNamedAlsoWhereTheyHoldNothing) {
  write("helix/clusters.json", R"({"two": {"machines": ["A100", "H100"], "every_link": {"bits_per_second": 2e9,
                                  "latency_seconds": 0.001}, "other_links": []}})");
  write("helix/placements.json",
        R"({"two": {"LLaMA-30B": {"helix": [{"machine": 0, "first_layer": 0, "layers": 60}]}}})");
  EXPECT_THAT(std::get<std::string>(helix_cluster(load_helix_data(folder_), "two", "LLaMA-30B", "", "helix")),
              HasSubstr("no times or capacities of LLaMA-30B on h100"));
}

TEST_F(HelixFolder, OtherLinksAreRefusedOnlyWhereTheyWouldBeUsed) {
  write_clusters(R"([{"anything": 1}])");
  const HelixData data = load_helix_data(folder_);
  EXPECT_EQ(data.clusters.at("two").types.size(), 2U);
  EXPECT_THAT(std::get<std::string>(helix_cluster(data, "two", "LLaMA-30B", "a100", "helix")),
              HasSubstr("two: other_links: must be empty"));
}

TEST_F(HelixFolder, SaysWhereItIsNotAsExpected) {
  const auto says = [&](const std::string& file, const std::string& sentence, const std::string& content) {
    write_all();
    write(file, content);
    EXPECT_THAT(message_of([&] { load_helix_data(folder_); }), HasSubstr(sentence));
  };
  const std::string times = "model,machine,phase,tokens,milliseconds_per_layer\n";
  says("helix/layer_times.csv", "must have times of both phases", times + "LLaMA-30B,a100,decode,2,1.0\n");
  says("helix/layer_times.csv", "layer_times.csv:3: tokens: must be more than the line before has",
       times + "LLaMA-30B,a100,decode,2,1.0\nLLaMA-30B,a100,decode,2,1.0\n");
  says("helix/results.csv", "has no column", "section\n6.3\n");
  const std::string results =
      "section,cluster,sub_cluster,kind,model,setting,method,decode_tokens_per_s,prompt_latency_mean_s,"
      "decode_latency_mean_s\n";
  says("helix/results.csv", "must have results", results);
  says("helix/results.csv", "results.csv:2: kind: must be measured or simulated",
       results + "6.3,two,,mesured,LLaMA-30B,offline,helix,100,,\n");
  says("helix/results.csv", "results.csv:2: setting: must be online or offline",
       results + "6.3,two,,measured,LLaMA-30B,of,helix,100,,\n");
  says("helix/capacity.csv", "capacity.csv:3: layers_on_machine: must be more than the line before has",
       "model,machine,layers_on_machine,cache_blocks_per_layer,largest_prompt_batch_requests,largest_decode_batch\n"
       "LLaMA-30B,a100,30,1250,3,90\nLLaMA-30B,a100,30,625,3,80\n");
  says("azure/AzureLLMInferenceTrace_conv.csv", "holds no request", "TIMESTAMP,ContextTokens,GeneratedTokens\nx,3,3\n");
  says("helix/clusters.json", "must have bits_per_second > 0",
       R"({"two": {"machines": [], "every_link": {"bits_per_second": 0, "latency_seconds": 0}, "other_links": []}})");
  write_all();
  std::filesystem::remove(folder_ / "helix/capacity.csv");
  EXPECT_THAT(message_of([&] { load_helix_data(folder_); }), HasSubstr("capacity.csv"));
}

}  // namespace
}  // namespace frostpipe
