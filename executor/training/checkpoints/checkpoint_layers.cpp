#include "executor/training/checkpoints/checkpoint_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "executor/device/memory_meter.h"
#include "executor/models/layer_images.h"
#include "plan/stages.h"

namespace frostpipe {
namespace {

struct Source {
  std::vector<LayerPart> parts;
  int writer = 0;
  bool is_offloaded = false;
};

Source source_of(int layer, const RankSession& session, const std::vector<LayerPart>& offloaded) {
  const Phase& phase = session.phase();
  if (layer < phase.first_trainable_layer) {
    std::vector<LayerPart> parts = whole_from(offloaded);
    if (!parts.empty()) return {.parts = parts, .writer = parts.front().rank, .is_offloaded = true};
  }
  const int d = phase.layout.data_parallel_size, t = phase.layout.tensor_parallel_size;
  Source source{.parts = session.parts_of(layer, layer % d)};
  source.writer = source.parts[layer / d % t].rank;
  return source;
}

/// 1 for each frozen layer whose file its writer has, by layer. Nobody is asked where no layer is in parts.
std::vector<double> there_already(const std::vector<Source>& sources, const CheckpointWriter& writer,
                                  Communicator& communicator) {
  std::vector<double> there(sources.size(), 0.0);
  if (std::ranges::none_of(sources, [](const Source& source) { return source.parts.size() > 1; })) return there;
  for (std::size_t layer = 0; layer < sources.size(); ++layer)
    if (sources[layer].writer == communicator.rank() && writer.has_frozen(static_cast<int>(layer))) there[layer] = 1;
  return communicator.sum(std::move(there));
}

/// The layer's values go to its writer, which appends their image to `layers`.
void bring_layer(int layer, const Source& source, RankSession& session, Communicator& communicator,
                 LayersToWrite& layers) {
  const auto is_own = [&](const LayerPart& part) { return part.rank == communicator.rank(); };
  if (std::ranges::none_of(source.parts, is_own)) return;
  std::vector<StoredValues> values =
      source.is_offloaded ? stored_values(session.offloaded().at(layer)) : stored_values(session.layers().at(layer));
  const LayerCollection collection{
      .whole = source.is_offloaded ? session.offloaded().at(layer).whole : session.layers().at(layer).whole,
      .parts = source.parts,
      .to_rank = source.writer,
      .tag = 0,
      .what = fmt::format("collecting layer {} for a checkpoint", layer)};
  const UncountedMemory outside_the_device;
  const bool is_frozen = source.is_offloaded || !session.layers().at(layer).trains();
  const bool is_collected = source.parts.size() > 1;
  if (is_collected)
    for (StoredValues& one : values)
      one.values = collect(collection, one.values, one.values.scalar_type(), communicator.control_group());
  if (source.writer == communicator.rank())
    layers.own.push_back(image_of(layer, values, is_frozen, /*changes=*/!is_frozen && !is_collected));
}

}  // namespace

std::vector<std::vector<LayerPart>> offloaded_parts(const RankSession& session, int num_layers,
                                                    Communicator& communicator) {
  constexpr std::size_t kNumbers = 3;  // of a slice
  const auto layers = static_cast<std::size_t>(num_layers);
  const std::size_t ranks = static_cast<std::size_t>(communicator.world_size());
  std::vector<double> slices(ranks * layers * kNumbers, 0.0);
  const auto place = [&](std::size_t rank, std::size_t layer) { return (rank * layers + layer) * kNumbers; };
  for (const auto& [layer, moments] : session.offloaded()) {
    const std::size_t at = place(static_cast<std::size_t>(communicator.rank()), static_cast<std::size_t>(layer));
    slices[at] = moments.slice.begin;
    slices[at + 1] = moments.slice.end;
    slices[at + 2] = moments.slice.of;
  }
  slices = communicator.sum(std::move(slices));
  std::vector<std::vector<LayerPart>> parts(layers);
  for (std::size_t rank = 0; rank < ranks; ++rank)
    for (std::size_t layer = 0; layer < layers; ++layer) {
      const double* const slice = &slices[place(rank, layer)];
      if (slice[2] == 0) continue;
      parts[layer].push_back(
          {.rank = static_cast<int>(rank),
           .slice = {static_cast<int>(slice[0]), static_cast<int>(slice[1]), static_cast<int>(slice[2])}});
    }
  return parts;
}

LayersToWrite layers_to_write(RankSession& session, int num_layers, const CheckpointWriter& writer,
                              Communicator& communicator) {
  const std::vector<std::vector<LayerPart>> offloaded = offloaded_parts(session, num_layers, communicator);
  LayersToWrite layers;
  std::vector<Source> sources;
  for (int layer = 0; layer < num_layers; ++layer) {
    sources.push_back(source_of(layer, session, offloaded[layer]));
    layers.writers.push_back(sources.back().writer);
  }
  const std::vector<double> there = there_already(sources, writer, communicator);
  for (int layer = 0; layer < num_layers; ++layer) {
    if (there[layer] == 0)
      bring_layer(layer, sources[layer], session, communicator, layers);
    else if (sources[layer].writer == communicator.rank())
      layers.own.push_back({.layer = layer, .frozen = true, .tensors = {}});
  }
  return layers;
}

}  // namespace frostpipe
