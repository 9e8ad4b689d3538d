#pragma once
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace frostpipe {

/// The kinds of actions of a rank. Their names are those of torch.distributed.pipelining, which lacks the last four.
enum class ActionKind : std::uint8_t {
  forward,          // F
  backward,         // B: full backward, input gradient and weight gradient
  input_gradient,   // I
  weight_gradient,  // W
  send_forward,     // SEND_F: `stage` is the sender's
  recv_forward,     // RECV_F: `stage` is the receiver's
  send_backward,    // SEND_B
  recv_backward,    // RECV_B
  reduce_gradient,  // REDUCE_GRAD: all-reduce over the stage's replicas
  unshard,          // UNSHARD
  reshard,          // RESHARD
  optimizer_step,   // OPTIMIZER_STEP
  recompute,        // RECOMPUTE
  cache_read,       // CACHE_READ
  cache_write,      // CACHE_WRITE
};

/// An index or none in four bytes, since schedules hold millions of actions.
class OptionalIndex {
 public:
  constexpr OptionalIndex() = default;
  constexpr OptionalIndex(std::nullopt_t) {}
  constexpr OptionalIndex(std::int32_t index) : index_(index) {}
  constexpr explicit operator bool() const { return index_ >= 0; }
  constexpr bool has_value() const { return index_ >= 0; }
  constexpr int operator*() const { return index_; }
  constexpr int value_or(int otherwise) const { return index_ >= 0 ? index_ : otherwise; }
  constexpr auto operator<=>(const OptionalIndex&) const = default;

 private:
  std::int32_t index_ = -1;
};

struct Action {
  ActionKind kind = ActionKind::forward;
  /// This action and the next one of the list run as one overlapped pair.
  bool overlaps_next = false;
  /// The action's iteration relative to that of the body, printed as "+1" when not 0.
  std::int8_t iteration_offset = 0;
  /// The weight version that the action uses, printed as "@1" when not 0.
  std::uint8_t weight_version = 0;
  int stage = 0;
  /// None for actions of a whole stage: REDUCE_GRAD, UNSHARD, RESHARD, OPTIMIZER_STEP.
  OptionalIndex micro_batch = std::nullopt;
  /// Token slice, printed as "s3" after the micro-batch.
  OptionalIndex slice = std::nullopt;
  auto operator<=>(const Action&) const = default;
};
static_assert(sizeof(Action) == 16);

/// Returns `action` with another kind and without overlaps_next.
Action of_kind(Action action, ActionKind kind);

/// Returns the name of the kind: "F", "SEND_F", "OPTIMIZER_STEP", ...
std::string_view to_string(ActionKind kind);

/// Returns "2F0", "3SEND_F1", "1REDUCE_GRAD", "2F0s3", "2F0@1". parse_action reads it back, except for overlaps_next.
std::string to_string(const Action& action);

/// Reads one action. Throws InvalidInput that names `place` and the text.
Action parse_action(std::string_view text, std::string_view place);

bool is_compute(ActionKind kind);       // F B I W RECOMPUTE
int units_of(const Action& compute);    // its duration in unit time: 2 for B, 1 for all others
bool is_send(ActionKind kind);          // SEND_F SEND_B
bool is_receive(ActionKind kind);       // RECV_F RECV_B
bool has_micro_batch(ActionKind kind);  // everything but REDUCE_GRAD UNSHARD RESHARD OPTIMIZER_STEP

/// Returns the send that a receive waits for, and vice versa: 1RECV_F0 <-> 0SEND_F0, 0RECV_B2 <-> 1SEND_B2.
Action matching(const Action& send_or_receive);

}  // namespace frostpipe
