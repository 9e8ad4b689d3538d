#include "plan/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>

#include "base/error.h"
#include "base/json_reader.h"
#include "plan/plan_envelope.h"
#include "plan/reroute.h"
#include "plan/schedule_rows.h"
#include "plan/schedule_rules.h"
#include "plan/stages.h"
#include "plan/token_slices.h"
#include "profiles/device_type.h"
#include "profiles/dtype_json.h"
#include "profiles/workload_json.h"

namespace frostpipe {

template <class Archive>
void fields(Archive& archive, json::Value<Archive, MeshCoordinate>& vacant) {  // without tensor rank
  archive("pipeline_rank", vacant.pipeline_rank, json::at_least(0));
  archive("replica", vacant.replica, json::at_least(0));
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, ParallelLayout>& layout) {
  archive("pipeline_parallel_size", layout.pipeline_parallel_size, json::between(1, json::kMaxRanks));
  archive("data_parallel_size", layout.data_parallel_size, json::between(1, json::kMaxRanks));
  archive("tensor_parallel_size", layout.tensor_parallel_size, json::between(1, json::kMaxRanks));
  archive("placement", layout.placement, json::at_least(0));
  archive("sequence_parallel", layout.sequence_parallel, json::Otherwise{false});
  archive("vacant", layout.vacant, json::MayBeMissing());
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, PhasePrediction>& prediction) {
  archive("iteration_ns", prediction.iteration_ns, json::kDuration);
  archive("transformation_ns", prediction.transformation_ns, json::kDuration);
  archive("peak_memory_bytes", prediction.peak_memory_bytes, json::kSize);
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, CacheFound>& found) {
  archive("layer", found.layer, json::at_least(1));
  archive("fraction", found.fraction, json::at_least(0));
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, CacheUse>& cache) {
  archive("on", cache.on);
  archive("found", cache.found);
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, CacheLimits>& limits) {
  archive("dtype", limits.dtype, kCacheDTypes);
  archive("memory_bytes", limits.memory_bytes, json::kSize);
  archive("disk_bytes", limits.disk_bytes, json::kSize);
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, Phase>& phase) {
  archive("from_step", phase.from_step, json::at_least(0));
  archive("first_trainable_layer", phase.first_trainable_layer, json::at_least(0));
  archive("layout", phase.layout);
  archive("partition", phase.partition);
  archive("num_micro_batches", phase.num_micro_batches, json::between(1, json::kMaxMicroBatches));
  archive("schedule", phase.schedule);
  archive("virtual_stages", phase.virtual_stages, json::Otherwise{1, json::between(1, json::kMaxRanks)});
  archive("token_slices", phase.token_slices, json::MayBeMissing{json::between(1, json::kMaxTokens)});
  archive("schedule_rows", phase.schedule_rows, json::Otherwise{std::vector<std::string>()});
  archive("tokens", phase.tokens, json::between(0, json::kMaxTokens));
  archive("longest_tokens", phase.longest_tokens, json::between(0, json::kMaxTokens));
  archive("largest_micro_batch_tokens", phase.largest_micro_batch_tokens,
          json::MayBeMissing{json::between(0, json::kMaxTokens * json::kMaxSamples)});
  archive("cache", phase.cache);
  archive("recompute", phase.recompute);
  archive("operator_plan", phase.operator_plan, json::MayBeMissing());
  archive("predicted", phase.predicted);
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, TrainingPlan>& plan) {
  archive("method", plan.method);
  archive("world_size", plan.world_size, json::between(1, json::kMaxRanks));
  archive("threads_per_rank", plan.threads_per_rank, json::MayBeMissing{json::between(1, kMaxThreads)});
  archive("global_batch_size", plan.global_batch_size, json::between(1, json::kMaxSamples));
  archive("num_steps", plan.num_steps, json::at_least(0));
  archive("epochs", plan.epochs, json::MayBeMissing());
  archive("optimizer", plan.optimizer);
  archive("dtype", plan.dtype);
  archive("frozen_dtype", plan.frozen_dtype, kFrozenDTypes);
  archive("partitioner", plan.partitioner);
  archive("memory_limited", plan.memory_limited);
  archive("memory_reserve", plan.memory_reserve, json::Otherwise{kMemoryReserve, json::between(0, 1)});
  archive("cache", plan.cache);
  archive("workload", plan.workload);
  archive("phases", plan.phases);
  archive("provenance", plan.provenance);
}

namespace {

/// Validates one phase; `place` is "plan.json: phases[1]".
class PhaseValidator {
 public:
  PhaseValidator(const TrainingPlan& plan, const Phase& phase, const Model& model, std::string place)
      : plan_(plan), phase_(phase), model_(model), place_(std::move(place)) {}

