#pragma once
// A made-up folder of Helix's results, for tests of what reads it.
#include <filesystem>
#include <string>

#include "profiles/files.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe::test {

/// One A100 with all of LLaMA-30B, beside one L4 that the placements of both hold half of it with. Requests are all of
/// 760 tokens of prompt and 240 generated ones.
class HelixFolder : public ScratchFolderTest {
 protected:
  HelixFolder() { write_all(); }

  void write(const std::string& file, const std::string& content) { write_file_atomically(folder_ / file, content); }

  /// Lines of section, cluster, sub_cluster, kind, model, setting, method, tokens/s, and both latencies or none.
  void write_results(const std::string& lines) {
    write("helix/results.csv",
          "section,cluster,sub_cluster,kind,model,setting,method,decode_tokens_per_s,prompt_latency_mean_s,"
          "decode_latency_mean_s\n" +
              lines);
  }

  void write_clusters(const std::string& other_links) {
    write("helix/clusters.json", R"({"two": {"machines": ["A100", "L4"], "every_link": {"bits_per_second": 2e9,
                                     "latency_seconds": 0.001}, "other_links": )" +
                                     other_links + "}}");
  }

  void write_all() {
    write_results("6.3,two,a100,measured,LLaMA-30B,offline,helix,100,0.5,0.25\n");
    write("helix/layer_times.csv",
          "model,machine,phase,tokens,milliseconds_per_layer\n"
          "LLaMA-30B,a100,decode,0,0.0\nLLaMA-30B,a100,decode,2,1.0\nLLaMA-30B,a100,decode,4,3.0\n"
          "LLaMA-30B,a100,decode,6,2.0\nLLaMA-30B,a100,prompt,0,0.0\nLLaMA-30B,a100,prompt,500,4.0\n"
          "LLaMA-30B,l4,decode,2,5.0\nLLaMA-30B,l4,prompt,500,20.0\n");
    write("helix/capacity.csv",
          "model,machine,layers_on_machine,cache_blocks_per_layer,largest_prompt_batch_requests,largest_decode_batch\n"
          "LLaMA-30B,a100,30,1250,3,90\nLLaMA-30B,a100,60,625,3,80\n"
          "LLaMA-30B,l4,1,1000,1,70\nLLaMA-30B,l4,2,450,1,60\n");
    write_clusters("[]");
    write("helix/placements.json", R"({"two": {"LLaMA-30B": {
          "helix_a100": [{"machine": 0, "first_layer": 0, "layers": 60}],
          "helix": [{"machine": 0, "first_layer": 0, "layers": 30}, {"machine": 1, "first_layer": 30, "layers": 30}],
          "short": [{"machine": 0, "first_layer": 0, "layers": 30}, {"machine": 1, "first_layer": 28, "layers": 3}],
          "petals": [{"machine": 0, "first_layer": 0, "layers": 30}, {"machine": 1, "first_layer": 29, "layers": 2}]
          }}})");
    write("azure/AzureLLMInferenceTrace_conv.csv",
          "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,760,240\n2023-11-16 18:15:47.10,3,240\n"
          "2023-11-16 18:15:48.10,2049,240\n2023-11-16 18:15:49.10,760,1025\n");
  }
};

}  // namespace frostpipe::test
