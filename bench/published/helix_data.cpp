#include "bench/published/helix_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "bench/published/csv_table.h"
#include "profiles/error.h"
#include "profiles/import/foreign_json.h"

namespace frostpipe {
namespace {

namespace fs = std::filesystem;
using foreign::Value;

constexpr int kTokensPerBlock = 16;
constexpr int kLeastTokens = 4, kMostPromptTokens = 2048, kMostGeneratedTokens = 1024;

std::string small_letters(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

std::vector<HelixResult> read_results(const fs::path& file) {
  const CsvTable table(file);
  if (table.num_rows() == 0) throw InvalidInput(file.string(), "must have results", "only the names of its columns");
  std::vector<HelixResult> results(table.num_rows());
  for (std::size_t row = 0; row < results.size(); ++row) {
    const auto seconds = [&](const char* column) {
      return table.is_empty(row, column) ? std::nullopt : std::optional(table.number(row, column));
    };
    results[row] = {.section = table.text(row, "section"),
                    .cluster = table.text(row, "cluster"),
                    .sub_cluster = table.text(row, "sub_cluster"),
                    .model = table.text(row, "model"),
                    .method = table.text(row, "method"),
                    .is_measured = table.word(row, "kind", {"measured", "simulated"}) == "measured",
                    .is_online = table.word(row, "setting", {"online", "offline"}) == "online",
                    .decode_tokens_per_s = table.number(row, "decode_tokens_per_s", 1e-9),
                    .prompt_s = seconds("prompt_latency_mean_s"),
                    .decode_s = seconds("decode_latency_mean_s")};
  }
  return results;
}

/// A batch reads the weights once however small it is: what the least decode takes stands at no tokens too.
void read_times(const fs::path& file, HelixData& data) {
  const CsvTable table(file);
  using Points = std::vector<std::pair<int, Nanoseconds>>;
  std::map<std::pair<std::string, std::string>, std::map<std::string, Points>> points;
  for (std::size_t row = 0; row < table.num_rows(); ++row) {
    const int tokens = table.integer(row, "tokens");
    if (tokens == 0) continue;
    Points& known = points[{table.text(row, "model"), table.text(row, "machine")}][table.text(row, "phase")];
    if (!known.empty() && known.back().first >= tokens)
      throw InvalidInput(table.place(row, "tokens"), "must be more than the line before has", std::to_string(tokens));
    known.emplace_back(tokens, std::llround(1e6 * table.number(row, "milliseconds_per_layer")));
  }
  for (auto& [key, phases] : points) {
    if (phases["prompt"].empty() || phases["decode"].empty())
      throw InvalidInput(
          fmt::format("{}: {} on {}: must have times of both phases", file.string(), key.first, key.second));
    HelixMachine& machine = data.machines[key];
    machine.decode_ns = without_falls(std::move(phases["decode"]));
    Points& prompt = phases["prompt"];
    prompt.insert(prompt.begin(), {0, machine.decode_ns.points.front().second});
    machine.prompt_ns = without_falls(std::move(prompt));
  }
}

void read_capacities(const fs::path& file, HelixData& data) {
  const CsvTable table(file);
  for (std::size_t row = 0; row < table.num_rows(); ++row) {
    auto& known = data.machines[{table.text(row, "model"), table.text(row, "machine")}].capacities;
    const int num_layers = table.integer(row, "layers_on_machine", 1);
    if (!known.empty() && known.back().num_layers >= num_layers)
      throw InvalidInput(table.place(row, "layers_on_machine"), "must be more than the line before has",
                         std::to_string(num_layers));
    known.push_back({.num_layers = num_layers,
                     .cache_tokens = std::int64_t{kTokensPerBlock} * table.integer(row, "cache_blocks_per_layer"),
                     .largest_prompt_batch = table.integer(row, "largest_prompt_batch_requests", 1),
                     .largest_decode_batch = table.integer(row, "largest_decode_batch", 1)});
  }
}

/// The number that is called bits here is the artifact's `1 * gbps`, by which it divides bytes: a network of 8 Gbit/s.
GenerationLink read_link(const Value& json) {
  const double bytes = json["bits_per_second"].number(), seconds = json["latency_seconds"].number();
  if (!(bytes > 0 && bytes <= 1e15 && seconds >= 0 && seconds <= 1e3))
    throw InvalidInput(json.place(), "must have bits_per_second > 0 and latency_seconds from 0",
                       fmt::format("{} and {}", bytes, seconds));
  return {.latency_ns = std::llround(1e9 * seconds), .bytes_per_second = bytes};
}

void read_clusters(const fs::path& path, HelixData& data) {
  const foreign::File file(path);
  for (const auto& [name, json] : file.root().members()) {
    HelixCluster& cluster = data.clusters[name];
    for (const Value& type : json["machines"].elements()) cluster.types.push_back(small_letters(type.text()));
    cluster.every_link = read_link(json["every_link"]);
    cluster.has_other_links = !json["other_links"].elements().empty();
  }
}

void read_placements(const fs::path& path, HelixData& data) {
  const foreign::File file(path);
  for (const auto& [cluster, models] : file.root().members())
    for (const auto& [model, methods] : models.members())
      for (const auto& [method, machines] : methods.members())
        for (const Value& json : machines.elements())
          data.placements[fmt::format("{} {} {}", cluster, model, method)].push_back(
              {.machine = json["machine"].integer(),
               .first_layer = json["first_layer"].integer(),
               .num_layers = json["layers"].integer()});
}

std::vector<GenerationRequest> read_requests(const fs::path& file) {
  const CsvTable table(file);
  std::vector<GenerationRequest> requests;
  for (std::size_t row = 0; row < table.num_rows(); ++row) {
    const int prompt = table.integer(row, "ContextTokens"), generated = table.integer(row, "GeneratedTokens");
    if (std::min(prompt, generated) >= kLeastTokens && prompt <= kMostPromptTokens && generated <= kMostGeneratedTokens)
      requests.push_back({.prompt_tokens = prompt, .generated_tokens = generated});
  }
  if (requests.empty()) throw InvalidInput(fmt::format("{}: holds no request that Helix would take", file.string()));
  return requests;
}

}  // namespace

HelixData load_helix_data(const fs::path& folder) {
  const fs::path helix = folder / "helix";
  HelixData data;
  data.results = read_results(helix / "results.csv");
  read_times(helix / "layer_times.csv", data);
  read_capacities(helix / "capacity.csv", data);
  read_clusters(helix / "clusters.json", data);
  read_placements(helix / "placements.json", data);
  data.requests = read_requests(folder / "azure" / "AzureLLMInferenceTrace_conv.csv");
  return data;
}

MeanRequest mean_of(const std::vector<GenerationRequest>& requests) {
  MeanRequest sum;
  for (const GenerationRequest& one : requests) {
    sum.prompt_tokens += one.prompt_tokens;
    sum.generated_tokens += one.generated_tokens;
  }
  const auto count = static_cast<double>(requests.size());
  return {.prompt_tokens = sum.prompt_tokens / count, .generated_tokens = sum.generated_tokens / count};
}

}  // namespace frostpipe
