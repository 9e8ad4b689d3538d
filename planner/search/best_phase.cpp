#include "planner/search/best_phase.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "plan/memory.h"
#include "plan/stages.h"
#include "planner/search/best_placement.h"
#include "planner/search/candidate.h"
#include "planner/search/choices.h"
#include "planner/search/shifted_cuts.h"
#include "planner/search/slice_cut.h"
#include "simulator/iteration_timer.h"

namespace frostpipe {
namespace {

constexpr std::size_t kShiftedCandidates = 2;
constexpr int kShiftedMicroBatches = 2048;  // over all stages; beyond that only the bound places the cuts

/// The candidate that lacked the fewest bytes, if nothing fitted.
struct ClosestMiss {
  Bytes missing_bytes = 0;
  std::string reason;
};

class Search {
 public:
  Search(const PlanningProblem& problem, const PhaseSearch& search, LayerCosts& costs)
      : problem_(problem),
        search_(search),
        costs_(costs),
        timer_(step_settings(problem.options), costs, problem.cluster),
        schedules_(schedules_for(problem, search.pipeline_parallel_size)),
        maker_(problem,
               {.pipeline_parallel_size = search.pipeline_parallel_size,
                .first_trainable_layer = search.first_trainable_layer,
                .cache = search.cache},
               costs) {
    limit_ns_ = search.give_up_above_ns > 0 ? search.give_up_above_ns : kNoLimit;
  }

  Nanoseconds least_bound() {
    const std::vector<Choice> choices = all_choices();
    return choices.empty() ? kNoLimit : choices.front().bound_ns;
  }

  PhaseSearchResult run() {
    const std::vector<Choice> choices = all_choices();
    // Choices with several stages per rank come last: their bounds are weaker, and their partitions take longer to
    // make.
    for (const bool looped : {false, true}) {
      for (const Choice& choice : choices) {
        if (choice.bound_ns > limit_ns_) break;
        if ((schedules_[choice.schedule].virtual_stages > 1) != looped) continue;
        try {
          consider(choice);
        } catch (const InvalidInput& error) {  // the longest sample was not measured at this size
          if (!not_measured_) not_measured_ = error;
        }
      }
    }
    if (choices.empty() && !not_measured_)
      return {.best = {}, .lower_bound_ns = limit_ns_, .reason = not_scheduled_->what()};
    if (!fits_ && !closest_) explain_infeasibility(choices);
    if (choices.empty() || (!fits_ && !closest_ && empty_stage_.empty() && limit_ns_ == kNoLimit && not_measured_))
      throw InvalidInput(not_measured_.value());
    if (problem_.options.partitioner == Partitioner::exact && problem_.options.partition.empty() && !search_.bound_only)
      shift_cuts_of_best();
    if (search_.proof_micro_batches > 0 && problem_.options.partitioner == Partitioner::exact &&
        problem_.options.partition.empty() && prove(choices))
      lower_bound_ns_ = kNoLimit;
    fits_ = fits_ || best_;
    PhaseSearchResult result{
        .best = std::move(best_), .lower_bound_ns = std::min(lower_bound_ns_, limit_ns_), .reason = {}};
    if (!fits_) result.reason = closest_ ? closest_->reason : empty_stage_;
    if (!fits_ && closest_) result.missing_bytes = closest_->missing_bytes;
    return result;
  }

 private:
  std::vector<Choice> all_choices() {
    Choices choices = choices_of(problem_, search_, schedules_, maker_, costs_);
    not_measured_ = std::move(choices.not_measured);
    not_scheduled_ = std::move(choices.not_scheduled);
    return std::move(choices.of_least_bound_first);
  }

  Phase unpartitioned_phase_of(const Choice& choice) const {
    return maker_.unpartitioned_phase(search_.recompute[choice.recompute], schedules_[choice.schedule],
                                      choice.num_micro_batches);
  }

