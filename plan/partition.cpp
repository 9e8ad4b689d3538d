#include "plan/partition.h"

#include <fmt/format.h>

#include "base/enum_words.h"
#include "base/error.h"

namespace frostpipe {
namespace {

constexpr EnumWords<Partitioner, 2> kPartitioners{
    {{Partitioner::exact, "exact"}, {Partitioner::pipetransformer_greedy, "pipetransformer-greedy"}}};

}  // namespace

std::string_view to_string(Partitioner partitioner) { return word_of(kPartitioners, partitioner); }

void parse_text(std::string_view text, const std::string& place, Partitioner& partitioner) {
  partitioner = parse_word(kPartitioners, text, place, "must be exact or pipetransformer-greedy");
}

void validate(const Partition& partition, int num_layers, std::string_view place) {
  if (partition.empty()) throw InvalidInput(place, "must have at least one stage", "empty");
  int next = 0;
  for (std::size_t stage = 0; stage < partition.size(); ++stage) {
    const auto& [begin, end] = partition[stage];
    const auto at = [&](const char* member) { return fmt::format("{}[{}].{}", place, stage, member); };
    if (begin != next)
      throw InvalidInput(at("begin"), fmt::format("must be {}, where the stage before ends", next),
                         std::to_string(begin));
    if (end <= begin)
      throw InvalidInput(at("end"), fmt::format("must be > {}: a stage is never empty", begin), std::to_string(end));
    if (end > num_layers)
      throw InvalidInput(at("end"), fmt::format("must be <= {}, the number of layers", num_layers),
                         std::to_string(end));
    next = end;
  }
  if (next != num_layers)
    throw InvalidInput(fmt::format("{}[{}].end", place, partition.size() - 1),
                       fmt::format("must be {}: the last stage ends with the last layer", num_layers),
                       std::to_string(next));
}

int stage_of_layer(const Partition& partition, int layer) {
  for (std::size_t stage = 0; stage < partition.size(); ++stage)
    if (partition[stage].begin <= layer && layer < partition[stage].end) return static_cast<int>(stage);
  FROSTPIPE_CHECK(false, "a validated partition holds every layer of the model");
}

int first_trainable_stage(const Partition& partition, int first_trainable_layer) {
  return stage_of_layer(partition, first_trainable_layer);
}

std::string to_string(const Partition& partition) {
  std::string text;
  for (const auto& [begin, end] : partition) text += fmt::format("{}[{},{})", text.empty() ? "" : " ", begin, end);
  return text;
}

std::string to_brief_string(const Partition& partition) {
  constexpr std::size_t kAll = 8, kFirst = 3;
  if (partition.size() <= kAll) return to_string(partition);
  return to_string(Partition(partition.begin(), partition.begin() + kFirst)) + " ... " + to_string({partition.back()});
}

}  // namespace frostpipe
