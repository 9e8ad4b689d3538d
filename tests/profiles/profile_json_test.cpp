// Oracle: the profile that was written, and messages that name place, rule and value.
#include <limits>
#include <random>

#include "profiles/profile.h"
#include "tests/plan/examples.h"

namespace frostpipe {
namespace {

using examples::chain_model;
using examples::key_of;
using examples::message_of;
using examples::with;
using testing::EndsWith;
using testing::HasSubstr;

TEST(Profile, SurvivesItsFileWithEveryFieldSet) {
  Profile profile = examples::flat_profile(chain_model(2), 4, 16);
  profile.model_path = "models/mini";
  profile.quick = true;
  profile.frozen_dtype = DType::kBFloat16;
  profile.workload = examples::example_workload();
  profile.workload->window_overlap = 0;  // differs from none
  profile.forward_flops = 3.75e20;
  profile.measurements[0].key.context_tokens = 1;
  profile.measurements[3].cost.forward_ns = 1'000'000'000'000'000;  // the largest allowed value
  EXPECT_EQ(profile_from_json(to_json(profile), "p.json"), profile);
  profile.workload.reset();
  EXPECT_EQ(profile_from_json(to_json(profile), "p.json"), profile);
}

/// Oracle: the file without these fields.
TEST(Profile, HasOptionalFieldsThatMayBeNull) {
  const Profile profile = examples::flat_profile(chain_model(2), 4, 16);
  std::string text = with(to_json(profile), "\"machine\":", "\"quick\": null, \"workload\": null, \"machine\":");
  text = with(text, "\"edges\":", "\"vocab_size\": null, \"expert_parallel_size\": null, \"edges\":");
  EXPECT_EQ(profile_from_json(text, "p.json"), profile);
}

TEST(Profile, OfAnOlderVersionHasItsMeanLengthRoundedAndRoundedUp) {
  Profile profile = examples::flat_profile(chain_model(2), 4, 16);
  profile.workload = examples::example_workload();
  const std::string text = with(to_json(profile), "\"tokens\": 31.75", "\"tokens\": 32, \"mean_tokens\": 32");
  profile.workload->tokens = 32;
  EXPECT_EQ(profile_from_json(text, "p.json"), profile);
}

TEST(Profile, OfAnOlderVersionHasNoOperations) {
  Profile profile = examples::flat_profile(chain_model(2), 4, 16);
  const std::string old = to_json(profile);
  EXPECT_THAT(old, testing::Not(HasSubstr("forward_flops")));
  EXPECT_EQ(profile_from_json(old, "p.json").forward_flops, std::nullopt);
  profile.forward_flops = 2.5;
  for (const char* none : {"\"NaN\"", "0", "-1", "\"many\""}) {
    const std::string text =
        with(to_json(profile), "\"forward_flops\": 2.5", std::string("\"forward_flops\": ") + none);
    EXPECT_THAT(message_of([&] { profile_from_json(text, "p.json"); }), HasSubstr("p.json: forward_flops: must be"));
  }
}

TEST(Profile, RefusesAMeanLengthThatIsNone) {
  Profile profile = examples::flat_profile(chain_model(2), 4, 16);
  profile.workload = examples::example_workload();
  for (const char* none : {"\"NaN\"", "\"Infinity\"", "0.5", "-1", "1e300"}) {
    const std::string text = with(to_json(profile), "\"tokens\": 31.75", std::string("\"tokens\": ") + none);
    EXPECT_THAT(message_of([&] { profile_from_json(text, "p.json"); }), HasSubstr("p.json: workload.tokens: must be"));
  }
}

TEST(Profile, RefusesATypeOfFrozenLayersThatIsNone) {
  Profile profile = examples::flat_profile(chain_model(2), 4, 16);
  profile.frozen_dtype = DType::kBFloat16;
  const std::string text = with(to_json(profile), "\"frozen_dtype\": \"bfloat16\"", "\"frozen_dtype\": \"int3\"");
  EXPECT_EQ(message_of([&] { profile_from_json(text, "p.json"); }),
            "p.json: frozen_dtype: must be bfloat16, or left out for the other layers' type, is \"int3\"");
}

/// Returns the text with `word` in place of every `known`.
std::string renamed(std::string text, const std::string& known, const std::string& word) {
  for (std::size_t at = text.find(known); at != std::string::npos; at = text.find(known, at + word.size()))
    text.replace(at, known.size(), word);
  return text;
}

TEST(Profile, HasItsMeasurementsInTheOrderOfTheWordsOfTheirTypes) {
  Profile profile{.model = chain_model(1)};
  for (const DType dtype : {DType::kFloat64, DType::kBFloat16, DType::kFloat32})
    profile.measurements.push_back({.key = {.layer = 1, .dtype = dtype}, .cost = {}});
  std::vector<std::string_view> words;
  for (const Measurement& measurement : profile_from_json(to_json(profile), "p.json").measurements)
    words.push_back(to_string(measurement.key.dtype));
  EXPECT_THAT(words, testing::ElementsAre("bfloat16", "float32", "float64"));
}

TEST(Profile, PassesOverRowsInTypesAndOfOptimizersThatNoPlanHas) {
  const Profile known = examples::flat_profile(chain_model(1), 4, 16);
  Profile profile = known;
  profile.measurements.push_back({.key = {.layer = 1, .dtype = DType::kBFloat16}, .cost = {}});
  profile.updates.push_back({.layer = 1, .dtype = DType::kBFloat16});
  profile.updates.push_back({.layer = 1, .optimizer = Optimizer::kSgd});
  const std::string text = renamed(renamed(to_json(profile), "\"bfloat16\"", "\"float16\""), "\"sgd\"", "\"lion\"");
  EXPECT_EQ(profile_from_json(text, "p.json"), known);
}

/// A profile with a row for each layer, since each has another workspace.
Profile profile_of_unequal_layers() {
  Profile profile = examples::flat_profile(chain_model(1), 4, 16);
  for (Measurement& one : profile.measurements) one.cost.workspace_bytes += one.key.layer;
  return profile;
}

TEST(Profile, CountsRowsThatItPassesOverWhereOneIsWrong) {
  Profile profile = profile_of_unequal_layers();
  profile.measurements.insert(profile.measurements.begin(), {.key = {.dtype = DType::kBFloat16}, .cost = {}});
  profile.updates.insert(profile.updates.begin(), {.optimizer = Optimizer::kSgd});
  const auto error_with = [&](const char* good, const char* bad) {
    const std::string text = renamed(renamed(to_json(profile), "\"bfloat16\"", "\"float16\""), "\"sgd\"", "\"lion\"");
    return message_of([&] { profile_from_json(with(text, good, bad), "p.json"); });
  };
  EXPECT_EQ(error_with("\"forward_ns\": 1000", "\"forward_ns\": -5"),
            "p.json: measurements[1].cost.forward_ns: must be >= 0, is -5");
  EXPECT_EQ(error_with("\"layer\": 3", "\"layer\": 4"),
            "p.json: measurements[4].key.layer: must be a layer of the model, < 4, is 4");
  EXPECT_EQ(error_with("\"update_ns\": 50", "\"update_ns\": -1"), "p.json: updates[1].update_ns: must be >= 0, is -1");
}

TEST(Profile, RefusesToHaveRowsOfNoOtherKind) {
  const std::string text = to_json(examples::flat_profile(chain_model(1), 4, 16));
  EXPECT_EQ(message_of([&] { profile_from_json(renamed(text, "\"float32\"", "\"float16\""), "p.json"); }),
            "p.json: measurements[0].key.dtype: must be float32, float64 or bfloat16, is \"float16\"");
  EXPECT_EQ(message_of([&] { profile_from_json(renamed(text, "\"adamw\"", "\"lion\""), "p.json"); }),
            "p.json: updates[0].optimizer: must be adamw or sgd, is \"lion\"");
}

TEST(Profile, RefusesTimesWhoseSumsWouldOverflow) {
  Profile profile = examples::flat_profile(chain_model(2), 4, 16);
  profile.measurements[3].cost.weight_gradient_ns = 1'000'000'000'000'001;
  EXPECT_THROW(profile_from_json(to_json(profile), "p.json"), InvalidInput);
}

TEST(Profile, RandomOnesSurviveTheirFile) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 20; ++round) {
    Profile profile = examples::flat_profile(chain_model(1 + round % 4), 1 + round, 2 + round);
    for (auto& m : profile.measurements) {
      m.cost.forward_ns = static_cast<Nanoseconds>(random() >> (15 + random() % 49));
      m.cost.saved_activation_bytes = static_cast<Bytes>(random() >> (15 + random() % 49));
      if (round % 2 == 0)
        m.cost.split_backward = SplitBackward{.input_ns = round, .weight_ns = round + 1, .kept_bytes = 7};
    }
    const auto text = to_json(profile);
    EXPECT_EQ(profile_from_json(text, "p.json"), profile);
    EXPECT_EQ(to_json(profile_from_json(text, "p.json")), text);
  }
}

