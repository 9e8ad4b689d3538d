#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/action.h"

namespace frostpipe {

/// What every rank does, in the order in which it does it. The simulator and the executor follow it to the letter: they
/// may wait, never reorder compute.
///
/// Each part lists the actions per pipeline rank; all replicas and tensor ranks of a pipeline rank share its list.
/// The body repeats every iteration (one iteration = one optimizer step). Where iterations overlap (PipeDream-2BW) the
/// prologue starts the first one and the epilogue ends the last: n iterations are prologue, n - 1 bodies, epilogue, and
/// a body's actions with iteration_offset 1 belong to the next iteration. All others have only a body, n of them.
/// Invariants (checked by validate): every stage lives on one pipeline rank, or each micro-batch of it does; each
/// trainable stage runs F then B (or I and W) of every micro-batch once; stages before `first_trainable_stage` run F
/// only; a SEND stands where it is issued and never blocks, a RECV stands before the compute that needs it.
struct Schedule {
  std::string name;  // PyTorch's where it has one: "GPipe", "1F1B"
  int num_micro_batches = 1;
  /// Token slices per micro-batch. More than one: every compute action and message is of one slice, forwards of a stage
  /// in ascending order (causal attention reads what earlier slices left), backwards in descending.
  int num_slices = 1;
  /// Iteration t uses the weights of iteration t - weight_delay, forward and backward on every stage: 1 = two buffers
  /// of weights (PipeDream-2BW).
  int weight_delay = 0;
  /// Stages before this one are frozen: forward only, and nothing is sent back to them. At most num_stages - 1:
  /// the head, and so the last stage, always trains.
  int first_trainable_stage = 0;
  /// Stage 0 looks for cached activations: CACHE_READ stands before each of its forwards.
  bool reads_cache = false;
  /// Stage that stores activations at the frozen boundary: CACHE_WRITE stands after each of its forwards and the
  /// SEND_F.
  std::optional<int> cache_write_stage = std::nullopt;
  /// pipeline_rank_of_stage[s] = pipeline rank that stage s lives on; size = number of stages.
  std::vector<int> pipeline_rank_of_stage;
  /// Where replicas are written out (written_out, plan/reroute.h) a list is a rank's, and a stage lives on several of
  /// them: pipeline_rank_of_micro_batch[s][i] is where it runs micro-batch i. Else empty.
  std::vector<std::vector<int>> pipeline_rank_of_micro_batch{};
  std::vector<std::vector<Action>> prologue, body, epilogue;  // [pipeline_rank][index]
  bool operator==(const Schedule&) const = default;
};

int num_stages(const Schedule& schedule);
int num_pipeline_ranks(const Schedule& schedule);
/// Of the list in which the stage has this micro-batch.
int pipeline_rank_of(const Schedule& schedule, int stage, int micro_batch);
/// Whether the list has actions of the stage.
bool lives_on(const Schedule& schedule, int stage, int pipeline_rank);

struct ScheduleShape {
  int pipeline_parallel_size = 1;
  int num_micro_batches = 1;
  int first_trainable_stage = 0;  // of all stages, p times the stages per rank
  int virtual_stages = 0;         // per rank; 0 = what the schedule needs, 2 where that is free
  int token_slices = 0;           // per micro-batch; 0 = what the schedule needs, 4 where that is free
  bool operator==(const ScheduleShape&) const = default;
};

/// All forwards, then all backwards, micro-batches in ascending order in both (Huang et al. 2019).
Schedule gpipe(const ScheduleShape& shape);

/// Pipeline rank r runs min(p - 1 - r, m) forwards, then alternates one forward and one backward, then drains
/// (PipeDream-Flush, Narayanan et al. 2021). At most min(p - r, m) micro-batches in flight. Also valid for m < p.
Schedule one_f_one_b(const ScheduleShape& shape);

/// 1F1B with v stages per rank, stage s on pipeline rank s mod p (Narayanan et al. 2021; warm-up as PyTorch's: v - 1
/// groups of m / rounds and 2 (p - 1 - r) forwards, rounds = m / p rounded down). m must be a multiple of the rounds.
Schedule interleaved_one_f_one_b(const ScheduleShape& shape);

/// All micro-batches through a rank's first stage, then its second, ...; backwards from the last, micro-batches in
/// descending order (Lamy-Poirier 2023, in PyTorch's order).
Schedule looped_bfs(const ScheduleShape& shape);

/// 1F1B whose W lags r micro-batches behind I on rank r: the bubble shrinks to (p - 1)(F + I - W) with 1F1B's memory of
/// rank 0 on every rank (Qi et al. 2023).
Schedule zero_bubble_h1(const ScheduleShape& shape);

/// PyTorch's InterleavedZeroBubble: ZB-H1 with v stages per rank.
Schedule interleaved_zero_bubble(const ScheduleShape& shape);

/// Bubble (p - 1)(F + I - 2 W) for 2 p - 1 micro-batches in flight on every rank; needs m >= 2 p - 1 (Qi et al. 2023).
Schedule zero_bubble_h2(const ScheduleShape& shape);

/// Two stages per rank, placed as the letter V: r and 2 p - 1 - r. No bubble within a rank's span where F = I = W, p
/// micro-batches in flight (Qi et al. 2024).
Schedule zero_bubble_v(const ScheduleShape& shape);

/// DualPipe's order on the V: pairs of a forward and a backward overlap; needs m >= 2 p
/// (DeepSeek-AI 2024).
Schedule dual_pipe_v(const ScheduleShape& shape);

/// GPipe over (micro-batch, token slice): all forwards, slices ascending, then all backwards in the opposite order (Li
/// et al. 2021).
Schedule terapipe(const ScheduleShape& shape);

/// 1F1B over (micro-batch, token slice): min(p - 1 - r + n - 1, m n) forwards first, n = token slices; the backwards of
/// a micro-batch take its slices in descending order (Sun et al. 2024).
Schedule seq_one_f_one_b(const ScheduleShape& shape);

/// 1F1B without a flush: the next mini-batch's forwards fill the bubble, and each mini-batch uses the weights of the
/// one before (double-buffered). Needs m >= p (Narayanan et al. 2021).
Schedule pipedream_2bw(const ScheduleShape& shape);

/// The same without overlap: the prologue and the epilogue as one body, so that each iteration ends before the next
/// begins. Schedules with only a body stay as they are.
Schedule flushed(Schedule schedule);

/// `iterations` repetitions written out as one body: micro-batches count through, weight_version = max(iteration -
/// weight_delay, 0), and of the actions of whole stages only the last iteration's stay. `schedule` may be lowered or
/// not.
Schedule unrolled(const Schedule& schedule, int iterations);

/// 1F1B with its messages where DeepSpeed's pipeline engine has them: a forward first sends the gradient of the
/// backward before it, then receives its activation; a backward receives its gradient, then sends the activation of the
/// forward before it. Lowered. With these neighbours never wait for each other forever even where every message is a
/// rendezvous.
Schedule one_f_one_b_of_deepspeed(const ScheduleShape& shape);

/// An evaluation: forwards of `num_micro_batches` through all stages. Where they take equally long, a rank always takes
/// the oldest micro-batch whose input is there. Nothing trains: its first trainable stage comes after the last one.
Schedule forward_only(const std::vector<int>& pipeline_rank_of_stage, int num_micro_batches);

/// Builder by PyTorch's name where it has one, in any case ("gpipe", "1F1B"). Throws InvalidInput that lists the known
/// names.
Schedule build_schedule(std::string_view name, const ScheduleShape& shape);
std::vector<std::string> schedule_names();
/// Whether build_schedule knows the name, in upper or lower case.
bool is_built_in(std::string_view name);
/// The name as schedule_names() has it ("GPipe" for "gpipe"); one that build_schedule does not know stays as it is.
std::string canonical_schedule_name(std::string_view name);
/// Those that plans may use, simulate and train.
std::vector<std::string> plan_schedule_names();

/// Which pipeline rank a stage lives on: stage mod p, or down and up again as in the letter V.
enum class StageMap { loop, v };
int pipeline_rank_of(StageMap map, int stage, int pipeline_parallel_size);

/// What is known of a schedule without building it.
struct ScheduleTraits {
  bool is_for_plans = false;
  bool starts_all_forwards = false;                       // of a stage, before its first backward
  bool splits_backward = false;                           // has I and W in place of B
  bool has_slices = false;                                // may cut micro-batches into token slices
  int least_virtual_stages = 1, most_virtual_stages = 1;  // per rank
  StageMap stage_map = StageMap::loop;
  int weight_delay = 0;  // as Schedule's
};
/// An unknown name has none.
ScheduleTraits schedule_traits(std::string_view name);

/// Whether a schedule by name has I and W in place of B. An unknown name has not.
inline bool splits_backward(std::string_view name) { return schedule_traits(name).splits_backward; }
/// Whether a list has W.
bool splits_backward(const Schedule& schedule);

/// Adds the actions between ranks and at the iteration's end to a schedule of compute actions only:
/// RECV directly before the compute that needs it, SEND directly after the compute that produces it (none between
/// stages of one pipeline rank), and after the last backward REDUCE_GRAD per trainable stage, then OPTIMIZER_STEP per
/// trainable stage, and the cache's actions where the schedule has them. REDUCE_GRAD stands there for one replica too,
/// and costs nothing then. The iteration's optimizer step is global: gradient clipping needs the norm over all stages,
/// so pipeline ranks meet there.
Schedule lower(const Schedule& compute_only);

/// What must have finished before `action` may start, apart from the order of its own pipeline rank's list: its input
/// (RECV or the same rank's neighbour stage), its own forward for a backward, all backwards of a stage for REDUCE_GRAD,
/// REDUCE_GRAD for OPTIMIZER_STEP (of its own stage; that all pipeline ranks meet there is a collective's business),
/// the matching SEND for a RECV; of a token slice the ones before it, of its backward the ones after it. The one
/// definition that the validator and the event engine use.
class Dependencies {
 public:
  /// Keeps a reference to the schedule.
  explicit Dependencies(const Schedule& lowered);
  std::vector<Action> of(const Action& action) const;

