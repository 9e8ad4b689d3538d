#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace frostpipe {

/// The method by which a plan is made; planner/make_plan.h describes each.
enum class PlanMethod {
  automatic,  // "auto": the faster of data_parallel and static_pipeline, which then becomes the plan's method
  data_parallel,
  static_pipeline,
  exact,
  equal_split,
  pipedream,
  pipedream_2bw,
  ptd_p,
  terapipe,
  timely_freeze,
  pipetransformer,
  freeze_only,
  pipetransformer_published,
  pipetransformer_without_replicas,
  operators,  // only of a net's run, in which each phase has an operator plan that names its own method
};

/// Returns the methods by which make_plan plans: all but `automatic` and `operators`.
const std::vector<PlanMethod>& plan_methods();

/// Returns the word of options and files, such as "data-parallel".
std::string_view to_string(PlanMethod method);

/// Returns the method of a word, which may be "auto"; none for an unknown word.
std::optional<PlanMethod> find_plan_method(std::string_view word);

/// Reads the word of plan_methods() or of `operators`. Throws InvalidInput ("PLACE: must be one of ...") for others.
void parse_text(std::string_view text, const std::string& place, PlanMethod& method);

/// Returns whether a plan of this method freezes layers during the run.
bool freezes(PlanMethod method);

/// Returns whether the run is re-planned, by PipeTransformer's rules or ours, after each decision of a freeze rule.
bool replans(PlanMethod method);

/// Returns the name of the method's run in a comparison, by its role: data_parallel, static_pipeline, elastic
/// (pipetransformer), published, freeze_only, without_replicas. Other methods keep their own names.
std::string run_name(PlanMethod method);

}  // namespace frostpipe
