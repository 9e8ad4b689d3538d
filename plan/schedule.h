#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/action.h"

namespace frostpipe {

/// The actions of every rank, in order. The simulator and the executor follow this order exactly: they may wait, but
/// never reorder compute.
///
/// Each part lists the actions per pipeline rank; all replicas and tensor ranks of a pipeline rank share its list. The
/// body repeats every iteration (one iteration = one optimizer step). Where iterations overlap (PipeDream-2BW) the
/// prologue starts the first one and the epilogue ends the last: n iterations are prologue, n - 1 bodies, epilogue, and
/// a body's actions with iteration_offset 1 belong to the next iteration. All other schedules have only a body, which
/// runs n times. Invariants (checked by validate): every stage, or each of its micro-batches, is on one pipeline rank;
/// each trainable stage runs F then B (or I and W) of every micro-batch once; stages before `first_trainable_stage` run
/// F only; a SEND stands where it is issued and never blocks; a RECV stands before the compute that needs it.
struct Schedule {
  std::string name;  // PyTorch's where it has one: "GPipe", "1F1B"
  int num_micro_batches = 1;
  /// Token slices per micro-batch. If more than one, every compute action and message belongs to one slice. A stage
  /// runs forwards in ascending order of slices (causal attention reads the earlier slices' keys and values), backwards
  /// in descending.
  int num_slices = 1;
  /// Iteration t uses the weights of iteration t - weight_delay, forward and backward on every stage. 1 =
  /// double-buffered weights (PipeDream-2BW).
  int weight_delay = 0;
  /// Stages before this one are frozen: they run forward only, and no gradient is sent to them. It is at most
  /// num_stages - 1, since the head, and so the last stage, always trains; only forward_only() has num_stages here.
  int first_trainable_stage = 0;
  /// Whether stage 0 reads cached activations: CACHE_READ stands before each of its forwards.
  bool reads_cache = false;
  /// The stage that stores activations at the frozen boundary: CACHE_WRITE stands after each of its forwards and their
  /// SEND_F.
  std::optional<int> cache_write_stage = std::nullopt;
  /// Pipeline rank of each stage; its size is the number of stages.
  std::vector<int> pipeline_rank_of_stage;
  /// Set only where replicas are written out (written_out, plan/reroute.h), so that each list is one rank's and a stage
  /// is on several lists: pipeline_rank_of_micro_batch[s][i] is the list on which stage s runs micro-batch i.
  std::vector<std::vector<int>> pipeline_rank_of_micro_batch{};
  std::vector<std::vector<Action>> prologue, body, epilogue;  // [pipeline_rank][index]
  bool operator==(const Schedule&) const = default;
};

int num_stages(const Schedule& schedule);
int num_pipeline_ranks(const Schedule& schedule);
/// Returns the list on which the stage runs this micro-batch.
int pipeline_rank_of(const Schedule& schedule, int stage, int micro_batch);
/// Returns whether the list has actions of the stage.
bool lives_on(const Schedule& schedule, int stage, int pipeline_rank);

struct ScheduleShape {
  int pipeline_parallel_size = 1;
  int num_micro_batches = 1;
  int first_trainable_stage = 0;  // index among the stages of all ranks
  int virtual_stages = 0;         // per rank; 0 = the number that the schedule requires, or 2 if it allows several
  int token_slices = 0;  // per micro-batch; 0 = the number that the schedule requires, or 4 if it allows several
  bool operator==(const ScheduleShape&) const = default;
};

/// Runs all forwards, then all backwards, both in ascending order of micro-batches (Huang et al. 2019).
Schedule gpipe(const ScheduleShape& shape);

/// Pipeline rank r runs min(p - 1 - r, m) forwards, then alternates one forward and one backward, then drains
/// (PipeDream-Flush, Narayanan et al. 2021). At most min(p - r, m) micro-batches are in flight. m < p is allowed.
Schedule one_f_one_b(const ScheduleShape& shape);

/// 1F1B with v stages per rank, stage s on pipeline rank s mod p (Narayanan et al. 2021). The warm-up is PyTorch's,
/// with (v - 1) m / rounds + 2 (p - 1 - r) forwards, at most m v; rounds is m / p, rounded down but at least 1. If v >
/// 1, m must be a multiple of rounds.
Schedule interleaved_one_f_one_b(const ScheduleShape& shape);

/// Runs all micro-batches through a rank's first stage, then its second, and so on; backwards begin with the last
/// stage, micro-batches in descending order (Lamy-Poirier 2023, in PyTorch's order).
Schedule looped_bfs(const ScheduleShape& shape);

/// 1F1B whose W lags r micro-batches behind I on rank r: the bubble shrinks to (p - 1)(F + I - W) with 1F1B's memory of
/// rank 0 on every rank (Qi et al. 2023).
Schedule zero_bubble_h1(const ScheduleShape& shape);

/// PyTorch's InterleavedZeroBubble: ZB-H1 with v stages per rank.
Schedule interleaved_zero_bubble(const ScheduleShape& shape);

/// ZB-H2 has a bubble of (p - 1)(F + I - 2 W), at the price of 2 p - 1 micro-batches in flight on every rank. It needs
/// m >= 2 p - 1 (Qi et al. 2023).
Schedule zero_bubble_h2(const ScheduleShape& shape);

/// ZB-V has two stages on rank r, r and 2 p - 1 - r, placed as the letter V. If F = I = W, no rank is idle between its
/// first action and its last; p micro-batches are in flight (Qi et al. 2024).
Schedule zero_bubble_v(const ScheduleShape& shape);

/// DualPipe's order on the same V, in which pairs of a forward and a backward overlap; some backwards are B, others I
/// and W. It needs m >= 2 p (DeepSeek-AI 2024).
Schedule dual_pipe_v(const ScheduleShape& shape);

/// GPipe over (micro-batch, token slice): runs all forwards, slices ascending, then all backwards in the opposite order
/// (Li et al. 2021).
Schedule terapipe(const ScheduleShape& shape);

/// 1F1B over (micro-batch, token slice): rank r runs min(p - 1 - r + n - 1, m n) forwards first, where n is the number
/// of slices; the backwards of a micro-batch take its slices in descending order (Sun et al. 2024).
Schedule seq_one_f_one_b(const ScheduleShape& shape);

/// 1F1B without a flush: the next mini-batch's forwards fill the bubble, and each mini-batch uses the weights from
/// before the last update (double-buffered). It needs m >= p (Narayanan et al. 2021).
Schedule pipedream_2bw(const ScheduleShape& shape);

/// Removes the overlap of iterations: prologue and epilogue together become the body, so that each iteration ends
/// before the next begins. A schedule with only a body is returned unchanged.
Schedule flushed(Schedule schedule);

/// Writes out `iterations` repetitions as one body. Micro-batches are numbered consecutively over all iterations,
/// weight_version is max(iteration - weight_delay, 0), and actions of whole stages remain for the last iteration only.
/// `schedule` may be lowered or not. Throws InvalidInput for more than 255 iterations.
Schedule unrolled(const Schedule& schedule, int iterations);

/// 1F1B with messages in the order of DeepSpeed's pipeline engine: a forward first sends the gradient of the backward
/// before it, then receives its activation; a backward receives its gradient, then sends the activation of the forward
/// before it. The result is lowered. It cannot deadlock even if every message is a rendezvous.
Schedule one_f_one_b_of_deepspeed(const ScheduleShape& shape);

/// Makes the schedule of an evaluation: the forwards of `num_micro_batches` through all stages. Each rank always takes
/// the oldest micro-batch whose input is there, assuming equal times. Nothing trains: first_trainable_stage is the
/// number of stages.
Schedule forward_only(const std::vector<int>& pipeline_rank_of_stage, int num_micro_batches);

/// Builds a schedule by name, which is PyTorch's where there is one, in any case ("gpipe", "1F1B"). Throws InvalidInput
/// that lists the known names.
Schedule build_schedule(std::string_view name, const ScheduleShape& shape);
/// Returns the names of the built-in schedules, all of which can be planned, simulated and trained.
std::vector<std::string> schedule_names();
/// Returns whether build_schedule knows the name, in any case.
bool is_built_in(std::string_view name);
/// Returns the name as in schedule_names() ("GPipe" for "gpipe"), or an unknown name unchanged.
std::string canonical_schedule_name(std::string_view name);

/// The placement of stages: stage s on pipeline rank s mod p, or down and up again as in the letter V.
enum class StageMap { loop, v };
int pipeline_rank_of(StageMap map, int stage, int pipeline_parallel_size);

/// Properties of a schedule that are known without building it.
struct ScheduleTraits {
  bool starts_all_forwards = false;                      // every stage runs all forwards before its first backward
  bool splits_backward = false;                          // has I and W in place of some or all B
  bool has_slices = false;                               // may cut micro-batches into token slices
  int least_virtual_stages = 1, max_virtual_stages = 1;  // per rank
  StageMap stage_map = StageMap::loop;
  int weight_delay = 0;  // as in Schedule
};
/// Returns default traits for an unknown name.
ScheduleTraits schedule_traits(std::string_view name);

/// Returns whether a schedule, by name, has I and W in place of some or all B; false for an unknown name.
inline bool splits_backward(std::string_view name) { return schedule_traits(name).splits_backward; }
/// Returns whether the schedule contains W.
bool splits_backward(const Schedule& schedule);

/// Adds communication and the end of the iteration to a schedule of compute actions: RECV directly before the compute
/// that needs it, SEND directly after the compute that produces it (none between stages of one pipeline rank), both
/// around an overlapped pair as a whole, after the last backward REDUCE_GRAD per trainable stage, then OPTIMIZER_STEP
/// per trainable stage, and the cache's actions if the schedule has them. REDUCE_GRAD is also there for a single
/// replica, at no cost. The optimizer step is global: gradient clipping needs the norm over all stages, so all pipeline
/// ranks synchronize there.
Schedule lower(const Schedule& compute_only);

/// Finds the actions that must finish before an action may start, apart from the order of its own list: its input
/// (RECV, CACHE_READ, or the neighbouring stage on the same rank), its own forward for a backward, RECOMPUTE or
/// CACHE_WRITE, I for W, the compute whose result it sends for a SEND, the matching SEND for a RECV, all backwards of a
/// stage for REDUCE_GRAD, and its own stage's REDUCE_GRAD for OPTIMIZER_STEP (where the collective makes all pipeline
/// ranks synchronize). With token slices a forward also needs the slice before it, and a backward the slice after it.
/// The validator and the event engine share this definition.
class Dependencies {
 public:
  /// Keeps a reference to the schedule.
  explicit Dependencies(const Schedule& lowered);
  std::vector<Action> of(const Action& action) const;

