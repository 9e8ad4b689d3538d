#include "executor/training/checkpoints/checkpoint_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "executor/device/memory_meter.h"
#include "executor/models/layer_images.h"
#include "plan/stages.h"

namespace frostpipe {
namespace {

struct Source {
  int layer = 0;
  std::vector<LayerPart> parts;
  int writer = 0;
  bool is_offloaded = false;
};

/// Returns the sources of the layer's offloaded moments: one in each folder that has all of them, or else one that
/// joins the parts of all folders.
std::vector<Source> offloaded_sources(int layer, const std::vector<LayerPart>& offloaded,
                                      const std::vector<int>& folder_of_rank) {
  std::map<int, std::vector<LayerPart>> by_folder;
  for (const LayerPart& part : offloaded) by_folder[folder_of_rank[part.rank]].push_back(part);
  std::vector<Source> sources;
  const auto add_whole = [&](const std::vector<LayerPart>& held) {
    std::vector<LayerPart> parts = whole_from(held);
    if (!parts.empty())
      sources.push_back({.layer = layer, .parts = parts, .writer = parts.front().rank, .is_offloaded = true});
  };
  for (const auto& [folder, parts] : by_folder) add_whole(parts);
  if (sources.empty()) add_whole(offloaded);
  return sources;
}

/// Returns the sources of a layer that ranks hold: one replica in each folder. The folder of a replica is that of the
/// tensor rank that would write the layer.
std::vector<Source> held_sources(int layer, const RankSession& session, const std::vector<int>& folder_of_rank) {
  const ParallelLayout& layout = session.phase().layout;
  std::map<int, std::vector<Source>> by_folder;
  for (int replica = 0; replica < layout.data_parallel_size; ++replica) {
    Source source{.layer = layer, .parts = session.parts_of(layer, replica)};
    source.writer = source.parts[layer / layout.data_parallel_size % layout.tensor_parallel_size].rank;
    by_folder[folder_of_rank[source.writer]].push_back(std::move(source));
  }
  std::vector<Source> sources;
  for (auto& [folder, replicas] : by_folder) sources.push_back(std::move(replicas[layer % replicas.size()]));
  return sources;
}

std::vector<Source> sources_of(int layer, const RankSession& session, const std::vector<LayerPart>& offloaded,
                               const std::vector<int>& folder_of_rank) {
  if (layer < session.phase().first_trainable_layer) {
    std::vector<Source> sources = offloaded_sources(layer, offloaded, folder_of_rank);
    if (!sources.empty()) return sources;
  }
  return held_sources(layer, session, folder_of_rank);
}

/// Returns 1 for each source whose writer has the frozen layer's file already, else 0. If no layer is divided, nothing
/// need be sent: then returns 0 for all sources, without communication.
std::vector<double> written_before(const std::vector<Source>& sources, const CheckpointWriter& writer,
                                   Communicator& communicator) {
  std::vector<double> written(sources.size(), 0.0);
  if (std::ranges::none_of(sources, [](const Source& source) { return source.parts.size() > 1; })) return written;
  for (std::size_t i = 0; i < sources.size(); ++i)
    if (sources[i].writer == communicator.rank() && writer.has_frozen(sources[i].layer)) written[i] = 1;
  return communicator.sum(std::move(written));
}

/// Collects the layer's values on its writer, which appends their image to `layers`.
void bring_layer(const Source& source, RankSession& session, Communicator& communicator, LayersToWrite& layers) {
  const int layer = source.layer;
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

LayersToWrite layers_to_write(RankSession& session, const std::vector<int>& folder_of_rank,
                              const CheckpointWriter& writer, Communicator& communicator) {
  const int num_layers = static_cast<int>(session.phase().partition.back().end);
  const std::vector<std::vector<LayerPart>> offloaded = offloaded_parts(session, num_layers, communicator);
  LayersToWrite layers;
  std::vector<Source> sources;
  for (int layer = 0; layer < num_layers; ++layer) {
    std::vector<int>& writers = layers.writers.emplace_back();
    for (Source& source : sources_of(layer, session, offloaded[layer], folder_of_rank)) {
      writers.push_back(source.writer);
      sources.push_back(std::move(source));
    }
  }
  const std::vector<double> written = written_before(sources, writer, communicator);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (written[i] == 0)
      bring_layer(sources[i], session, communicator, layers);
    else if (sources[i].writer == communicator.rank())
      layers.own.push_back({.layer = sources[i].layer, .frozen = true, .tensors = {}});
  }
  return layers;
}

}  // namespace

std::vector<std::vector<LayerPart>> offloaded_parts(const RankSession& session, int num_layers,
                                                    Communicator& communicator) {
  constexpr std::size_t kNumbers = 3;  // numbers per slice
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

CollectLayers layers_of(RankSession& session, Communicator& communicator) {
  return [&](const std::vector<int>& folder_of_rank, const CheckpointWriter& writer) {
    return layers_to_write(session, folder_of_rank, writer, communicator);
  };
}

}  // namespace frostpipe