  /// Reports for each recompute mode what the smallest micro-batches lack, unless one of them may fit.
  void explain_infeasibility(const std::vector<Choice>& choices) {
    if (problem_.options.partitioner != Partitioner::exact || !problem_.options.partition.empty()) return;
    std::map<std::size_t, Choice> smallest;  // by recompute mode
    for (const Choice& choice : choices) {
      if (choice.schedule > 0) continue;
      Choice& known = smallest.try_emplace(choice.recompute, choice).first->second;
      if (choice.num_micro_batches > known.num_micro_batches) known = choice;
    }
    for (const auto& [way, choice] : smallest) {  // the quick test first: it may save the exact search of all modes
      if (maker_.fits_if_filled(unpartitioned_phase_of(choice))) return closest_.reset();
    }
    for (const auto& [way, choice] : smallest) {
      const Candidate closest = maker_.closest_to_fitting(unpartitioned_phase_of(choice));
      if (closest.missing_bytes == 0) return closest_.reset();  // it fits but is too slow
      record_miss(closest);
    }
  }

  void record_miss(const Candidate& candidate) {
    if (!closest_ || candidate.missing_bytes < closest_->missing_bytes)
      closest_ = {.missing_bytes = candidate.missing_bytes, .reason = miss_of(candidate)};
  }

  void consider(const Choice& choice) {
    Phase unpartitioned = unpartitioned_phase_of(choice);
    if (unpartitioned.virtual_stages > 1) return consider_looped(choice, unpartitioned);
    // A choice does not fit if one with micro-batches of that size and no more of them in flight did not.
    const MicroBatchSize largest = planned_micro_batch(unpartitioned, problem_.options.global_batch_size);
    const int in_flight = unpartitioned.schedule == "1F1B"
                              ? std::min(choice.num_micro_batches, search_.pipeline_parallel_size)
                              : choice.num_micro_batches;
    int& too_many =
        too_many_in_flight_
            .try_emplace({choice.recompute, choice.schedule, largest.samples, largest.tokens}, in_flight + 1)
            .first->second;
    if (in_flight >= too_many) return;
    const bool exact = problem_.options.partitioner == Partitioner::exact && problem_.options.partition.empty();
    if (exact && !maker_.may_fit(unpartitioned)) {
      too_many = in_flight;
      return;
    }
    auto made = maker_.make(unpartitioned, limit_ns_);
    if (const auto* none = std::get_if<Infeasible>(&made)) {
      empty_stage_ = none->reason;
      return;
    }
    const auto& candidate = std::get<std::optional<Candidate>>(made);
    if (!candidate || candidate->missing_bytes > 0) {
      if (limit_ns_ != kNoLimit) return;  // it may only be too slow
      too_many = in_flight;
      if (candidate) record_miss(*candidate);
      return;
    }
    fits_ = true;
    lower_bound_ns_ = std::min(lower_bound_ns_, candidate->bound_ns);
    if (search_.bound_only) {
      const Rank rank(candidate->bound_ns, choice.recompute, choice.schedule, choice.num_micro_batches);
      keep_if_faster(candidate->phase, rank);
      return;
    }
    Phase phase = predicted(*candidate);
    const auto rank =
        std::tuple(phase.predicted.iteration_ns, choice.recompute, choice.schedule, choice.num_micro_batches);
    feasible_.emplace(rank, phase);
    keep_if_faster(std::move(phase), rank);
  }

  /// Considers a choice with several stages per rank. looped_partition may miss the best partition, so the lower bound
  /// of the choice is the one that holds for any partition.
  void consider_looped(const Choice& choice, const Phase& unpartitioned) {
    if (!search_.bound_only) {
      const auto candidate = maker_.looped_partition(unpartitioned, limit_ns_);
      if (!candidate) return;
      if (candidate->missing_bytes > 0) {
        lower_bound_ns_ = std::min(lower_bound_ns_, choice.bound_ns);
        return record_miss(*candidate);
      }
      fits_ = true;
      if (candidate->bound_ns <= limit_ns_) {
        Phase phase = predicted(*candidate);
        const Rank rank(phase.predicted.iteration_ns, choice.recompute, choice.schedule, choice.num_micro_batches);
        feasible_.emplace(rank, phase);
        keep_if_faster(std::move(phase), rank);
      }
    }
    fits_ = true;
    lower_bound_ns_ = std::min(lower_bound_ns_, choice.bound_ns);
  }

