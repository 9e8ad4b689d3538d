#include "plan/schedule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "profiles/error.h"

namespace frostpipe {

namespace {

struct Builder {
  std::string_view name;
  Schedule (*build)(const ScheduleShape&);
  bool runnable = false;
  bool splits_backward = false;
};

constexpr bool kRunnable = true, kSplits = true;

constexpr std::array<Builder, 12> kBuilders{{{"GPipe", gpipe, kRunnable},
                                             {"1F1B", one_f_one_b, kRunnable},
                                             {"Interleaved1F1B", interleaved_one_f_one_b},
                                             {"LoopedBFS", looped_bfs},
                                             {"ZB-H1", zero_bubble_h1, kRunnable, kSplits},
                                             {"ZB-H2", zero_bubble_h2, kRunnable, kSplits},
                                             {"InterleavedZeroBubble", interleaved_zero_bubble, false, kSplits},
                                             {"ZBVZeroBubble", zero_bubble_v, false, kSplits},
                                             {"DualPipeV", dual_pipe_v, false, kSplits},
                                             {"PipeDream-2BW", pipedream_2bw},
                                             {"TeraPipe", terapipe},
                                             {"Seq1F1B", seq_one_f_one_b}}};

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
}

/// Null: none of that name.
const Builder* find_builder(std::string_view name) {
  const auto found = std::find_if(kBuilders.begin(), kBuilders.end(),
                                  [&](const Builder& builder) { return equal_ignoring_case(builder.name, name); });
  return found != kBuilders.end() ? found : nullptr;
}

}  // namespace

bool has_messages(const Schedule& schedule) {
  for (const auto* part : {&schedule.prologue, &schedule.body, &schedule.epilogue}) {
    for (const auto& list : *part) {
      if (std::any_of(list.begin(), list.end(),
                      [](const Action& action) { return is_send(action.kind) || is_receive(action.kind); }))
        return true;
    }
  }
  return false;
}

Schedule compute_only(const Schedule& schedule) {
  Schedule compute = schedule;
  for (auto* part : {&compute.prologue, &compute.body, &compute.epilogue}) {
    for (auto& list : *part) std::erase_if(list, [](const Action& action) { return !is_compute(action.kind); });
  }
  return compute;
}

int num_stages(const Schedule& schedule) { return static_cast<int>(schedule.pipeline_rank_of_stage.size()); }

int num_pipeline_ranks(const Schedule& schedule) { return static_cast<int>(schedule.body.size()); }

Schedule build_schedule(std::string_view name, const ScheduleShape& shape) {
  if (const Builder* builder = find_builder(name)) return builder->build(shape);
  throw InvalidInput("schedule", fmt::format("must be one of {}", fmt::join(schedule_names(), ", ")),
                     fmt::format("\"{}\"", name));
}

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const auto& builder : kBuilders) names.emplace_back(builder.name);
  return names;
}

std::vector<std::string> runnable_schedule_names() {
  std::vector<std::string> names;
  for (const auto& builder : kBuilders)
    if (builder.runnable) names.emplace_back(builder.name);
  return names;
}

bool is_runnable(std::string_view name) {
  const Builder* builder = find_builder(name);
  return builder != nullptr && builder->runnable;
}

bool splits_backward(std::string_view name) {
  const Builder* builder = find_builder(name);
  return builder != nullptr && builder->splits_backward;
}

}  // namespace frostpipe
