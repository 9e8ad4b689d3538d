#pragma once
// Implementation header: the parts that plan files of all kinds share. Include it from .cpp files only.
#include <string_view>

#include "base/json_reader.h"
#include "plan/partition.h"
#include "plan/plan.h"
#include "plan/plan_kind.h"

namespace frostpipe {

constexpr std::string_view kPlanFormat = "frostpipe.plan";
constexpr int kNewestPlanVersion = 5;
constexpr int kNewestTrainingVersion = 2;
constexpr int kServingVersion = 3;
constexpr int kSharedPrefixVersion = 5;  // serving plans in which a model has several heads
constexpr int kOperatorsVersion = 4;

template <class Archive>
void fields(Archive& archive, json::Value<Archive, LayerRange>& range) {
  archive("begin", range.begin, json::at_least(0));
  archive("end", range.end, json::at_least(0));
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, Provenance>& provenance) {
  archive("model_name", provenance.model_name);
  archive("model_fingerprint", provenance.model_fingerprint);
  archive("model_path", provenance.model_path);
  archive("profile_path", provenance.profile_path);
  archive("profile_fingerprint", provenance.profile_fingerprint);
  archive("cluster_path", provenance.cluster_path);
  archive("cluster_fingerprint", provenance.cluster_fingerprint);
  archive("version", provenance.version);
}

/// Returns a plan file's content without its envelope and its kind. Throws InvalidInput if it is of another kind, or of
/// a version that plans of its kind do not have.
json::Content open_plan(std::string_view json, std::string_view source, PlanKind kind);

}  // namespace frostpipe
