#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace frostpipe {

/// How a plan is made; planner/make_plan.h says what each one does.
enum class PlanMethod {
  automatic,  // "auto": of data_parallel and static_pipeline the faster one, which is then the plan's method
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
};

/// Those that a plan can name: all but automatic.
const std::vector<PlanMethod>& plan_methods();

/// "data-parallel", as in options and files.
std::string_view to_string(PlanMethod method);

/// The method of a word, which may be "auto".
std::optional<PlanMethod> find_plan_method(std::string_view word);

/// Throws InvalidInput ("PLACE: must be one of ...") for other words than those of plan_methods().
void parse_text(std::string_view text, const std::string& place, PlanMethod& method);

/// Whether layers freeze during a run by this method's plan.
bool freezes(PlanMethod method);

/// Whether a run is planned again, by PipeTransformer's rules or ours, each time that a freeze rule has decided.
bool replans(PlanMethod method);

/// Name of the method's run in a comparison by its role: data_parallel, static_pipeline, elastic (pipetransformer),
/// published, freeze_only, without_replicas; of other methods as they are called.
std::string run_name(PlanMethod method);

}  // namespace frostpipe