  void run() const {
    require_layout();
    const int num_layers = static_cast<int>(model_.layers.size());
    validate(phase_.partition, num_layers, at("partition"));
    require_number_of_stages();
    const int first = phase_.first_trainable_layer;
    if (first < 0 || first >= num_layers)
      throw InvalidInput(at("first_trainable_layer"),
                         fmt::format("must be >= 0 and <= {}: the head always trains", num_layers - 1),
                         std::to_string(first));
    if (phase_.num_micro_batches < 1)
      throw InvalidInput(at("num_micro_batches"), "must be >= 1", std::to_string(phase_.num_micro_batches));
    if (phase_.num_micro_batches > plan_.global_batch_size)
      throw InvalidInput(at("num_micro_batches"),
                         fmt::format("must be <= {}, the samples of a mini-batch", plan_.global_batch_size),
                         std::to_string(phase_.num_micro_batches));
    require_schedule();
    require_token_slices(phase_, model_, place_);
    require_size_of_schedule();
    require_nothing_lost(phase_, model_, place_);
    require_cache();
    const auto num_peaks = phase_.predicted.peak_memory_bytes.size();
    if (num_peaks != 0 && num_peaks != static_cast<std::size_t>(plan_.world_size))
      throw InvalidInput(at("predicted.peak_memory_bytes"),
                         fmt::format("must be empty or have {} entries, one per rank", plan_.world_size),
                         fmt::format("{} entries", num_peaks));
  }

 private:
  std::string at(std::string_view member) const { return fmt::format("{}.{}", place_, member); }

  void require_layout() const {
    const auto& [p, d, t, placement, vacant, sequence_parallel] = phase_.layout;
    for (const int size : {p, d, t})
      if (size < 1) throw InvalidInput(at("layout"), "must have sizes >= 1", std::to_string(size));
    const double size = static_cast<double>(p) * d * t;
    std::int64_t ranks = size < 1e18 ? std::int64_t{p} * d * t : std::numeric_limits<std::int64_t>::max();
    if (ranks - static_cast<std::int64_t>(vacant.size()) > plan_.world_size)
      throw InvalidInput(at("layout"), fmt::format("must use at most {} ranks, the world size", plan_.world_size),
                         fmt::format("{} x {} x {} = {}", p, d, t, ranks));
    if (sequence_parallel && t == 1)
      throw InvalidInput(at("layout.sequence_parallel"), "must be false where tensor_parallel_size is 1", "true");
    require_vacant(phase_, place_);
    ranks -= static_cast<std::int64_t>(vacant.size());
    if (placement.empty()) return;
    if (static_cast<std::int64_t>(placement.size()) != ranks)
      throw InvalidInput(at("layout.placement"), fmt::format("must be empty or name {} ranks", ranks),
                         fmt::format("{} ranks", placement.size()));
    std::set<int> seen;
    for (std::size_t i = 0; i < placement.size(); ++i) {
      const auto place = fmt::format("{}[{}]", at("layout.placement"), i);
      if (placement[i] < 0 || placement[i] >= plan_.world_size)
        throw InvalidInput(place, fmt::format("must be >= 0 and < {}, the world size", plan_.world_size),
                           std::to_string(placement[i]));
      if (!seen.insert(placement[i]).second)
        throw InvalidInput(place, "must name every rank at most once", std::to_string(placement[i]));
    }
  }

