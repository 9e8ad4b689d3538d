#include "plan/action.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/error.h"

namespace frostpipe {

namespace {

struct KindName {
  ActionKind kind;
  std::string_view name;
};

constexpr int kMaxIterationOffset = 100, kMaxWeightVersion = 255;

constexpr std::array<KindName, 15> kNames{{
    {ActionKind::forward, "F"},
    {ActionKind::backward, "B"},
    {ActionKind::input_gradient, "I"},
    {ActionKind::weight_gradient, "W"},
    {ActionKind::send_forward, "SEND_F"},
    {ActionKind::recv_forward, "RECV_F"},
    {ActionKind::send_backward, "SEND_B"},
    {ActionKind::recv_backward, "RECV_B"},
    {ActionKind::reduce_gradient, "REDUCE_GRAD"},
    {ActionKind::unshard, "UNSHARD"},
    {ActionKind::reshard, "RESHARD"},
    {ActionKind::optimizer_step, "OPTIMIZER_STEP"},
    {ActionKind::recompute, "RECOMPUTE"},
    {ActionKind::cache_read, "CACHE_READ"},
    {ActionKind::cache_write, "CACHE_WRITE"},
}};

/// Parses an action from left to right.
class ActionText {
 public:
  ActionText(std::string_view text, std::string_view place) : text_(text), rest_(text), place_(place) {}

  [[noreturn]] void fail(std::string_view rule) const {
    throw InvalidInput(place_, rule, fmt::format("\"{}\"", text_));
  }

  bool starts_number() const { return !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9'; }

  /// Reads a number. If none follows, it fails with `rule`.
  int number(std::string_view rule) {
    int value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (!starts_number() || error != std::errc()) fail(rule);
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }

  ActionKind kind() {
    const auto is_letter = [](char c) { return (c >= 'A' && c <= 'Z') || c == '_'; };
    const auto end = std::find_if_not(rest_.begin(), rest_.end(), is_letter);
    const auto name = rest_.substr(0, static_cast<std::size_t>(end - rest_.begin()));
    const auto found = std::find_if(kNames.begin(), kNames.end(), [&](const KindName& k) { return k.name == name; });
    if (found == kNames.end()) fail("must have a known kind such as F, B, SEND_F or REDUCE_GRAD after the stage");
    rest_.remove_prefix(name.size());
    return found->kind;
  }

  bool skip(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view text_, rest_, place_;
};

}  // namespace

Action of_kind(Action action, ActionKind kind) {
  action.kind = kind;
  action.overlaps_next = false;
  return action;
}

std::string_view to_string(ActionKind kind) {
  for (const auto& entry : kNames)
    if (entry.kind == kind) return entry.name;
  FROSTPIPE_CHECK(false, "all kinds are listed");
}

std::string to_string(const Action& action) {
  std::string text = fmt::format("{}{}", action.stage, to_string(action.kind));
  if (action.micro_batch) text += std::to_string(*action.micro_batch);
  if (action.slice) text += fmt::format("s{}", *action.slice);
  if (action.weight_version != 0) text += fmt::format("@{}", action.weight_version);
  if (action.iteration_offset != 0) text += fmt::format("{:+}", action.iteration_offset);
  return text;
}

Action parse_action(std::string_view text, std::string_view place) {
  ActionText reader(text, place);
  Action action;
  action.stage = reader.number("must have a stage (as \"2F0\" has)");
  action.kind = reader.kind();
  if (has_micro_batch(action.kind))
    action.micro_batch = reader.number("must have a micro-batch (as \"2F0\" has)");
  else if (reader.starts_number())
    reader.fail(fmt::format("must have no micro-batch: {} belongs to a whole stage", to_string(action.kind)));
  if (reader.skip('s')) action.slice = reader.number("must have a slice after \"s\" (as \"2F0s3\" has)");
  if (reader.skip('@')) {
    const int version = reader.number("must have a weight version after \"@\" (as \"2F0@1\" has)");
    if (version > kMaxWeightVersion) reader.fail("must use a weight version below 256");
    action.weight_version = static_cast<std::uint8_t>(version);
  }
  const bool before = reader.skip('-');
  if (before || reader.skip('+')) {
    const int offset = reader.number("must have an iteration offset after its sign (as \"2F0+1\" has)");
    if (offset > kMaxIterationOffset) reader.fail("must belong to an iteration at most 100 away");
    action.iteration_offset = static_cast<std::int8_t>(before ? -offset : offset);
  }
  if (!reader.at_end()) reader.fail("must be an action such as 2F0, 3SEND_F1 or 1REDUCE_GRAD and nothing after it");
  return action;
}

int units_of(const Action& action) { return action.kind == ActionKind::backward ? 2 : 1; }

bool is_compute(ActionKind kind) {
  switch (kind) {
    case ActionKind::forward:
    case ActionKind::backward:
    case ActionKind::input_gradient:
    case ActionKind::weight_gradient:
    case ActionKind::recompute:
      return true;
    default:
      return false;
  }
}

bool is_send(ActionKind kind) { return kind == ActionKind::send_forward || kind == ActionKind::send_backward; }

bool is_receive(ActionKind kind) { return kind == ActionKind::recv_forward || kind == ActionKind::recv_backward; }

bool has_micro_batch(ActionKind kind) {
  switch (kind) {
    case ActionKind::reduce_gradient:
    case ActionKind::unshard:
    case ActionKind::reshard:
    case ActionKind::optimizer_step:
      return false;
    default:
      return true;
  }
}

Action matching(const Action& send_or_receive) {
  Action other = send_or_receive;
  switch (send_or_receive.kind) {
    case ActionKind::send_forward:
      other.kind = ActionKind::recv_forward;
      ++other.stage;
      return other;
    case ActionKind::recv_forward:
      other.kind = ActionKind::send_forward;
      --other.stage;
      return other;
    case ActionKind::send_backward:
      other.kind = ActionKind::recv_backward;
      --other.stage;
      return other;
    case ActionKind::recv_backward:
      other.kind = ActionKind::send_backward;
      ++other.stage;
      return other;
    default:
      FROSTPIPE_CHECK(false, "only sends and receives have a counterpart");
  }
}

}  // namespace frostpipe
