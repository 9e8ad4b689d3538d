#include "planner/published/pipedream.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/error.h"

namespace frostpipe {
namespace {

/// The best times of layers [i, j) on 1..parts parts of one level, with the choices that lead to them.
class Level {
 public:
  struct Choice {
    double time = std::numeric_limits<double>::infinity();
    std::optional<int> cut = std::nullopt;  // begin of the last stage; none = one stage
    int parts = 0;                          // parts of the last stage
  };

  Level(int num_layers, int parts)
      : n_(num_layers), parts_(parts), choices_(static_cast<std::size_t>(n_) * (n_ + 1) * parts) {}
  Choice& at(int begin, int end, int parts) {
    return choices_[(static_cast<std::size_t>(begin) * (n_ + 1) + end) * parts_ + parts - 1];
  }
  const Choice& at(int begin, int end, int parts) const { return const_cast<Level*>(this)->at(begin, end, parts); }
  int parts() const { return parts_; }

 private:
  int n_, parts_;
  std::vector<Choice> choices_;
};

double seconds_to_ns(double bytes, double bytes_per_second) {
  return bytes_per_second > 0 ? 1e9 * bytes / bytes_per_second : 0;
}

class Planner {
 public:
  Planner(std::span<const PipeDreamLayer> layers, const std::vector<PipeDreamLevel>& machine)
      : n_(static_cast<int>(layers.size())), layers_(layers), machine_(machine) {
    compute_.assign(n_ + 1, 0);
    parameters_.assign(n_ + 1, 0);
    for (int i = 0; i < n_; ++i) {
      compute_[i + 1] = compute_[i] + layers[i].compute_ns;
      parameters_[i + 1] = parameters_[i] + layers[i].parameter_bytes;
    }
    for (std::size_t k = 0; k < machine.size(); ++k) {
      levels_.emplace_back(n_, machine[k].parts);
      fill(k, /*only_from_the_start=*/k + 1 == machine.size());
    }
  }

  PipeDreamPlan result() const {
    PipeDreamPlan plan;
    plan.slowest_ns = levels_.back().at(0, n_, machine_.back().parts).time;
    collect(levels_.size() - 1, 0, n_, machine_.back().parts, 1, plan.stages);
    return plan;
  }

 private:
  /// Returns the time of one stage on `parts` parts of level k.
  double stage_ns(std::size_t k, int begin, int end, int parts) const {
    const double inner =
        k == 0 ? compute_[end] - compute_[begin] : levels_[k - 1].at(begin, end, machine_[k - 1].parts).time;
    return std::max(inner, seconds_to_ns(2.0 * (parts - 1) * (parameters_[end] - parameters_[begin]),
                                         machine_[k].bytes_per_second)) /
           parts;
  }

  int most_of_last(std::size_t k, int parts) const {
    if (machine_[k].use == PipeDreamLevel::Use::replicas) return 0;
    return machine_[k].use == PipeDreamLevel::Use::stages ? std::min(1, parts - 1) : parts - 1;
  }

  void fill(std::size_t k, bool only_from_the_start) {
    Level& level = levels_[k];
    std::vector<double> message(n_);
    for (int s = 0; s < n_; ++s)
      message[s] = seconds_to_ns(2.0 * layers_[s].activation_bytes, machine_[k].bytes_per_second);
    // stage[(begin, end, parts)] is used many times.
    Level stage(n_, level.parts());
    for (int begin = 0; begin < n_; ++begin)
      for (int end = begin + 1; end <= n_; ++end)
        for (int parts = 1; parts <= level.parts(); ++parts)
          stage.at(begin, end, parts).time = stage_ns(k, begin, end, parts);
    for (int begin = 0; begin < (only_from_the_start ? 1 : n_); ++begin) {
      for (int end = begin + 1; end <= n_; ++end) {
        for (int parts = 1; parts <= level.parts(); ++parts) {
          Level::Choice best;
          if (machine_[k].use != PipeDreamLevel::Use::stages || parts == 1)
            best = {.time = stage.at(begin, end, parts).time, .cut = std::nullopt, .parts = parts};
          for (int last = 1; last <= most_of_last(k, parts); ++last) {
            for (int cut = begin + 1; cut < end; ++cut) {
              const double left = level.at(begin, cut, parts - last).time;
              if (left >= best.time) continue;
              const double time = std::max({left, message[cut - 1], stage.at(cut, end, last).time});
              if (time < best.time) best = {.time = time, .cut = cut, .parts = last};
            }
          }
          level.at(begin, end, parts) = best;
        }
      }
    }
  }

  void collect(std::size_t k, int begin, int end, int parts, int replicas, std::vector<PipeDreamStage>& stages) const {
    const Level::Choice& choice = levels_[k].at(begin, end, parts);
    const int stage_begin = choice.cut.value_or(begin);
    if (choice.cut) collect(k, begin, *choice.cut, parts - choice.parts, replicas, stages);
    if (k == 0)
      stages.push_back({.layers = {stage_begin, end}, .devices = replicas * choice.parts});
    else
      collect(k - 1, stage_begin, end, machine_[k - 1].parts, replicas * choice.parts, stages);
  }

  int n_;
  std::span<const PipeDreamLayer> layers_;
  const std::vector<PipeDreamLevel>& machine_;
  std::vector<double> compute_, parameters_;  // prefix sums over layers
  std::vector<Level> levels_;
};

}  // namespace

PipeDreamPlan pipedream_plan(std::span<const PipeDreamLayer> layers, const std::vector<PipeDreamLevel>& levels) {
  if (layers.empty()) throw InvalidInput("layers", "must be at least one", "none");
  if (levels.empty() ||
      std::any_of(levels.begin(), levels.end(), [](const PipeDreamLevel& level) { return level.parts < 1; }))
    throw InvalidInput("levels of the machine", "must be at least one, of at least one part each",
                       std::to_string(levels.size()));
  return Planner(layers, levels).result();
}

}  // namespace frostpipe