  void require_number_of_stages() const {
    if (!phase_.schedule_rows.empty()) return;  // checked by require_schedule_rows
    const int p = phase_.layout.pipeline_parallel_size, v = phase_.virtual_stages;
    if (v < 1) throw InvalidInput(at("virtual_stages"), "must be >= 1", std::to_string(v));
    const std::int64_t wanted = std::int64_t{p} * v;
    if (static_cast<std::int64_t>(phase_.partition.size()) == wanted) return;
    throw InvalidInput(
        at("partition"),
        v == 1 ? fmt::format("must have {} stages, the pipeline-parallel size", p)
               : fmt::format("must have {} stages, the pipeline-parallel size of {} times {} per rank", wanted, p, v),
        fmt::format("{} stage{}", phase_.partition.size(), phase_.partition.size() == 1 ? "" : "s"));
  }

  void require_schedule() const {
    if (!phase_.schedule_rows.empty()) return require_schedule_rows(phase_, place_);
    if (!is_built_in(phase_.schedule))
      throw InvalidInput(at("schedule"), fmt::format("must be one of {}", fmt::join(schedule_names(), ", ")),
                         fmt::format("\"{}\"", phase_.schedule));
    try {
      require_shape(phase_.schedule, shape_of(phase_));
    } catch (const InvalidInput& error) {
      throw InvalidInput(fmt::format("{}: {}", at("schedule"), error.what()));
    }
  }

  void require_size_of_schedule() const {
    constexpr std::int64_t kMaxForwards = std::int64_t{1} << 24;
    const auto stages = static_cast<std::int64_t>(phase_.partition.size());
    const std::int64_t forwards_of_stage = std::int64_t{phase_.num_micro_batches} * num_slices(phase_);
    if (stages <= kMaxForwards / forwards_of_stage) return;
    throw InvalidInput(at("num_micro_batches"),
                       fmt::format("must be at most {} when multiplied by the stages and token slices", kMaxForwards),
                       fmt::format("{} x {} x {}", phase_.num_micro_batches, stages, num_slices(phase_)));
  }

  void require_cache() const {
    const CacheUse& cache = phase_.cache;
    if (!cache.on) return;
    if (phase_.first_trainable_layer == 0)
      throw InvalidInput(at("cache.on"), "must be false where nothing is frozen: there is nothing to cache", "true");
    if (plan_.cache.memory_bytes + plan_.cache.disk_bytes == 0)
      throw InvalidInput(at("cache.on"), "must be false where the plan's cache.memory_bytes and disk_bytes are 0",
                         "true");
    int before = 0;
    double sum = 0;
    for (std::size_t i = 0; i < cache.found.size(); ++i) {
      const auto& [layer, fraction] = cache.found[i];
      const std::string place = at(fmt::format("cache.found[{}]", i));
      if (layer <= before || layer > phase_.first_trainable_layer)
        throw InvalidInput(
            place + ".layer",
            fmt::format("must be > {} and <= {}, the first trainable layer", before, phase_.first_trainable_layer),
            std::to_string(layer));
      sum += fraction;
      if (!(fraction >= 0 && sum <= 1 + 1e-9))
        throw InvalidInput(place + ".fraction", "must be >= 0, and all together at most 1",
                           fmt::format("{}", fraction));
      before = layer;
    }
  }