 private:
  /// The action of `stage` that makes the input gradient of `action`'s micro-batch: I where the schedule splits, else
  /// B.
  Action input_gradient(const Action& action, int stage) const;
  std::vector<Action> later_slice(Action action) const;

  const Schedule& schedule_;
  std::vector<std::vector<Action>> input_gradients_, backwards_;  // [stage]; the former ascend
};

/// Throws InvalidInput (place: "schedule NAME", pipeline rank, place_in_list) if an invariant above is broken, a RECV
/// has no SEND or a SEND no RECV, an action that it waits for is missing, or if pipeline ranks would wait for each
/// other forever: then the message prints the cycle of actions. A schedule with a prologue is checked over three
/// iterations, written out.
void validate(const Schedule& lowered);

/// One line per pipeline rank: "rank 0: 0F0 0F1 0B0 ...".
std::string to_text(const Schedule& schedule);

/// Where an action stands, by what is in files with and without messages: "compute action 5", counted from 1; of what
/// is no compute "after compute action 5", of a receive "before compute action 6".
std::string place_in_list(const std::vector<Action>& list, int index);

/// A picture in unit time (F = I = W = 1, B = 2, no transfers): a line that explains it, a time axis, one row per rank
/// with one cell per unit ("F0", "B0---" is two units, ".." idle), and the bubble figures.
std::string to_grid(const Schedule& compute_only);

/// PyTorch's CSV: row i = rank i, columns = actions in order, one per field, no header. For a compute-only schedule
/// this is the `compute_only` format, for a lowered one `compute_comms` (OPTIMIZER_STEP and the cache's actions, which
/// PyTorch does not have, left out).
std::string to_csv(const Schedule& schedule);

/// Inverse of to_csv: reads either of PyTorch's formats, as written there or by hand; empty fields are idle slots.
/// Stages and micro-batches are counted; stages at the front without backwards are frozen. A file with messages is
/// taken to be lowered, and REDUCE_GRAD and OPTIMIZER_STEP are appended where they are missing. Throws InvalidInput
/// that names row and field (from 1); whether the schedule can run is for validate to say.
Schedule schedule_from_csv(std::string_view csv, std::string_view source);

/// Takes the backwards of frozen stages out of a schedule that was made as if every stage trained. What is left keeps
/// its order, so it still makes progress.
Schedule without_frozen_backwards(Schedule schedule);

bool has_messages(const Schedule& schedule);
/// Only F, B, I, W and RECOMPUTE, in their order.
Schedule compute_only(const Schedule& schedule);

}  // namespace frostpipe