  using Rank = std::tuple<Nanoseconds, std::size_t, std::size_t, int>;

  void keep_if_faster(Phase phase, const Rank& rank) {
    if (best_ && best_rank_ <= rank) return;
    if (std::get<0>(rank) > limit_ns_) return;
    limit_ns_ = std::get<0>(rank);
    best_ = std::move(phase);
    best_rank_ = rank;
  }

  /// Shifts the cuts of the best few candidates, and also tries other token slices.
  void shift_cuts_of_best() {
    const PredictBelow below = [&](const Phase& phase, Nanoseconds limit_ns) {
      return predicted_below(phase, limit_ns);
    };
    const auto keep = [&](Phase phase, Rank rank) {
      std::get<0>(rank) = phase.predicted.iteration_ns;
      keep_if_faster(std::move(phase), rank);
    };
    std::size_t count = 0;
    for (const auto& [rank, candidate] : feasible_) {
      if (++count > kShiftedCandidates || simulated_micro_batches(candidate, problem_.options) > kShiftedMicroBatches)
        break;
      Phase current = with_shifted_or_even_cuts(candidate, problem_, maker_, below);
      if (auto sliced = with_cut_slices(current, problem_, maker_, costs_, below)) keep(*std::move(sliced), rank);
      keep(std::move(current), rank);
    }
  }

  /// Looks at every partition that may be faster than the best. Returns false if the budget does not suffice.
  bool prove(const std::vector<Choice>& choices) {
    Effort effort{.simulated = search_.proof_micro_batches, .visited = kProofVisits};
    for (const Choice& choice : choices) {
      if (choice.bound_ns >= limit_ns_) break;
      const Phase unpartitioned = unpartitioned_phase_of(choice);
      const StageBound bound = maker_.bound_of(unpartitioned);
      Partition partition;
      try {
        if (!try_partitions(choice, unpartitioned, bound, partition, effort)) return false;
      } catch (const InvalidInput&) {  // the longest sample was not measured at this size
      }
    }
    return true;
  }

  /// The effort that prove() may still spend.
  struct Effort {
    int simulated = 0;  // micro-batches over all stages
    int visited = 0;    // stages
  };
  static constexpr int kProofVisits = 100'000;

  bool try_partitions(const Choice& choice, const Phase& unpartitioned, const StageBound& bound, Partition& partition,
                      Effort& effort) {
    const int n = static_cast<int>(problem_.profile.model.layers.size()), stages = num_stages(unpartitioned),
              stage = static_cast<int>(partition.size());
    const int begin = partition.empty() ? 0 : partition.back().end, last = n - (stages - 1 - stage);
    for (int end = stage + 1 == stages ? n : begin + 1; end <= last; ++end) {
      if (--effort.visited < 0) return false;
      partition.push_back({begin, end});
      const StageBound::Terms terms = bound.on_rank(partition, pipeline_rank_of(unpartitioned, stage));
      if (terms.total_ns() >= limit_ns_) {
        partition.pop_back();
        if (terms.rising_ns() >= limit_ns_) break;
        continue;
      }
      if (stage + 1 < stages) {
        if (!try_partitions(choice, unpartitioned, bound, partition, effort)) return false;
      } else if (keeps_pins(problem_.options.pins, partition) &&
                 (unpartitioned.virtual_stages == 1 || bound.of(partition) < limit_ns_)) {
        effort.simulated -= simulated_micro_batches(unpartitioned, problem_.options);
        if (effort.simulated < 0) return false;
        Phase phase = unpartitioned;
        phase.partition = partition;
        if (auto next = predicted_below(phase, limit_ns_ + 1)) {
          const Rank rank(next->predicted.iteration_ns, choice.recompute, choice.schedule, choice.num_micro_batches);
          keep_if_faster(*std::move(next), rank);
        }
      }
      partition.pop_back();
    }
    return true;
  }

