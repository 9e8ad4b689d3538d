#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "simulator/generation/simulate_generation.h"

namespace frostpipe {

/// A result of Helix's artifact, measured or of its own simulator.
struct HelixResult {
  std::string section;      // of the paper: "6.3" both together, "6.6" other placements, "6.7" other choices of paths
  std::string cluster;      // "single24"
  std::string sub_cluster;  // "a100": the machines of this type alone; "combined": all types in the sum; empty = whole
  std::string model;        // "LLaMA-30B"
  std::string method;       // "helix"
  bool is_measured = true, is_online = false;
  double decode_tokens_per_s = 0;
  std::optional<double> prompt_s, decode_s;  // means
};

/// What a machine type does with a model.
struct HelixMachine {
  struct Capacity {
    int num_layers = 0;
    std::int64_t cache_tokens = 0;  // of each layer
    int largest_prompt_batch = 1, largest_decode_batch = 1;
  };
  BatchTimes prompt_ns, decode_ns;   // of a layer
  std::vector<Capacity> capacities;  // by ascending numbers of layers

  /// Beyond the measured numbers of layers on the line of the last two. Requires two.
  Capacity capacity_of(int num_layers) const;
};

struct HelixPlacement {
  int machine = 0;  // of the cluster, or of the sub-cluster's machines
  int first_layer = 0, num_layers = 0;
};

struct HelixCluster {
  std::vector<std::string> types;  // of each machine, in small letters
  GenerationLink every_link;
  bool has_other_links = false;  // not read: the data have no entry that shows its form
};

/// Of the requests that are served.
struct MeanRequest {
  double prompt_tokens = 0, generated_tokens = 0;
  double tokens() const { return prompt_tokens + generated_tokens; }
};

/// By which Helix weighs its paths, and the generated tokens for which it reserves caches.
inline constexpr MeanRequest kHelixMean{.prompt_tokens = 750, .generated_tokens = 240};

struct HelixData {
  std::vector<HelixResult> results;
  std::map<std::pair<std::string, std::string>, HelixMachine> machines;  // by model and type
  std::map<std::string, HelixCluster> clusters;
  std::map<std::string, std::vector<HelixPlacement>> placements;  // "single24 LLaMA-70B separate_l4"
  std::vector<GenerationRequest> requests;  // Azure's conversations, as Helix takes them: arrivals not known
};

/// FOLDER/helix and FOLDER/azure. Of the requests those with 4 to 2,048 tokens of prompt and 4 to 1,024 generated ones.
/// Times of layers do not fall, and a prompt takes at least what one decode takes. Throws InvalidInput that names file
/// and place.
HelixData load_helix_data(const std::filesystem::path& folder);

MeanRequest mean_of(const std::vector<GenerationRequest>& requests);

/// The machines as they were placed; or why they cannot be: no such placement, links of several kinds, more layers on a
/// machine than its memory holds beside caches. What a machine holds beyond the measured numbers of layers is
/// extrapolated from the last two.
std::variant<GenerationCluster, std::string> helix_cluster(const HelixData& data, const std::string& cluster,
                                                           const std::string& model, const std::string& sub_cluster,
                                                           const std::string& method);

}  // namespace frostpipe