 private:
  /// Returns the action of `stage` that produces the input gradient of `action`'s micro-batch: I if the schedule splits
  /// it, else B.
  Action input_gradient(const Action& action, int stage) const;
  std::vector<Action> later_slice(Action action) const;

  const Schedule& schedule_;
  std::vector<std::vector<Action>> input_gradients_, backwards_;  // [stage]; input_gradients_ ascend
};

/// Throws InvalidInput (place: "schedule NAME", pipeline rank, place_in_list) if an invariant of Schedule is broken, a
/// RECV has no SEND or vice versa, an action that another one needs is missing, or pipeline ranks would wait for each
/// other forever; the message then prints the cycle of actions. A schedule with a prologue is checked over three
/// iterations, written out.
void validate(const Schedule& lowered);

/// Returns one line per pipeline rank: "rank 0: 0F0 0F1 0B0 ...". If iterations overlap, prologue, body and epilogue
/// follow each other, each under its name.
std::string to_text(const Schedule& schedule);

/// Describes where an action stands, so that it is found in files with and without messages. Returns "compute action
/// 5", counted from 1, or for an action that does not compute "after compute action 5", for a receive "before compute
/// action 6".
std::string place_in_list(const std::vector<Action>& list, int index);

/// Draws the schedule in unit time (F = I = W = 1, B = 2, no transfers): a line that explains the picture, a time axis,
/// one row per rank with one cell per unit ("F0", "B0---" takes two units, ".." is idle), and the bubble figures. It
/// draws three iterations if they overlap. Throws InvalidInput if a pipeline rank would wait forever.
std::string to_grid(const Schedule& compute_only);

/// Returns PyTorch's CSV: row i = rank i, one action per field in order, no header. A compute-only schedule gives the
/// `compute_only` format, a lowered one `compute_comms` without the actions that PyTorch does not have (OPTIMIZER_STEP,
/// RECOMPUTE and the cache's).
std::string to_csv(const Schedule& schedule);

/// Reads either of PyTorch's formats; the inverse of to_csv. Empty fields are idle slots. The numbers of stages,
/// micro-batches and token slices are counted; leading stages without backwards are frozen. A file with messages is
/// taken to be lowered; REDUCE_GRAD and OPTIMIZER_STEP are appended where they are missing. Throws InvalidInput that
/// names row and field (from 1). Does not check that the schedule can run: see validate.
Schedule schedule_from_csv(std::string_view csv, std::string_view source);

/// Removes the backwards of frozen stages from a schedule that was built as if every stage trained. The remaining
/// actions keep their order, so the schedule stays free of deadlocks.
Schedule without_frozen_backwards(Schedule schedule);

bool has_messages(const Schedule& schedule);
/// Returns the schedule with only F, B, I, W and RECOMPUTE, in their order.
Schedule compute_only(const Schedule& schedule);

}  // namespace frostpipe
