#pragma once
#include <map>
#include <string>
#include <vector>

#include "bench/published/helix_data.h"

namespace frostpipe {

/// Helix's estimate of what each machine alone can do, by which it weighs its paths: a prompt by itself, and decodes in
/// the batch that comes together there. That batch is the part of the requests in flight that are at the machine, which
/// is its part of a request's way around; three tenths of its cache say how many are in flight. What the other layers
/// take comes from typical numbers of layers of each type of machine, not from the placement.
class HelixThroughputs {
 public:
  /// Whether Helix has numbers of layers for it.
  static bool knows(const std::string& model, const std::string& type);
  /// Types of all machines, known ones, with times and at least two capacities each.
  HelixThroughputs(const HelixData& data, const std::string& model, int num_layers,
                   const std::vector<std::string>& types);
  /// Tokens per second, of prompts and generated ones together.
  double of(const std::string& type, int layers_on_machine) const;

 private:
  struct Type {
    const HelixMachine* machine = nullptr;
    int count = 0, typical_layers = 0;
    double layers_per_second = 0;  // one token's
  };

  int num_layers_;
  std::map<std::string, Type> types_;
};

}  // namespace frostpipe