class BadProfile : public testing::Test {
 protected:
  static std::string error_of(const std::string& text) {
    return message_of([&] { profile_from_json(text, "p.json"); });
  }
  const std::string good_ = to_json(profile_of_unequal_layers());
};

TEST_F(BadProfile, NegativeTime) {
  EXPECT_EQ(error_of(with(good_, "\"forward_ns\": 1000", "\"forward_ns\": -5")),
            "p.json: measurements[0].cost.forward_ns: must be >= 0, is -5");
  EXPECT_EQ(error_of(with(good_, "\"update_ns\": 50", "\"update_ns\": -1")),
            "p.json: updates[0].update_ns: must be >= 0, is -1");
}

TEST_F(BadProfile, WrongType) {
  EXPECT_EQ(error_of(with(good_, "\"forward_ns\": 1000", "\"forward_ns\": \"x\"")),
            "p.json: measurements[0].cost.forward_ns: must be an integer, is \"x\"");
  EXPECT_EQ(error_of(with(good_, "\"forward_ns\": 1000", "\"forward_ns\": 1.5")),
            "p.json: measurements[0].cost.forward_ns: must be an integer, is 1.5");
  EXPECT_EQ(error_of(with(good_, "\"model_path\": \"\"", "\"model_path\": 3")),
            "p.json: model_path: must be a string, is 3");
  EXPECT_THAT(error_of(R"({"format": "frostpipe.profile", "version": 1, "model": []})"),
              HasSubstr("p.json: model: must be an object, is []"));
}

