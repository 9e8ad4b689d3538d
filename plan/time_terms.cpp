#include "plan/time_terms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

namespace frostpipe {
namespace {

constexpr std::array kNames{"forward", "backward", "cache", "gradient reduction", "update", "waiting"};
constexpr std::size_t kWaiting = kNames.size() - 1;

std::size_t term_of(ActionKind kind) {
  switch (kind) {
    case ActionKind::forward:
    case ActionKind::recompute:
      return 0;
    case ActionKind::backward:
    case ActionKind::input_gradient:
    case ActionKind::weight_gradient:
      return 1;
    case ActionKind::cache_read:
    case ActionKind::cache_write:
      return 2;
    case ActionKind::reduce_gradient:
      return 3;
    case ActionKind::optimizer_step:
      return 4;
    default:
      return kWaiting;
  }
}

/// Returns the mean of each term over the ranks, in an iteration of this length.
std::array<double, kNames.size()> terms_of(const Trace& timeline, double iteration_ns, double scale) {
  std::array<double, kNames.size()> terms{};
  std::set<int> ranks;
  for (const Span& span : timeline.spans) {
    ranks.insert(span.rank);
    const std::size_t term = term_of(span.action.kind);
    if (term != kWaiting) terms[term] += scale * static_cast<double>(span.end_ns - span.begin_ns);
  }
  terms[kWaiting] = iteration_ns;
  for (std::size_t term = 0; term < kWaiting; ++term) {
    terms[term] /= static_cast<double>(ranks.size());
    terms[kWaiting] -= terms[term];
  }
  return terms;
}

double length_of(const Trace& timeline) {
  Nanoseconds begin = timeline.spans.front().begin_ns, end = begin;
  for (const Span& span : timeline.spans) {
    begin = std::min(begin, span.begin_ns);
    end = std::max(end, span.end_ns);
  }
  return static_cast<double>(std::max<Nanoseconds>(1, end - begin));
}

}  // namespace

std::vector<TimeTerm> time_terms(const PhaseSummary& phase) {
  if (phase.predicted_timeline.spans.empty() || phase.measured_timeline.spans.empty()) return {};
  const auto iteration_ns = static_cast<double>(phase.measured_iteration_ns);
  const auto predicted = terms_of(phase.predicted_timeline, static_cast<double>(phase.predicted_iteration_ns), 1);
  const auto measured =
      terms_of(phase.measured_timeline, iteration_ns, std::min(1.0, iteration_ns / length_of(phase.measured_timeline)));
  std::vector<TimeTerm> terms;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    terms.push_back({kNames[i], static_cast<Nanoseconds>(predicted[i]), static_cast<Nanoseconds>(measured[i])});
  }
  return terms;
}

std::string term_that_is_off(const PhaseSummary& phase) {
  constexpr double kWorthNaming = 0.05, kExplains = 0.25;
  const auto error = static_cast<double>(std::abs(phase.predicted_iteration_ns - phase.measured_iteration_ns));
  if (error < kWorthNaming * static_cast<double>(phase.measured_iteration_ns)) return {};
  const std::vector<TimeTerm> terms = time_terms(phase);
  if (terms.empty()) return {};
  const auto difference = [](const TimeTerm& term) { return term.predicted_ns - term.measured_ns; };
  const auto less = [&](const TimeTerm& a, const TimeTerm& b) {
    return std::abs(difference(a)) < std::abs(difference(b));
  };
  const auto worst = std::max_element(terms.begin(), terms.end() - 1, less);
  const TimeTerm& named = static_cast<double>(std::abs(difference(*worst))) < kExplains * error ? terms.back() : *worst;
  return fmt::format("{} {:+.1f} ms", named.name, static_cast<double>(difference(named)) / 1e6);
}

}  // namespace frostpipe
