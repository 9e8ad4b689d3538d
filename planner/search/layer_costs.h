#pragma once
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "profiles/error.h"
#include "profiles/profile.h"

namespace frostpipe {

/// The costs of all layers at one size, looked up once: a search asks for the same again and again.
class LayerCosts {
 public:
  LayerCosts(const Profile& profile, DType dtype) : profile_(profile), dtype_(dtype) {}

  /// By layer; the same vector every time. Throws what cost_of throws, every time too.
  const std::vector<LayerCost>& at(const std::string& device_type, int micro_batch_size, int tokens,
                                   int tensor_parallel_size);

  /// The optimizer step of every layer.
  const std::vector<Nanoseconds>& updates(const std::string& device_type, Optimizer optimizer);

 private:
  struct Known {
    std::vector<LayerCost> layers;
    std::optional<InvalidInput> error;
  };
  const Profile& profile_;
  DType dtype_;
  std::map<std::tuple<std::string, int, int, int>, Known> known_;
  std::map<std::pair<std::string, Optimizer>, std::vector<Nanoseconds>> updates_;
};

}  // namespace frostpipe