  const TrainingPlan& plan_;
  const Phase& phase_;
  const Model& model_;
  std::string place_;
};

void require_successor(const Phase& before, const Phase& after, const std::string& place) {
  if (after.from_step <= before.from_step)
    throw InvalidInput(place + ".from_step",
                       fmt::format("must be > {}, where the phase before starts", before.from_step),
                       std::to_string(after.from_step));
}

void require_no_thaw(const Phase& before, const Phase& after, const std::string& place) {
  if (after.first_trainable_layer < before.first_trainable_layer)
    throw InvalidInput(place + ".first_trainable_layer",
                       fmt::format("must be >= {}: frozen layers are never unfrozen", before.first_trainable_layer),
                       std::to_string(after.first_trainable_layer));
}

}  // namespace

int phase_at(const TrainingPlan& plan, int step) {
  const auto later = [](int wanted, const Phase& phase) { return wanted < phase.from_step; };
  const auto next = std::upper_bound(plan.phases.begin(), plan.phases.end(), step, later);
  FROSTPIPE_CHECK(next != plan.phases.begin(), "a validated plan starts at step 0");
  return static_cast<int>(next - plan.phases.begin()) - 1;
}

void validate(const TrainingPlan& plan, const Model& model, std::string_view source) {
  validate_executed(plan, model, source);
  for (std::size_t i = 1; i < plan.phases.size(); ++i)
    require_no_thaw(plan.phases[i - 1], plan.phases[i], fmt::format("{}: phases[{}]", source, i));
}

void validate_executed(const TrainingPlan& plan, const Model& model, std::string_view source) {
  const auto at = [&](std::string_view member) { return fmt::format("{}: {}", source, member); };
  const auto require_positive = [&](std::string_view member, int value, int minimum) {
    if (value < minimum) throw InvalidInput(at(member), fmt::format("must be >= {}", minimum), std::to_string(value));
  };
  require_positive("world_size", plan.world_size, 1);
  require_positive("threads_per_rank", plan.threads_per_rank, 1);
  require_positive("global_batch_size", plan.global_batch_size, 1);
  require_positive("num_steps", plan.num_steps, 0);
  require_positive("epochs", plan.epochs, 0);
  if (plan.phases.empty()) throw InvalidInput(at("phases"), "must hold at least one phase", "[]");
  if (plan.phases[0].from_step != 0)
    throw InvalidInput(at("phases[0].from_step"), "must be 0", std::to_string(plan.phases[0].from_step));
  for (std::size_t i = 0; i < plan.phases.size(); ++i) {
    const auto place = fmt::format("{}: phases[{}]", source, i);
    if (plan.phases[i].layout.data_parallel_size % model.expert_parallel_size != 0)
      throw InvalidInput(
          place + ".layout.data_parallel_size",
          fmt::format("must be a multiple of {}, the profile's expert_parallel_size", model.expert_parallel_size),
          std::to_string(plan.phases[i].layout.data_parallel_size));
    if (i > 0 && plan.phases[i].from_step >= plan.num_steps)
      throw InvalidInput(place + ".from_step", fmt::format("must be < {}, the number of steps", plan.num_steps),
                         std::to_string(plan.phases[i].from_step));
    PhaseValidator(plan, plan.phases[i], model, place).run();
    if (i > 0) require_successor(plan.phases[i - 1], plan.phases[i], place);
  }
}

StepSettings step_settings(const TrainingPlan& plan) {
  return {.global_batch_size = plan.global_batch_size, .optimizer = plan.optimizer, .dtype = plan.dtype};
}

void require_same_model(const TrainingPlan& plan, const Model& model, std::string_view source) {
  const auto actual = fingerprint(model);
  if (plan.provenance.model_fingerprint == actual) return;
  throw InvalidInput(
      fmt::format("{}: was made for another model: {} with fingerprint {}, is used with {} with fingerprint {}", source,
                  plan.provenance.model_name, plan.provenance.model_fingerprint, model.name, actual));
}

std::string to_json(const TrainingPlan& plan) {
  const bool is_of_version_1 = std::ranges::all_of(plan.phases, [](const Phase& phase) {
    return phase.virtual_stages == 1 && phase.token_slices.empty() && phase.schedule_rows.empty() &&
           !phase.layout.sequence_parallel && phase.layout.vacant.empty();
  });
  return json::write_envelope(kPlanFormat, plan, is_of_version_1 ? 1 : 2);
}

TrainingPlan plan_from_json(std::string_view json, std::string_view source) {
  const auto [version, content] = open_plan(json, source, PlanKind::training);
  TrainingPlan plan;
  json::read(content, json::Place(source, version), plan);
  for (std::size_t i = 0; i < plan.phases.size(); ++i) {
    Phase& phase = plan.phases[i];
    phase.schedule = canonical_schedule_name(phase.schedule);
    phase.pipeline_rank_of_stage =
        pipeline_rank_of_stages(phase.schedule_rows, fmt::format("{}: phases[{}].schedule_rows", source, i));
  }
  return plan;
}

}  // namespace frostpipe