TEST_F(BadProfile, NumberOutOfRange) {
  EXPECT_EQ(error_of(with(good_, "\"layer\": 0", "\"layer\": 4294967296")),
            "p.json: measurements[0].key.layer: must be <= 2147483647, is 4294967296");
  EXPECT_EQ(error_of(with(good_, "\"forward_ns\": 1000", "\"forward_ns\": 18446744073709551615")),
            "p.json: measurements[0].cost.forward_ns: must be <= 1000000000000000, is 18446744073709551615");
  EXPECT_EQ(error_of(with(good_, "\"layer\": 3", "\"layer\": 4")),
            "p.json: measurements[3].key.layer: must be a layer of the model, < 4, is 4");
}

TEST_F(BadProfile, MissingAndUnknownFields) {
  EXPECT_EQ(error_of(with(good_, "\"forward_ns\": 1000,", "")),
            "p.json: measurements[0].cost: has no field \"forward_ns\"");
  EXPECT_EQ(error_of(with(good_, "\"forward_ns\": 1000", "\"foward_ns\": 1000")),
            "p.json: measurements[0].cost.foward_ns: is not a known field; did you mean \"forward_ns\"?");
  EXPECT_THAT(error_of(with(good_, "\"model_path\"", "\"colour\": 1, \"model_path\"")),
              HasSubstr("p.json: colour: is not a known field; known: model, model_path, machine"));
}

TEST_F(BadProfile, Twice) {
  EXPECT_THAT(error_of(with(good_, "\"layer\": 1", "\"layer\": 0")),
              HasSubstr("p.json: measurements: layer 0 on cpu in float32"));
}

