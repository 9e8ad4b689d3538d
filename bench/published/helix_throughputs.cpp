#include "bench/published/helix_throughputs.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include "profiles/error.h"

namespace frostpipe {
namespace {

constexpr double kCacheInUse = 0.3, kAmpleLayers = 1.2;
constexpr int kRounds = 10;

/// The artifact's typical layers, where they hold the model with ease and where they do not, and first guesses.
struct Typical {
  std::string_view model, type;
  int layers = 0, more_layers = 0;
  double layers_per_second = 0;
};
constexpr Typical kTypical[] = {
    {"LLaMA-30B", "a100", 12, 18, 48}, {"LLaMA-30B", "v100", 4, 7, 25},   {"LLaMA-30B", "l4", 8, 11, 9},
    {"LLaMA-30B", "l4x2", 14, 22, 15}, {"LLaMA-30B", "t4", 4, 7, 8},      {"LLaMA-30B", "t4x2", 10, 15, 15},
    {"LLaMA-30B", "t4x4", 20, 30, 23}, {"LLaMA-70B", "a100", 8, 12, 80},  {"LLaMA-70B", "v100", 3, 4, 40},
    {"LLaMA-70B", "l4", 4, 7, 20},     {"LLaMA-70B", "l4x2", 9, 14, 30},  {"LLaMA-70B", "t4", 3, 4, 12.5},
    {"LLaMA-70B", "t4x2", 6, 9, 20},   {"LLaMA-70B", "t4x4", 12, 18, 30},
};

/// The end where it has none.
const Typical* typical_of(const std::string& model, const std::string& type) {
  return std::ranges::find_if(kTypical, [&](const Typical& one) { return one.model == model && one.type == type; });
}

}  // namespace

bool HelixThroughputs::knows(const std::string& model, const std::string& type) {
  return typical_of(model, type) != std::end(kTypical);
}

HelixThroughputs::HelixThroughputs(const HelixData& data, const std::string& model, int num_layers,
                                   const std::vector<std::string>& types)
    : num_layers_(num_layers) {
  int layers = 0;
  for (const std::string& type : types) {
    FROSTPIPE_CHECK(knows(model, type), "the model and the machine are Helix's");
    layers += typical_of(model, type)->layers;
    ++types_[type].count;
  }
  for (auto& [name, type] : types_) {
    const Typical& typical = *typical_of(model, name);
    type.machine = &data.machines.at({model, name});
    type.typical_layers = layers < kAmpleLayers * num_layers ? typical.more_layers : typical.layers;
    type.layers_per_second = typical.layers_per_second;
  }
  for (int round = 0; round < kRounds; ++round) {
    std::map<std::string, Type> next = types_;
    for (auto& [name, type] : next) type.layers_per_second = type.typical_layers * of(name, type.typical_layers);
    types_ = std::move(next);
  }
}

double HelixThroughputs::of(const std::string& type, int layers_on_machine) const {
  double all_seconds = 0;
  int all_layers = 0;
  for (const auto& [name, one] : types_) {
    all_seconds += one.count * one.typical_layers / one.layers_per_second;
    all_layers += one.count * one.typical_layers;
  }
  const Type& here = types_.at(type);
  const double seconds_here = layers_on_machine / here.layers_per_second;
  const double seconds_around = seconds_here + (num_layers_ - layers_on_machine) * all_seconds / all_layers;
  const auto cache_tokens = static_cast<double>(here.machine->capacity_of(layers_on_machine).cache_tokens);
  const double requests = kCacheInUse * cache_tokens / kHelixMean.tokens() * seconds_here / seconds_around;
  // Per prompt that is computed: a batch of decodes for each of its tokens, shared with the others that are here.
  const double prompts = std::max(requests / kHelixMean.generated_tokens, 1e-6);
  const int batch = prompts > 1 ? static_cast<int>(kHelixMean.generated_tokens)
                                : std::max(1, static_cast<int>(std::lround(requests)));
  const double batches = std::max(1 / prompts, 1.0);
  const auto prompt_ns = static_cast<double>(here.machine->prompt_ns.at(static_cast<int>(kHelixMean.prompt_tokens)));
  const auto decode_ns = static_cast<double>(here.machine->decode_ns.at(batch));
  const double layer_seconds = 1e-9 * (prompt_ns + batches * decode_ns);
  return (kHelixMean.prompt_tokens + batches * batch) / (layers_on_machine * layer_seconds);
}

}  // namespace frostpipe
