#include "executor/training/run_recorder.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <span>

#include "base/error.h"
#include "executor/elastic/logical_ranks.h"
#include "plan/partition.h"

namespace frostpipe {
namespace {

std::vector<double> by_layer(const CacheCounts& counts, std::size_t num_layers) {
  std::vector<double> values(num_layers + 1, 0.0);
  for (const auto& [layer, count] : counts.found) values[layer] = static_cast<double>(count);
  return values;
}

/// Converts counts to fractions of all requested samples.
std::vector<CacheFound> fractions(const std::vector<double>& found_by_layer) {
  const double all = std::accumulate(found_by_layer.begin(), found_by_layer.end(), 0.0);
  std::vector<CacheFound> found;
  for (std::size_t layer = 1; layer < found_by_layer.size(); ++layer) {
    if (found_by_layer[layer] > 0) found.push_back({static_cast<int>(layer), found_by_layer[layer] / all});
  }
  return found;
}

bool before_step(const StepRecord& record, int step) { return record.step < step; }

/// Returns the records of steps in [first, end) from `steps`, which must be in order.
std::span<const StepRecord> between(const std::vector<StepRecord>& steps, int first, int end) {
  return {std::lower_bound(steps.begin(), steps.end(), first, before_step),
          std::lower_bound(steps.begin(), steps.end(), end, before_step)};
}

/// Returns that step of the phase with recorded spans whose time is nearest to the phase's median.
int typical_step(const PhaseSummary& phase, const std::vector<StepRecord>& steps, int traced_steps) {
  const auto traced = between(steps, phase.from_step, phase.from_step + std::min(phase.num_steps, traced_steps));
  if (traced.empty()) return phase.from_step;
  return std::min_element(traced.begin(), traced.end(),
                          [&](const StepRecord& a, const StepRecord& b) {
                            return std::abs(a.iteration_ns - phase.measured_iteration_ns) <
                                   std::abs(b.iteration_ns - phase.measured_iteration_ns);
                          })
      ->step;
}

/// Shifts the trace so that its earliest time is 0.
void start_at_zero(Trace& trace) {
  if (trace.spans.empty() && trace.events.empty()) return;
  Nanoseconds origin = trace.spans.empty() ? trace.events.front().begin_ns : trace.spans.front().begin_ns;
  for (const Span& span : trace.spans) origin = std::min(origin, span.begin_ns);
  for (const Event& event : trace.events) origin = std::min(origin, event.begin_ns);
  const auto shift = [origin](auto& one) {
    one.begin_ns -= origin;
    one.end_ns -= origin;
  };
  std::for_each(trace.spans.begin(), trace.spans.end(), shift);
  std::for_each(trace.events.begin(), trace.events.end(), shift);
}

}  // namespace

RunRecorder::RunRecorder(ComputeDevice& device, const Model& model, int num_logical_ranks,
                         const std::filesystem::path& folder, int traced_steps)
    : device_(device), model_(model), num_logical_ranks_(num_logical_ranks), traced_steps_(traced_steps), log_(folder) {
  trace_.num_ranks = whole_.num_ranks = num_logical_ranks;
}

void RunRecorder::join(Communicator& communicator, std::vector<int> logical_ranks) {
  keep_spans();
  communicator_ = &communicator;
  logical_ranks_ = std::move(logical_ranks);
}

void RunRecorder::begin_phase(const Phase& phase, Nanoseconds transformation_ns, const CacheCounts& cached) {
  end_phase(cached);
  running_ = {with_logical_ranks(phase, logical_ranks_, num_logical_ranks_), transformation_ns, num_steps_,
              by_layer(cached, model_.layers.size())};
  device_.reset_peak();
}

void RunRecorder::end_steps() {
  if (running_) running_->peak = device_.peak_bytes();
}

Nanoseconds RunRecorder::median_iteration_ns() const {
  PhaseSummary phase;
  const std::vector<StepRecord> steps = remembered_of(*running_, num_steps_);
  if (running_->reported_figures && !steps.empty()) measure(phase, steps);
  return static_cast<Nanoseconds>(communicator_->sum({static_cast<double>(phase.measured_iteration_ns)}).front());
}

bool RunRecorder::record_step(const StepRecord& step, bool reports_figures) {
  num_steps_ = step.step + 1;
  last_.push_back(step);
  if (last_.size() > kRememberedSteps) last_.pop_front();
  while (!trace_.spans.empty() && trace_.spans.back().step >= running_->first_step + traced_steps_)
    trace_.spans.pop_back();
  running_->reported_figures = reports_figures;
  return !reports_figures || log_.write({step});
}

void RunRecorder::record_event(const char* name, Nanoseconds begin_ns, Nanoseconds end_ns) {
  whole_.events.push_back({logical_ranks_[communicator_->rank()], name, begin_ns, end_ns});
}

std::vector<double> RunRecorder::found_in_running_phase(const CacheCounts& cached) const {
  std::vector<double> found = by_layer(cached, model_.layers.size());
  std::transform(found.begin(), found.end(), running_->found_by_layer.begin(), found.begin(), std::minus<>());
  return found;
}

std::vector<double> RunRecorder::own_peak() const {
  std::vector<double> peaks(num_logical_ranks_, 0.0);
  const Bytes peak = running_ && running_->peak ? *running_->peak : device_.peak_bytes();
  peaks[logical_ranks_[communicator_->rank()]] = static_cast<double>(peak);
  return peaks;
}

std::vector<double> RunRecorder::own_peak_since(int from_step) const {
  const bool is_running = running_ && running_->phase.from_step == from_step;
  return is_running ? own_peak() : std::vector<double>(num_logical_ranks_, 0.0);
}

std::vector<StepRecord> RunRecorder::remembered_of(const PhaseRecord& record, int end_step) const {
  std::vector<StepRecord> steps;
  for (const StepRecord& step : last_) {
    if (step.step >= record.first_step && step.step < end_step) steps.push_back(step);
  }
  return steps;
}

/// Summarizes a phase, which must have at least one step, from this rank's knowledge.
RunRecorder::Past RunRecorder::close(const PhaseRecord& record, int end_step, const std::vector<double>& found_by_layer,
                                     const std::vector<double>& peaks) const {
  Past past{.phase = record.phase, .summary = {}};
  PhaseSummary& summary = past.summary;
  summary.from_step = record.phase.from_step;
  summary.num_steps = end_step - record.first_step;
  summary.first_trainable_layer = record.phase.first_trainable_layer;
  summary.frozen_blocks = frozen_blocks(model_, record.phase.first_trainable_layer);
  summary.stages = record.phase.layout.pipeline_parallel_size;
  summary.replicas = record.phase.layout.data_parallel_size;
  summary.tensor_ranks = record.phase.layout.tensor_parallel_size;
  summary.num_micro_batches = record.phase.num_micro_batches;
  summary.schedule = record.phase.schedule;
  summary.partition = to_string(record.phase.partition);
  measure(summary, remembered_of(record, end_step));
  summary.transformation_ns = record.transformation_ns;
  summary.cache = record.phase.cache.on;
  const std::vector<CacheFound> found = fractions(found_by_layer);
  summary.cache_hit_fraction = fraction_at(found, summary.first_trainable_layer);
  for (const CacheFound& one : found)
    summary.cache_base_fraction += one.layer < summary.first_trainable_layer ? one.fraction : 0;
  for (const double bytes : peaks) summary.measured_peak_memory_bytes.push_back(static_cast<Bytes>(bytes));
  past.phase.tokens = summary.tokens;
  past.phase.cache.found = found;
  return past;
}

std::vector<RunRecorder::Past> RunRecorder::past_and_running(int end_step, const std::vector<double>& found_by_layer,
                                                             const std::vector<double>& peaks) const {
  std::vector<Past> all = past_;
  if (running_ && end_step > running_->first_step) all.push_back(close(*running_, end_step, found_by_layer, peaks));
  return all;
}

/// Must be called by all ranks. Returns past_and_running(), the same on all ranks: with the figures of the rank that
/// reports them, the memory peaks of all ranks and the sum of their cache counts. Sets the figures of the last step,
/// too.
std::vector<RunRecorder::Past> RunRecorder::agreed_past_and_running(const CacheCounts& cached) {
  const std::vector<double> found = communicator_->sum(found_in_running_phase(cached)),
                            peaks = communicator_->sum(own_peak());
  std::vector<Past> all = past_and_running(num_steps_, found, peaks);
  if (all.size() == past_.size()) return all;
  PhaseSummary& running = all.back().summary;
  StepRecord& last = last_.back();
  std::vector<double> figures{static_cast<double>(running.measured_iteration_ns),
                              static_cast<double>(running.measured_iteration_low_ns),
                              static_cast<double>(running.measured_iteration_high_ns),
                              running.samples_per_second,
                              last.loss,
                              static_cast<double>(last.iteration_ns)};
  if (!running_->reported_figures) std::fill(figures.begin(), figures.end(), 0.0);
  figures = communicator_->sum(std::move(figures));
  running.measured_iteration_ns = static_cast<Nanoseconds>(figures[0]);
  running.measured_iteration_low_ns = static_cast<Nanoseconds>(figures[1]);
  running.measured_iteration_high_ns = static_cast<Nanoseconds>(figures[2]);
  running.samples_per_second = figures[3];
  last.loss = figures[4];
  last.iteration_ns = static_cast<Nanoseconds>(figures[5]);
  return all;
}

void RunRecorder::end_phase(const CacheCounts& cached) {
  if (!running_) return;
  past_ = agreed_past_and_running(cached);
  keep_spans();
  running_.reset();
}

void RunRecorder::keep_spans() {
  for (Span& span : trace_.spans) {
    span.rank = logical_ranks_[span.rank];
    whole_.spans.push_back(std::move(span));
  }
  trace_.spans.clear();
}

void RunRecorder::write(const std::vector<Past>& pasts, int end_step, RunSummary& run, TrainingPlan& executed) const {
  run.phases.clear();
  executed.phases.clear();
  for (const Past& past : pasts) {
    run.phases.push_back(past.summary);
    executed.phases.push_back(past.phase);
  }
  run.steps.clear();
  for (const StepRecord& step : last_) {
    if (step.step == end_step - 1) run.steps = {step};
  }
}

void RunRecorder::so_far(const CacheCounts& cached, RunSummary& run, TrainingPlan& executed) {
  write(agreed_past_and_running(cached), num_steps_, run, executed);
}

void RunRecorder::history(int num_steps, const CacheCounts& cached, RunSummary& run, TrainingPlan& executed) const {
  write(past_and_running(num_steps, running_ ? found_in_running_phase(cached) : std::vector<double>{}, own_peak()),
        num_steps, run, executed);
}

void RunRecorder::restore(const RunSummary& run, const TrainingPlan& executed, int step) {
  FROSTPIPE_CHECK(run.phases.size() <= executed.phases.size(), "every phase has a summary, those to come have none");
  past_.clear();
  for (std::size_t i = 0; i < run.phases.size(); ++i) past_.push_back({executed.phases[i], run.phases[i]});
  running_.reset();
  num_steps_ = step;
  last_.clear();
  if (!run.steps.empty()) last_.push_back(run.steps.back());
  trace_.spans.clear();
  std::erase_if(whole_.spans, [&](const Span& span) { return span.step >= step; });
}

Nanoseconds RunRecorder::time_since(int step) const {
  Nanoseconds total = 0;
  int num_known = 0;
  for (const StepRecord& record : last_) {
    if (record.step < step) continue;
    total += record.iteration_ns;
    ++num_known;
  }
  return num_known == 0 ? 0 : static_cast<Nanoseconds>(static_cast<double>(total) / num_known * (num_steps_ - step));
}

/// Returns all steps of the run on rank 0, and nothing elsewhere. If rank 0's file lacks steps, the ranks that have
/// written some send them, since hosts may have folders of their own.
std::vector<StepRecord> RunRecorder::steps_on_first_rank() const {
  const bool is_first = communicator_->rank() == 0;
  std::vector<StepRecord> steps = is_first ? log_.read(num_steps_) : std::vector<StepRecord>{};
  if (communicator_->sum({is_first && std::ssize(steps) < num_steps_ ? 1.0 : 0.0}).front() == 0) return steps;
  for (int rank = 1; rank < communicator_->world_size(); ++rank) {
    const bool sends = communicator_->rank() == rank && log_.has_written();
    const RunSummary part = run_from_json(
        communicator_->broadcast(
            to_json(RunSummary{.steps = sends ? log_.read(num_steps_) : std::vector<StepRecord>{}}), rank),
        "steps of rank " + std::to_string(rank));
    for (const StepRecord& step : part.steps) {
      if (is_first && between(steps, step.step, step.step + 1).empty())
        steps.insert(std::lower_bound(steps.begin(), steps.end(), step.step, before_step), step);
    }
  }
  return steps;
}

void RunRecorder::finish(const CacheCounts& cached, RunSummary& run, TrainingPlan& executed, Trace& whole_run) {
  end_phase(cached);
  std::vector<StepRecord> steps = steps_on_first_rank();
  // The times of all ranks are on one clock. They are shifted so that the earliest is 0.
  whole_run = Trace{.num_ranks = num_logical_ranks_, .spans = {}, .events = {}};
  for (int rank = 0; rank < communicator_->world_size(); ++rank) {
    const Trace part =
        trace_from_json(communicator_->broadcast(to_json(whole_), rank), "trace of rank " + std::to_string(rank));
    whole_run.spans.insert(whole_run.spans.end(), part.spans.begin(), part.spans.end());
    whole_run.events.insert(whole_run.events.end(), part.events.begin(), part.events.end());
  }
  if (communicator_->rank() != 0) return;
  start_at_zero(whole_run);
  write(past_, num_steps_, run, executed);
  run.steps = std::move(steps);
  for (std::size_t i = 0; i < past_.size(); ++i) {
    PhaseSummary& phase = run.phases[i];
    if (const auto known = between(run.steps, phase.from_step, phase.from_step + phase.num_steps); !known.empty())
      measure(phase, known);
    executed.phases[i].tokens = phase.tokens;
    phase.measured_timeline = step_of(whole_run, typical_step(phase, run.steps, traced_steps_));
  }
}

}  // namespace frostpipe
