#include "plan/plan_method.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/enum_words.h"
#include "base/error.h"

namespace frostpipe {
namespace {

constexpr EnumWords<PlanMethod, 15> kMethods{
    {{PlanMethod::automatic, "auto"},
     {PlanMethod::data_parallel, "data-parallel"},
     {PlanMethod::static_pipeline, "static"},
     {PlanMethod::exact, "exact"},
     {PlanMethod::equal_split, "equal-split"},
     {PlanMethod::pipedream, "pipedream"},
     {PlanMethod::pipedream_2bw, "pipedream-2bw"},
     {PlanMethod::ptd_p, "ptd-p"},
     {PlanMethod::terapipe, "terapipe"},
     {PlanMethod::timely_freeze, "timelyfreeze"},
     {PlanMethod::pipetransformer, "pipetransformer"},
     {PlanMethod::freeze_only, "freeze-only"},
     {PlanMethod::pipetransformer_published, "pipetransformer-published"},
     {PlanMethod::pipetransformer_without_replicas, "pipetransformer-without-replicas"},
     {PlanMethod::operators, "operators"}}};

}  // namespace

const std::vector<PlanMethod>& plan_methods() {
  static const std::vector<PlanMethod> methods = [] {
    std::vector<PlanMethod> all;
    for (const auto& [method, word] : kMethods)
      if (method != PlanMethod::automatic && method != PlanMethod::operators) all.push_back(method);
    return all;
  }();
  return methods;
}

std::string_view to_string(PlanMethod method) { return word_of(kMethods, method); }

std::optional<PlanMethod> find_plan_method(std::string_view word) { return value_of(kMethods, word); }

void parse_text(std::string_view text, const std::string& place, PlanMethod& method) {
  const auto found = find_plan_method(text);
  if (!found || *found == PlanMethod::automatic) {
    std::vector<std::string_view> words;
    for (const PlanMethod known : plan_methods()) words.push_back(to_string(known));
    throw InvalidInput(place, fmt::format("must be one of {}", fmt::join(words, ", ")), fmt::format("\"{}\"", text));
  }
  method = *found;
}

bool freezes(PlanMethod method) { return method == PlanMethod::freeze_only || replans(method); }

bool replans(PlanMethod method) {
  return method == PlanMethod::pipetransformer || method == PlanMethod::pipetransformer_published ||
         method == PlanMethod::pipetransformer_without_replicas;
}

std::string run_name(PlanMethod method) {
  switch (method) {
    case PlanMethod::data_parallel:
      return "data_parallel";
    case PlanMethod::static_pipeline:
      return "static_pipeline";
    case PlanMethod::pipetransformer:
      return "elastic";
    case PlanMethod::pipetransformer_published:
      return "published";
    case PlanMethod::freeze_only:
      return "freeze_only";
    case PlanMethod::pipetransformer_without_replicas:
      return "without_replicas";
    default:
      return std::string(to_string(method));
  }
}

}  // namespace frostpipe
