// Files of other programs: configurations of models, layer graphs, figures of devices.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "profiles/estimates/estimate.h"
#include "profiles/estimates/estimated_model.h"
#include "profiles/hardware.h"
#include "profiles/import/import.h"
#include "tests/fuzz/mutations.h"

namespace frostpipe {
namespace {

using test::fuzz;
using test::ScratchFolder;

/// Checks like `profile`, which writes only files that it can read.
void write_and_read(const Profile& profile) { profile_from_json(to_json(profile), "profile.json"); }

void fuzz_config(const std::string& valid) {
  fuzz(valid, [](const std::string& text) {
    const Estimate made = estimate(model_from_config(text, "config.json", 0), {.global_batch_size = 2});
    write_and_read(made.profile);
    cluster_from_json(to_json(made.cluster), "cluster.json");
  });
}

TEST(Fuzz, ConfigsOfBert) {
  fuzz_config(
      R"({"model_type":"bert","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,"intermediate_size":128,
      "vocab_size":1000,"max_position_embeddings":128,"type_vocab_size":2,"hidden_act":"gelu","is_decoder":false,
      "position_embedding_type":"absolute","pruned_heads":{},"quantization_config":null,"num_labels":2,
      "id2label":{"0":"a","1":"b"}})");
}

TEST(Fuzz, ConfigsOfVit) {
  fuzz_config(
      R"({"model_type":"vit","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,"intermediate_size":128,
      "image_size":32,"patch_size":8,"num_channels":3,"hidden_act":"gelu","num_labels":10})");
}

TEST(Fuzz, ConfigsOfGpt2) {
  fuzz_config(
      R"({"model_type":"gpt2","n_embd":64,"n_positions":128,"vocab_size":1000,"n_layer":2,"n_head":4,"n_inner":256,
      "hidden_size":64,"num_hidden_layers":2,"activation_function":"gelu_new","scale_attn_weights":true})");
}

TEST(Fuzz, FiguresOfDevices) {
  fuzz(to_json(known_hardware().front()), [](const std::string& text) {
    const Hardware hardware = hardware_from_json(text, "hardware.json");
    if (hardware_from_json(to_json(hardware), "again") != hardware)
      throw std::logic_error("read, written and read again is another device");
    write_and_read(estimate(find_model("vit-b16", 0), {.rates = rates_of(hardware)}).profile);
  });
}

TEST(Fuzz, LayerGraphsAsJson) {
  fuzz(R"({"nodes":[{"id":0,"name":"a","TMPCs":{"1":[{"timePerSample":0.003,"parameterSize":400.0}]}},
       {"id":7,"name":"b","TMPCs":{"1":[{"timePerSample":0.006,"parameterSize":0.0}]}},
       {"id":8,"name":"c","TMPCs":{"1":[{"timePerSample":0.006,"parameterSize":8}]}}],
       "edges":[{"sourceId":0,"destId":7,"communicationCost":8192.0},
                {"sourceId":7,"destId":8,"communicationCost":100}]})",
       [](const std::string& text) { write_and_read(import_profile(text, "graph.json", {})); });
}

TEST(Fuzz, LayerGraphsAsText) {
  fuzz(
      "node1 -- a -- forward_compute_time=2.2, backward_compute_time=2.8, activation_size=64.0, parameter_size=[8; 4]\n"
      "node2 -- b -- forward_compute_time=1, backward_compute_time=2, activation_size=[32.0; 8], parameter_size=0\n"
      "\tnode1 -- node2\n",
      [](const std::string& text) { write_and_read(import_profile(text, "graph.txt", {.measured_samples = 64})); });
}

TEST(Fuzz, TablesOfBlocks) {
  fuzz("100,190,280\n50,90,130\n",
       [](const std::string& text) { write_and_read(import_profile(text, "resnet-V100-1.csv", {})); });
}

constexpr const char* kTimesOfLayers =
    R"({"1":{"1":{"0":[0.002,0.004,0.01],"1":[0.003,0.006,0.01]},"2":{"0":[0.001,0.002,0.01],"1":[0.001,0.002,0.01]}},
    "2":{"1":{"0":[0.001,0.005,0.01],"1":[0.005,0.011,0.01]}}})";
constexpr const char* kSizesOfLayers =
    R"({"OPT":{"1":{"0":{"params_bytes":400,"act_output_bytes":8192,"act_mem_bytes":100},
                    "1":{"params_bytes":400,"act_output_bytes":8192,"act_mem_bytes":100}},
               "2":{"0":{"params_bytes":200,"act_output_bytes":8192,"act_mem_bytes":60},
                    "1":{"params_bytes":200,"act_output_bytes":8192,"act_mem_bytes":60}}}})";

TEST(Fuzz, TimesOfLayersBySize) {
  const ScratchFolder folder;
  folder.write("llm_info.json", kSizesOfLayers);
  const std::string source = folder.path() / "OPT_V100_profile.json";
  fuzz(kTimesOfLayers, [&](const std::string& text) { write_and_read(import_profile(text, source, {})); });
}

TEST(Fuzz, SizesOfLayersBySize) {
  const ScratchFolder folder;
  const std::string source = folder.path() / "OPT_V100_profile.json";
  fuzz(kSizesOfLayers, [&](const std::string& text) {
    folder.write("llm_info.json", text);
    write_and_read(import_profile(kTimesOfLayers, source, {}));
  });
}

}  // namespace
}  // namespace frostpipe