  Phase predicted(const Candidate& candidate) {
    return with_prediction(candidate, timer_.iteration_ns(candidate.phase), problem_.cluster);
  }

  /// Returns the phase with its prediction; none if it lacks memory, or its iteration is not below the limit.
  std::optional<Phase> predicted_below(const Phase& phase, Nanoseconds limit_ns) {
    if (!timer_.may_be_below(phase, limit_ns)) return std::nullopt;
    const Candidate candidate = maker_.with_memory(phase);
    if (candidate.missing_bytes > 0) return std::nullopt;
    const std::optional<Nanoseconds> iteration_ns = timer_.iteration_ns_below(phase, limit_ns);
    if (!iteration_ns) return std::nullopt;
    return with_prediction(candidate, *iteration_ns, problem_.cluster);
  }

  std::string miss_of(const Candidate& candidate) const {
    const Phase& phase = candidate.phase;
    return fmt::format("{} ({}, m = {}, {}{})", what_does_not_fit(phase, candidate.memory, problem_.cluster),
                       schedule_text(phase), phase.num_micro_batches, to_brief_string(phase.partition),
                       recompute_note(phase.recompute));
  }

  PlanningProblem problem_;
  const PhaseSearch& search_;
  LayerCosts& costs_;
  IterationTimer timer_;
  std::vector<PlannedSchedule> schedules_;
  CandidateMaker maker_;
  Nanoseconds limit_ns_ = kNoLimit;        // slower phases are of no interest
  Nanoseconds lower_bound_ns_ = kNoLimit;  // over all that were not left out because of limit_ns_
  std::map<std::tuple<std::size_t, std::size_t, int, int>, int>
      too_many_in_flight_;          // by recompute, schedule, samples and tokens: the least number that does not fit
  std::map<Rank, Phase> feasible_;  // with their predictions
  std::optional<Phase> best_;
  Rank best_rank_;
  bool fits_ = false;
  std::optional<ClosestMiss> closest_;
  std::string empty_stage_;
  std::optional<InvalidInput> not_measured_, not_scheduled_;
};

}  // namespace

PhaseSearchResult search_phase(const PlanningProblem& problem, const PhaseSearch& search, LayerCosts& costs) {
  PhaseSearchResult result{
      .best = {}, .lower_bound_ns = kNoLimit, .reason = why_no_pipeline(problem, search.pipeline_parallel_size)};
  if (result.reason.empty()) result = Search(problem, search, costs).run();
  if (!result.reason.empty()) result.reason.insert(0, fmt::format("p = {}: ", search.pipeline_parallel_size));
  return result;
}

Nanoseconds least_bound_of_any_partition(const PlanningProblem& problem, const PhaseSearch& search, LayerCosts& costs) {
  if (!why_no_pipeline(problem, search.pipeline_parallel_size).empty()) return kNoLimit;
  PhaseSearch quickest = search;
  if (std::ranges::find(search.recompute, Recompute()) != search.recompute.end()) quickest.recompute = {std::nullopt};
  return Search(problem, quickest, costs).least_bound();
}

std::variant<Phase, Infeasible> best_phase(const PlanningProblem& problem, int pipeline_parallel_size,
                                           int first_trainable_layer, const CacheUse& cache) {
  LayerCosts costs(problem.profile, problem.options.dtype, problem.options.sequence_parallel);
  PhaseSearchResult result = search_placements(problem,
                                               {.pipeline_parallel_size = pipeline_parallel_size,
                                                .first_trainable_layer = first_trainable_layer,
                                                .cache = cache,
                                                .recompute = {problem.options.recompute}},
                                               costs);
  if (result.best) return *std::move(result.best);
  return Infeasible{std::move(result.reason), result.missing_bytes > 0};
}

}  // namespace frostpipe
