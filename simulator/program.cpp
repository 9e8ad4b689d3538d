#include "simulator/program.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "base/error.h"

namespace frostpipe {
namespace {

/// Encodes an action as one number, without iteration_offset and overlaps_next.
std::uint64_t name_of(const Action& action) {
  const auto kind = static_cast<std::uint64_t>(action.kind), stage = static_cast<std::uint64_t>(action.stage);
  const auto micro_batch = static_cast<std::uint64_t>(action.micro_batch.value_or(-1) + 1),
             slice = static_cast<std::uint64_t>(action.slice.value_or(-1) + 1);
  const auto version = static_cast<std::uint64_t>(action.weight_version);
  if ((stage >> 16 | micro_batch >> 20 | slice >> 16 | version >> 8) != 0)
    throw InvalidInput("action",
                       "must have a stage below 65536, a micro-batch below 1048575 and a token slice below 65535",
                       to_string(action));
  return kind << 60 | stage << 44 | micro_batch << 24 | slice << 8 | version;
}

const std::vector<Action>& list_of(const std::vector<std::vector<Action>>& part, int pipeline_rank) {
  static const std::vector<Action> kNone;
  return part.empty() ? kNone : part.at(pipeline_rank);
}

/// The distinct actions of one pipeline rank, numbered in the order of their first appearance.
struct Names {
  std::vector<Action> actions;
  std::vector<std::pair<std::uint64_t, int>> numbers;  // ascending
  std::vector<int> slots;  // of all actions in the lists, in the order prologue, body, epilogue
  std::vector<std::pair<std::uint64_t, std::size_t>>
      groups;  // kind and stage, and the index of their first number; ascending
};

constexpr int kGroupShift = 44;  // removes micro-batch, slice and weight version from a name

/// Returns none if the action is in no list. Most schedules run every micro-batch of a stage, so the position of its
/// number can be computed. Otherwise it is searched for.
std::optional<int> slot_of(const Names& names, const Action& action, int num_slices) {
  const std::uint64_t name = name_of(action);
  const auto group =
      std::lower_bound(names.groups.begin(), names.groups.end(), std::pair{name >> kGroupShift, std::size_t{0}});
  if (group == names.groups.end() || group->first != name >> kGroupShift) return std::nullopt;
  const std::size_t counted =
      group->second + static_cast<std::size_t>(action.micro_batch.value_or(0)) * num_slices + action.slice.value_or(0);
  if (counted < names.numbers.size() && names.numbers[counted].first == name) return names.numbers[counted].second;
  const auto place = std::lower_bound(names.numbers.begin(), names.numbers.end(), std::pair{name, 0});
  return place != names.numbers.end() && place->first == name ? std::optional(place->second) : std::nullopt;
}

Names names_of(const Schedule& schedule, int pipeline_rank) {
  Names names;
  std::vector<const Action*> all;
  for (const auto* part : {&schedule.prologue, &schedule.body, &schedule.epilogue}) {
    for (const Action& action : list_of(*part, pipeline_rank)) {
      names.numbers.emplace_back(name_of(action), static_cast<int>(all.size()));
      all.push_back(&action);
    }
  }
  std::sort(names.numbers.begin(), names.numbers.end());
  std::vector<int> first(all.size());  // index of the first action with the same name
  std::size_t distinct = 0;
  for (const auto& [name, index] : names.numbers) {
    const bool is_new = distinct == 0 || names.numbers[distinct - 1].first != name;
    if (is_new) names.numbers[distinct++] = {name, index};
    first[index] = names.numbers[distinct - 1].second;
  }
  names.numbers.resize(distinct);
  for (std::size_t i = 0; i < distinct; ++i) {
    const std::uint64_t group = names.numbers[i].first >> kGroupShift;
    if (names.groups.empty() || names.groups.back().first != group) names.groups.emplace_back(group, i);
  }
  names.slots.resize(all.size());
  for (int index = 0; index < static_cast<int>(all.size()); ++index) {
    if (first[index] == index) {
      names.slots[index] = static_cast<int>(names.actions.size());
      names.actions.push_back(*all[index]);
    } else {
      names.slots[index] = names.slots[first[index]];
    }
  }
  for (auto& [name, index] : names.numbers) index = names.slots[index];
  return names;
}

/// Returns the pipeline rank of an action that `list` waits for.
int holder_of(const Schedule& schedule, const Action& action, int list) {
  if (action.stage < 0 || action.stage >= num_stages(schedule)) {
    throw InvalidInput("schedule " + schedule.name, "must name stages below " + std::to_string(num_stages(schedule)),
                       to_string(action));
  }
  if (action.micro_batch) return pipeline_rank_of(schedule, action.stage, *action.micro_batch);
  return lives_on(schedule, action.stage, list) ? list : schedule.pipeline_rank_of_stage[action.stage];
}

SlotKind kind_of(ActionKind kind) {
  if (is_send(kind)) return SlotKind::send;
  return is_receive(kind) ? SlotKind::receive : SlotKind::work;
}

int link_to(Program& program, int pipeline_rank) {
  auto& links = program.link_pipeline_ranks;
  const auto place = std::find(links.begin(), links.end(), pipeline_rank);
  if (place != links.end()) return static_cast<int>(place - links.begin());
  links.push_back(pipeline_rank);
  return static_cast<int>(links.size()) - 1;
}

}  // namespace

std::vector<Program> resolve(const Schedule& lowered) {
  std::vector<Names> names;
  for (int pipeline_rank = 0; pipeline_rank < num_pipeline_ranks(lowered); ++pipeline_rank)
    names.push_back(names_of(lowered, pipeline_rank));

  const Dependencies dependencies(lowered);
  std::vector<Program> programs(names.size());
  for (int pipeline_rank = 0; pipeline_rank < static_cast<int>(names.size()); ++pipeline_rank) {
    Program& program = programs[pipeline_rank];
    program.slots.reserve(names[pipeline_rank].actions.size());
    for (const Action& action : names[pipeline_rank].actions) {
      Slot slot{.action = action,
                .kind = kind_of(action.kind),
                .first_dependency = static_cast<int>(program.dependencies.size())};
      // A SEND follows what it sends, so the order of the list is enough.
      const auto waits_for = slot.kind == SlotKind::send ? std::vector<Action>{} : dependencies.of(action);
      for (const Action& dependency : waits_for) {
        const int holder = holder_of(lowered, dependency, pipeline_rank);
        // A list reduces the gradients of its own backwards. If a stage is on several lists, they synchronize in the
        // collective.
        if (slot.action.kind == ActionKind::reduce_gradient && holder != pipeline_rank) continue;
        const auto index = slot_of(names[holder], dependency, lowered.num_slices);
        program.dependencies.push_back(index ? std::optional(SlotAddress{holder, *index}) : std::nullopt);
      }
      slot.end_dependency = static_cast<int>(program.dependencies.size());
      if (slot.kind == SlotKind::send)
        slot.link = link_to(program, holder_of(lowered, matching(action), pipeline_rank));
      if (slot.kind != SlotKind::work) {
        const Action other = matching(action);
        if (other.stage >= 0 && other.stage < num_stages(lowered)) {
          const int holder = holder_of(lowered, other, pipeline_rank);
          const auto index = slot_of(names[holder], of_kind(other, other.kind), lowered.num_slices);
          if (index) slot.partner = {holder, *index};
        }
      }
      program.slots.push_back(slot);
    }
    const auto body = names[pipeline_rank].slots.begin() +
                      static_cast<std::ptrdiff_t>(list_of(lowered.prologue, pipeline_rank).size());
    const auto epilogue = body + static_cast<std::ptrdiff_t>(list_of(lowered.body, pipeline_rank).size());
    program.prologue.assign(names[pipeline_rank].slots.begin(), body);
    program.body.assign(body, epilogue);
    program.epilogue.assign(epilogue, names[pipeline_rank].slots.end());
  }
  return programs;
}

}  // namespace frostpipe
