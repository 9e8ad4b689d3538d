#include "plan/plan_kind.h"

#include <fmt/format.h>

#include <string>

#include "base/enum_words.h"
#include "base/error.h"
#include "plan/plan_envelope.h"

namespace frostpipe {
namespace {

constexpr EnumWords<PlanKind, 3> kKinds{
    {{PlanKind::training, "training"}, {PlanKind::serving, "serving"}, {PlanKind::operators, "operators"}}};

/// Removes the field "kind" and returns it; plans without it are training plans.
PlanKind take_kind(json::Content& content, std::string_view source) {
  PlanKind kind = PlanKind::training;
  if (const auto found = content.json.find("kind"); found != content.json.end()) {
    const json::Place place(source);
    json::read(*found, json::Place(place, "kind"), kind);
    content.json.erase(found);
  }
  return kind;
}

}  // namespace

PlanKind kind_of_plan(std::string_view json, std::string_view source) {
  auto content = json::open_envelope(json, source, kPlanFormat, kNewestPlanVersion);
  return take_kind(content, source);
}

json::Content open_plan(std::string_view json, std::string_view source, PlanKind kind) {
  auto content = json::open_envelope(json, source, kPlanFormat, kNewestPlanVersion);
  if (const auto found = take_kind(content, source); found != kind)
    throw InvalidInput(
        fmt::format("{}: must be a plan of {}, is one of {}", source, to_string(kind), to_string(found)));
  if (kind == PlanKind::training && content.version > kNewestTrainingVersion)
    throw InvalidInput(fmt::format("{}: version", source),
                       fmt::format("must be <= {} in a plan of training", kNewestTrainingVersion),
                       std::to_string(content.version));
  if (kind == PlanKind::serving && content.version < kServingVersion)
    throw InvalidInput(fmt::format("{}: version", source),
                       fmt::format("must be >= {} in a plan of serving", kServingVersion),
                       std::to_string(content.version));
  if (kind == PlanKind::operators && content.version != kOperatorsVersion)
    throw InvalidInput(fmt::format("{}: version", source),
                       fmt::format("must be {} in a plan of operators", kOperatorsVersion),
                       std::to_string(content.version));
  return content;
}

std::string_view to_string(PlanKind kind) { return word_of(kKinds, kind); }

void parse_text(std::string_view text, const std::string& place, PlanKind& kind) {
  kind = parse_word(kKinds, text, place, "must be training, serving or operators");
}

}  // namespace frostpipe