/// A profile of a chain whose inner layers cost the same. Oracle: the profile itself, and the text with one row for
/// each kind of layer.
TEST(ProfileFile, LayersThatCostTheSameShareARow) {
  Profile profile;
  profile.model = chain_model(3);
  const int num_layers = static_cast<int>(profile.model.layers.size());
  for (int layer = 0; layer < num_layers; ++layer)
    for (const int size : {1, 2})
      profile.measurements.push_back({.key = key_of(layer, size, 16),
                                      .cost = {.forward_ns = size * (layer == 0 || layer == num_layers - 1 ? 5 : 7)}});
  const std::string text = to_json(profile);
  EXPECT_EQ(profile_from_json(text, "p.json"), profile);
  EXPECT_THAT(text, HasSubstr("\"version\": 3"));
  EXPECT_THAT(text, HasSubstr("\"layers\": [0, 7]"));
  EXPECT_THAT(text, HasSubstr("\"layers\": [1, 2, 3, 4, 5, 6]"));
  const auto error_of = [&](const std::string& replaced) {
    return message_of([&] { profile_from_json(with(text, "\"layers\": [0, 7]", replaced), "p.json"); });
  };
  EXPECT_EQ(error_of("\"layers\": []"), "p.json: measurements[0].key.layers: must not be empty, is []");
  EXPECT_EQ(error_of("\"layers\": [0, 8]"),
            "p.json: measurements[0].key.layer: must be a layer of the model, < 8, is 8");
  EXPECT_EQ(error_of("\"layers\": [0, -1]"), "p.json: measurements[0].key.layers[1]: must be >= 0, is -1");
  EXPECT_EQ(error_of("\"layers\": [0, 1, 2, 3, 4, 5, 6, 7, 7]"),
            "p.json: measurements[0].key.layers: must name each of 8 layers at most once, is 9 layers");
  EXPECT_THAT(error_of("\"layers\": [0, 0]"), HasSubstr("p.json: measurements: layer 0"));
  EXPECT_THAT(error_of("\"layer\": 0, \"layers\": [7]"), HasSubstr("key.layers: is not a known field"));
}

TEST_F(BadProfile, AnotherFormatOrANewerVersion) {
  EXPECT_EQ(error_of(with(good_, "frostpipe.profile", "frostpipe.plan")),
            "p.json: format: must be \"frostpipe.profile\", is \"frostpipe.plan\"");
  EXPECT_EQ(error_of(with(good_, "\"version\": 1", "\"version\": 4")),
            "p.json: version: was written by a newer frostpipe: this one reads versions up to 3, the file has 4");
  EXPECT_EQ(error_of(with(good_, "\"version\": 1", "\"version\": \"1\"")),
            "p.json: version: must be an integer, is \"1\"");
  EXPECT_EQ(error_of("{}"), "p.json: is not a file of frostpipe: has no field \"format\"");
  EXPECT_EQ(error_of("[1, 2]"), "p.json: must be an object, is [1,2]");
}

TEST_F(BadProfile, BrokenTextIsLocatedByLineAndColumn) {
  EXPECT_THAT(error_of("{\n  \"format\": \"frostpipe.profile\",\n  \"version\" 1\n}"),
              testing::StartsWith("p.json: line 3, column 13: is not valid JSON"));
  EXPECT_THAT(error_of(""), testing::StartsWith("p.json: line 1, column 1: is not valid JSON"));
  EXPECT_THAT(error_of(good_.substr(0, good_.size() / 2)), HasSubstr("is not valid JSON"));
  EXPECT_THAT(error_of("{\"format\": 1e999}"), HasSubstr("is not valid JSON"));
  EXPECT_THAT(error_of("{\"format\": \"\xff\"}"), HasSubstr("is not valid JSON"));
}

TEST_F(BadProfile, EveryTruncationAndManyCorruptionsAreReportedAndNeverCrash) {
  for (std::size_t length = 0; length < good_.size() - 3; length += 7)
    EXPECT_THAT(error_of(good_.substr(0, length)), testing::StartsWith("p.json"));
  std::mt19937_64 random(3);
  for (int round = 0; round < 500; ++round) {
    std::string text = good_;
    text[random() % text.size()] = "{}[]\",:0-x\xff"[random() % 11];
    try {
      profile_from_json(text, "p.json");
    } catch (const InvalidInput& error) {
      EXPECT_THAT(error.what(), testing::StartsWith("p.json"));
    }
  }
}

}  // namespace
}  // namespace frostpipe
