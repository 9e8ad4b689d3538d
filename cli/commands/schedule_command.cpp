#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>

#include "base/error.h"
#include "cli/commands/commands.h"
#include "cli/plans/schedule_choice.h"
#include "cli/plans/schedule_times.h"
#include "cli/report/schedule_svg.h"
#include "cli/shared/common_options.h"
#include "cli/shared/help_format.h"
#include "cli/shared/output.h"
#include "cli/shared/report_words.h"
#include "cli/shared/usage_error.h"
#include "plan/messages.h"
#include "plan/schedule.h"
#include "simulator/simulate.h"

namespace frostpipe {
namespace {

constexpr Nanoseconds kUnit = 1'000'000;  // time of one F, I or W in pictures
constexpr int kShownIterations = 3;       // iterations to show of schedules whose iterations overlap

struct ScheduleOptions {
  ScheduleChoice choice;
  ScheduleTimes times;
  std::string to_check;  // a file, or the name of a schedule
  bool blocking_sends = false;
  std::string actions = "compute_only";
  std::string format;
};

std::string in_format(const Schedule& compute, const ScheduleOptions& options) {
  if (options.format == "grid") return to_grid(compute);
  if (options.format == "times" || options.format == "json")
    return schedule_times_text(compute, options.times, weight_gradient_share_of(options.choice), options.format);
  const bool with_messages = options.actions == "compute_comms";
  if (options.format == "text" && !with_messages) return to_text(compute);
  // Messages, CSV and pictures have no notation for iterations that overlap, so kShownIterations iterations are shown
  // one after another.
  const Schedule flat = compute.epilogue.empty() ? compute : unrolled(compute, kShownIterations);
  const Schedule shown = with_messages ? with_receives_in_send_order(lower(flat)) : flat;
  if (options.format == "text") return to_text(shown);
  if (options.format == "csv") return to_csv(shown);
  const Trace trace = simulate(lower(flat), {.pipeline_parallel_size = num_pipeline_ranks(flat)},
                               UniformCostModel(costs_of(ScheduleTimes{})), 1);
  return schedule_svg(flat, trace, kUnit);
}

Schedule checked(const ScheduleOptions& options) {
  ScheduleChoice choice = options.choice;
  choice.name = options.to_check;
  if (names_a_file(choice.name)) return checked_schedule(choice);
  const Schedule compute = chosen_schedule(choice, costs_of(options.times));
  validate(lower(compute));
  return compute;
}

std::string check_verdict(const std::string& name, const Schedule& checked) {
  std::string text = fmt::format("{}: valid {} with {}", name, has_messages(checked) ? "compute_comms" : "compute_only",
                                 sizes_text(checked));
  if (checked.num_slices > 1) text += fmt::format(" of {} token slices", checked.num_slices);
  if (checked.first_trainable_stage > 0)
    text += fmt::format(", the first {} frozen",
                        checked.first_trainable_stage == 1 ? "stage" : plural(checked.first_trainable_stage, "stage"));
  return text + "\n";
}

/// Names the first message that PyTorch, which matches messages by their order, would give to another receive than the
/// schedule means. Empty if there is none, or if the file has no messages.
std::string order_verdict(const std::string& name, const Schedule& checked) {
  struct Messages {
    std::vector<Action> sends, receives;
  };
  std::map<std::pair<int, int>, Messages> between;  // by sending and receiving pipeline rank
  for (int rank = 0; rank < num_pipeline_ranks(checked); ++rank) {
    for (const Action& action : checked.body[rank]) {
      if (!is_send(action.kind) && !is_receive(action.kind)) continue;
      const int other = checked.pipeline_rank_of_stage[matching(action).stage];
      if (is_send(action.kind))
        between[{rank, other}].sends.push_back(matching(action));
      else
        between[{other, rank}].receives.push_back(of_kind(action, action.kind));
    }
  }
  for (const auto& [ranks, messages] : between) {
    const auto [wanted, taken] =
        std::mismatch(messages.sends.begin(), messages.sends.end(), messages.receives.begin(), messages.receives.end());
    if (wanted == messages.sends.end()) continue;
    return fmt::format(
        "{}: PyTorch matches messages between two ranks by their order: message {} from rank {} to rank {} is {}, "
        "which {} would receive; `schedule {} --actions compute_comms --format csv` writes receives in the order of "
        "the sends\n",
        name, wanted - messages.sends.begin() + 1, ranks.first, ranks.second, to_string(matching(*wanted)),
        to_string(*taken), name);
  }
  return {};
}

/// Says that blocking sends cannot deadlock. In a file with messages, receives stay where they stand; in a schedule of
/// compute actions alone, they are posted as far ahead as they must be. Throws InvalidInput with the cycle of a
/// deadlock.
std::string blocking_verdict(const std::string& name, const Schedule& checked) {
  if (has_messages(checked)) {
    if (const auto cycle = blocking_cycle(checked, {}))
      throw InvalidInput(fmt::format("{}: blocking sends deadlock where the receives stand: {}", name, *cycle));
    return fmt::format("{}: blocking sends cannot deadlock; each receive is posted where it stands\n", name);
  }
  const Schedule flat = checked.epilogue.empty() ? checked : unrolled(checked, kShownIterations);
  const std::vector<ReceiveQueue> queues = receive_queues(lower(flat));
  const auto longest =
      std::max_element(queues.begin(), queues.end(), [](const auto& a, const auto& b) { return a.ahead < b.ahead; });
  if (longest == queues.end()) return fmt::format("{}: blocking sends cannot deadlock; there are none\n", name);
  return fmt::format(
      "{}: blocking sends cannot deadlock; rank {} posts up to {} receives of {} from rank {} ahead, no rank more\n",
      name, longest->pipeline_rank, longest->ahead,
      longest->kind == ActionKind::recv_forward ? "activations" : "gradients", longest->from);
}

int run_check(const ScheduleOptions& options) {
  if (!options.choice.name.empty()) throw UsageError("--check FILE: takes no NAME beside it");
  const Schedule schedule = checked(options);
  std::string verdict = check_verdict(options.to_check, schedule) + order_verdict(options.to_check, schedule);
  if (options.blocking_sends) verdict += blocking_verdict(options.to_check, schedule);
  print_result(verdict);
  return 0;
}

int run_schedule(const ScheduleOptions& options) {
  if (!options.to_check.empty()) return run_check(options);
  if (options.choice.name.empty())
    throw UsageError("schedule: needs a NAME (such as 1F1B), a CSV file, or --check FILE");
  if (options.format != "csv" && options.format != "text" && options.actions != "compute_only") {
    throw UsageError(
        fmt::format("--format {}: shows compute only; use csv or text for --actions compute_comms", options.format));
  }
  print_result(in_format(chosen_schedule(options.choice, costs_of(options.times)), options));
  return 0;
}

}  // namespace

Command add_schedule_command(CLI::App& app) {
  const auto options = std::make_shared<ScheduleOptions>();
  CLI::App* command = app.add_subcommand(
      "schedule", "Show what each rank of a pipeline does, and in which order, or how long it takes");
  command->add_option("NAME", options->choice.name, "Schedule: " + known_schedules() + "; or a CSV file")
      ->type_name("");
  CLI::Option* const check =
      command
          ->add_option("--check", options->to_check,
                       "Check whether a CSV file, or a schedule by name, can run, and say why not")
          ->type_name("FILE");
  command
      ->add_flag("--blocking-sends", options->blocking_sends,
                 "Also prove that sends which block until they are received cannot deadlock, or show the cycle")
      ->needs(check);
  add_shape_options(*command, options->choice);
  command
      ->add_option("--first-trainable-stage", options->choice.shape.first_trainable_stage,
                   "First stage that is not frozen; those before it run the forward pass only")
      ->check(CLI::Range(0, kLargestCount).description(""))
      ->type_name("N")
      ->capture_default_str();
  command
      ->add_option("--actions", options->actions,
                   "Actions to show: compute_only, or compute_comms for what passes between ranks too")
      ->check(CLI::IsMember({"compute_only", "compute_comms"}).description(""))
      ->type_name("ACTIONS")
      ->capture_default_str()
      ->excludes(check);
  add_times_options(*command, options->times);
  add_format_option(*command, options->format, {"grid", "csv", "svg", "text", "times", "json"});
  command->get_option("--format")->excludes(check);
  show_first(*command, {"--pp", "--micro-batches", "--virtual-stages", "--token-slices", "--actions", "--check",
                        "--format", "--compute-ms", "--latency-ms", "--message-ms"});
  command->footer(
      "In grid and svg every F, I and W takes one unit of time, and a B two. csv is what torch.distributed.pipelining "
      "reads.\ntimes and json predict makespan, bubbles and micro-batches in flight from the times of F, I and W. "
      "There,\na pair of overlapped actions (DualPipeV) sends its messages when both have ended; in the grid, at "
      "once.\nIn the steady state ranks do not synchronise at the end of an iteration. The ranks of a plan do.\n\n"
      "Examples:\n  frostpipe schedule 1F1B --pp 4 --micro-batches 8 --format grid\n"
      "  frostpipe schedule ZBVZeroBubble --actions compute_comms --format csv > zbv.csv\n"
      "  frostpipe schedule --check zbv.csv --blocking-sends\n"
      "  frostpipe schedule ZB-H1 --pp 8 --micro-batches 24 --format times --compute-ms "
      "18.522,18.086,9.337 --latency-ms 0.601");
  return {command, [options] { return run_schedule(*options); }};
}

}  // namespace frostpipe
