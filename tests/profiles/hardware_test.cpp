// Oracles: the sizes that the families are published with; datasheets.
#include "profiles/hardware.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include <tuple>

#include "profiles/error.h"
#include "profiles/import/config_shape.h"

namespace frostpipe {
namespace {

using testing::HasSubstr;

template <class Work>
std::string hardware_error(Work work) {
  try {
    work();
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "no error";
}

constexpr const char* kBertLarge =
    R"({"model_type": "bert", "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16,
     "intermediate_size": 4096,
  "vocab_size": 30522, "max_position_embeddings": 512, "type_vocab_size": 2, "id2label": {"0": "a", "1": "b"}})";
constexpr const char* kViTBase =
    R"({"model_type": "vit", "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
     "intermediate_size": 3072,
  "image_size": 224, "patch_size": 16, "num_channels": 3})";
constexpr const char* kGpt2 =
    R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024, "vocab_size": 50257,
     "n_inner": null})";

std::int64_t parameters(const TransformerShape& shape, bool with_head) {
  std::int64_t sum = 0;
  for (const Layer& layer : estimate(shape, {}).profile.model.layers)
    sum += with_head || layer.kind != LayerKind::head ? layer.parameter_count : 0;
  return sum;
}

double forward_flops(const TransformerShape& shape) {
  EstimateOptions options;
  options.rates = {.flops_per_second = 1e9, .bytes_per_second = 1, .overhead_ns = 0};  // 1 ns is 1 FLOP
  options.global_batch_size = 1;
  double flops = 0;
  for (const Measurement& one : estimate(shape, options).profile.measurements)
    flops += static_cast<double>(one.cost.forward_ns);
  return flops;
}

// Such a profile would take gigabytes, and its products leave 64 bits.
TEST(ShapeFromConfig, RefusesSizesThatNoModelHas) {
  const auto refusal = [](std::string from, const std::string& field, const std::string& value) {
    const auto begin = from.find("\"" + field + "\": ");
    from.replace(begin, from.find_first_of(",}", begin) - begin, "\"" + field + "\": " + value);
    return hardware_error([&] { shape_from_config(from, "config.json", 0); });
  };
  EXPECT_EQ(refusal(kBertLarge, "num_hidden_layers", "2147483647"),
            "config.json.num_hidden_layers: must be <= 4096, is 2147483647");
  EXPECT_EQ(refusal(kBertLarge, "hidden_size", "2000000"), "config.json.hidden_size: must be <= 1048576, is 2000000");
  EXPECT_THAT(refusal(kBertLarge, "max_position_embeddings", "1048576"), HasSubstr("heads x tokens^2"));
  EXPECT_THAT(refusal(kViTBase, "image_size", "32768"), HasSubstr("heads x tokens^2"));
  EXPECT_THAT(refusal(kGpt2, "vocab_size", "100000000"), HasSubstr("vocab_size: must be <= 67108864"));
}

TEST(ShapeFromConfig, GivesTheKnownShapes) {
  for (const auto& [config, tokens, known] :
       {std::tuple{kViTBase, 0, known_shapes()[0]}, std::tuple{kBertLarge, 384, known_shapes()[1]}}) {
    const TransformerShape shape = shape_from_config(config, "config.json", tokens);
    EXPECT_EQ(parameters(shape, true), parameters(known, true));
    EXPECT_NEAR(forward_flops(shape) / forward_flops(known), 1, 1e-3);
    EXPECT_EQ(shape.tokens, known.tokens);
  }
}

TEST(ShapeFromConfig, Gpt2HasItsPublishedParameters) {
  // 124,439,808 with the head tied to the embedding; 1,536 of them are the last norm, which belongs to the head.
  EXPECT_EQ(parameters(shape_from_config(kGpt2, "config.json", 0), false), 124'439'808 - 1'536);
}

TEST(ShapeFromConfig, CountsTheLabelsThatHaveNoNames) {
  const std::string vit = kViTBase;
  const auto with = [&](const char* field) {
    return shape_from_config(vit.substr(0, vit.size() - 1) + ", " + field + "}", "config.json", 0).outputs;
  };
  EXPECT_EQ(with(R"("num_labels": 7)"), 7);
  EXPECT_EQ(with(R"("num_labels": 7, "id2label": {"0": "a", "1": "b"})"), 2) << "as transformers";
  EXPECT_EQ(with(R"("num_labels": null)"), 1000);
}

TEST(ShapeFromConfig, RefusesWhatIsNotCounted) {
  const std::string gpt2 = kGpt2;
  EXPECT_THAT(hardware_error([&] {
                shape_from_config(gpt2.substr(0, gpt2.size() - 1) + R"(, "add_cross_attention": true})", "config.json",
                                  0);
              }),
              HasSubstr("config.json: add_cross_attention: must be false: another one is not computed here, is true"));
}

TEST(ShapeFromConfig, NamesTheFieldThatIsWrong) {
  EXPECT_THAT(hardware_error([] { shape_from_config(R"({"model_type": "llama"})", "config.json", 0); }),
              HasSubstr("config.json.model_type: must be bert, vit or gpt2"));
  EXPECT_THAT(
      hardware_error([] { shape_from_config(R"({"model_type": "bert", "hidden_size": 0})", "config.json", 0); }),
      HasSubstr("config.json.hidden_size: must be >= 1"));
  EXPECT_THAT(hardware_error([] { shape_from_config(R"({"model_type": "gpt2"})", "config.json", 0); }),
              HasSubstr("n_embd"));
  EXPECT_THAT(hardware_error([] { shape_from_config(kGpt2, "config.json", 2048); }), HasSubstr("must be at most 1024"));
  EXPECT_THAT(hardware_error([] { shape_from_config("{", "config.json", 0); }), HasSubstr("is not valid JSON"));
}

TEST(Hardware, IsFoundByNameInAnyCaseAndSaysWhereItsFiguresComeFrom) {
  EXPECT_EQ(find_hardware("h200").bytes_per_second, 4.8e12);
  for (const Hardware& one : known_hardware()) {
    EXPECT_FALSE(one.source.empty());
    EXPECT_EQ(hardware_from_json(to_json(one), "file"), one);
  }
  EXPECT_THAT(hardware_error([] { find_hardware("abacus"); }),
              HasSubstr("must be one of RTX5000, RTX2080Ti, V100, A100, GH200, H100, H200"));
  EXPECT_DOUBLE_EQ(rates_of(find_hardware("A100")).flops_per_second, 0.7 * 19.5e12);
}

/// Times are divided by it.
TEST(Hardware, NeedsAnEfficiency) {
  Hardware hardware = known_hardware().front();
  for (const double efficiency : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    hardware.efficiency = efficiency;
    EXPECT_THAT(hardware_error([&] { hardware_from_json(to_json(hardware), "mine.json"); }),
                HasSubstr("mine.json: efficiency: must be >"));
  }
  hardware.efficiency = 0.5;
  hardware.peak_flops = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(hardware_error([&] { hardware_from_json(to_json(hardware), "mine.json"); }),
              HasSubstr("mine.json: peak_flops: must be >= 1, is \"NaN\""));
}

}  // namespace
}  // namespace frostpipe
