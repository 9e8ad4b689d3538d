#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"
#include "plan/token_slices.h"
#include "profiles/profile.h"

namespace frostpipe {

/// Caches the costs of all layers by size, since a search and its simulations ask for the same ones repeatedly.
class LayerCosts {
 public:
  /// `sequence_parallel` matters with several tensor ranks only.
  LayerCosts(const Profile& profile, DType dtype, bool sequence_parallel = false)
      : profile_(profile), dtype_(dtype), sequence_parallel_(sequence_parallel) {}

  const Profile& profile() const { return profile_; }

  /// Returns the costs by layer. References to them stay valid. Throws what cost_of throws, again at every call.
  const std::vector<LayerCost>& at(const std::string& device_type, int micro_batch_size, int tokens,
                                   int tensor_parallel_size);

  /// Returns the costs of these tokens of every sample (cost_of_slice).
  const std::vector<LayerCost>& of_slice(const std::string& device_type, int micro_batch_size, int tokens,
                                         int tensor_parallel_size, const TokenRange& slice);

  /// Returns the costs of slice number `slice` of the phase's micro-batches, or of whole micro-batches if they are
  /// not cut into token slices.
  const std::vector<LayerCost>& of_phase(const Phase& phase, const std::string& device_type, int micro_batch_size,
                                         int slice);

  /// Returns the time of the optimizer step for every layer. Throws what update_cost_of throws.
  const std::vector<Nanoseconds>& updates(const std::string& device_type, Optimizer optimizer);

 private:
  struct Known {
    std::vector<LayerCost> layers;
    std::optional<InvalidInput> error;
  };
  template <class CostOf>
  const std::vector<LayerCost>& look_up(Known& known, bool is_new, const CostOf& cost_of_layer) const;

  using Size = std::tuple<std::string, int, int, int>;  // device type, micro-batch size, tokens, tensor ranks

  const Profile& profile_;
  DType dtype_;
  bool sequence_parallel_;
  std::map<Size, Known> known_;
  std::map<std::tuple<Size, std::int64_t, std::int64_t>, Known> slices_;  // with the slice's first token and its end
  std::map<std::pair<std::string, Optimizer>, std::vector<Nanoseconds>> updates_;
};

}  // namespace frostpipe
