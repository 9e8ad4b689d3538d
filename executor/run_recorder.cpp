#include "executor/run_recorder.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "executor/job/seats.h"
#include "plan/partition.h"
#include "profiles/error.h"

namespace frostpipe {
namespace {

constexpr int kTracedStepsPerPhase = 256;

/// Value at `fraction` of the sorted list (nearest rank).
Nanoseconds quantile(std::vector<Nanoseconds> values, double fraction) {
  const auto index = static_cast<std::ptrdiff_t>(fraction * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), values.begin() + index, values.end());
  return values[index];
}

std::vector<double> by_layer(const CacheCounts& counts, std::size_t num_layers) {
  std::vector<double> values(num_layers + 1, 0.0);
  for (const auto& [layer, count] : counts.found) values[layer] = static_cast<double>(count);
  return values;
}

/// Fractions of all samples asked for.
std::vector<CacheFound> fractions(const std::vector<double>& found_by_layer) {
  const double all = std::accumulate(found_by_layer.begin(), found_by_layer.end(), 0.0);
  std::vector<CacheFound> found;
  for (std::size_t layer = 1; layer < found_by_layer.size(); ++layer) {
    if (found_by_layer[layer] > 0) found.push_back({static_cast<int>(layer), found_by_layer[layer] / all});
  }
  return found;
}

/// Of the phase's steps whose spans were kept, the one whose time is nearest to the median.
int typical_step(const PhaseSummary& phase, const std::vector<StepRecord>& steps) {
  const auto begin = steps.begin() + phase.from_step, end = begin + std::min(phase.num_steps, kTracedStepsPerPhase);
  return std::min_element(begin, end, [&](const StepRecord& a, const StepRecord& b) {
           return std::abs(a.iteration_ns - phase.measured_iteration_ns) < std::abs(b.iteration_ns - phase.measured_iteration_ns);
         })->step;
}

/// Shifts the trace's clock so that its earliest moment is 0.
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

RunRecorder::RunRecorder(ComputeDevice& device, const Model& model, const TrainingPlan& plan, int num_seats)
    : device_(device), model_(model), plan_(plan), num_seats_(num_seats) {
  trace_.num_ranks = whole_.num_ranks = num_seats;
}

void RunRecorder::join(Communicator& communicator, std::vector<int> seats) {
  keep_spans();
  communicator_ = &communicator;
  seats_ = std::move(seats);
}

void RunRecorder::begin_phase(const Phase& phase, Nanoseconds transformation_ns, const CacheCounts& cached) {
  end_phase(cached);
  running_ = {seated(phase, seats_, num_seats_), transformation_ns, steps_.size(), by_layer(cached, model_.layers.size())};
  device_.reset_peak();
}

Nanoseconds RunRecorder::median_iteration_ns(bool speaks) const {
  std::vector<Nanoseconds> times;
  for (std::size_t i = speaks ? running_->first_record : steps_.size(); i < steps_.size(); ++i) times.push_back(steps_[i].iteration_ns);
  const double median = times.empty() ? 0 : static_cast<double>(quantile(std::move(times), 0.5));
  return static_cast<Nanoseconds>(communicator_->sum({median}).front());
}

void RunRecorder::record_step(const StepRecord& step, bool speaks) {
  steps_.push_back(step);
  spoke_.push_back(speaks);
}

void RunRecorder::record_event(const char* name, Nanoseconds begin_ns, Nanoseconds end_ns) {
  whole_.events.push_back({seats_[communicator_->rank()], name, begin_ns, end_ns});
}

std::vector<double> RunRecorder::found_in_running_phase(const CacheCounts& cached) const {
  std::vector<double> found = by_layer(cached, model_.layers.size());
  std::transform(found.begin(), found.end(), running_->found_by_layer.begin(), found.begin(), std::minus<>());
  return found;
}

std::vector<double> RunRecorder::own_peak() const {
  std::vector<double> peaks(num_seats_, 0.0);
  peaks[seats_[communicator_->rank()]] = static_cast<double>(device_.peak_bytes());
  return peaks;
}

void RunRecorder::agree_on_steps() {
  std::vector<double> figures;
  for (std::size_t i = num_agreed_; i < steps_.size(); ++i) {
    const bool spoke = spoke_[i - num_agreed_];
    figures.push_back(spoke ? steps_[i].loss : 0);
    figures.push_back(spoke ? static_cast<double>(steps_[i].iteration_ns) : 0);
  }
  figures = communicator_->sum(std::move(figures));
  for (std::size_t i = num_agreed_; i < steps_.size(); ++i) {
    steps_[i].loss = figures[2 * (i - num_agreed_)];
    steps_[i].iteration_ns = static_cast<Nanoseconds>(figures[2 * (i - num_agreed_) + 1]);
  }
  num_agreed_ = steps_.size();
  spoke_.clear();
}

RunRecorder::Past RunRecorder::close(const PhaseRecord& record, std::size_t end, const std::vector<double>& found_by_layer, const std::vector<double>& peaks) const {
  std::vector<Nanoseconds> times, tokens;
  Past past{.phase = record.phase, .summary = {}};
  PhaseSummary& summary = past.summary;
  double samples = 0;
  for (std::size_t i = record.first_record; i < end; ++i) {
    times.push_back(steps_[i].iteration_ns);
    tokens.push_back(steps_[i].tokens);
    samples += steps_[i].samples;
  }
  summary.from_step = record.phase.from_step;
  summary.num_steps = static_cast<int>(end - record.first_record);
  summary.first_trainable_layer = record.phase.first_trainable_layer;
  summary.frozen_layers = frozen_blocks(model_, record.phase.first_trainable_layer);
  summary.stages = record.phase.layout.pipeline_parallel_size;
  summary.replicas = record.phase.layout.data_parallel_size;
  summary.num_micro_batches = record.phase.num_micro_batches;
  summary.schedule = record.phase.schedule;
  summary.partition = to_string(record.phase.partition);
  summary.tokens = static_cast<int>(quantile(tokens, 0.5));
  summary.measured_iteration_ns = quantile(times, 0.5);
  summary.measured_iteration_low_ns = quantile(times, 0.1);
  summary.measured_iteration_high_ns = quantile(times, 0.9);
  summary.transformation_ns = record.transformation_ns;
  summary.cache = record.phase.cache.on;
  const std::vector<CacheFound> found = fractions(found_by_layer);
  summary.cache_hit_fraction = fraction_at(found, summary.first_trainable_layer);
  for (const CacheFound& one : found) summary.cache_base_fraction += one.layer < summary.first_trainable_layer ? one.fraction : 0;
  const auto total = static_cast<double>(std::accumulate(times.begin(), times.end(), Nanoseconds{0}));
  summary.samples_per_second = total > 0 ? samples * 1e9 / total : 0;
  for (const double bytes : peaks) summary.measured_peak_memory_bytes.push_back(static_cast<Bytes>(bytes));
  past.phase.tokens = summary.tokens;
  past.phase.cache.found = found;
  return past;
}

std::vector<RunRecorder::Past> RunRecorder::past_and_running(const std::vector<double>& found_by_layer, const std::vector<double>& peaks) const {
  std::vector<Past> all = past_;
  if (running_ && steps_.size() > running_->first_record) all.push_back(close(*running_, steps_.size(), found_by_layer, peaks));
  return all;
}

void RunRecorder::end_phase(const CacheCounts& cached) {
  if (!running_) return;
  agree_on_steps();
  past_ = past_and_running(communicator_->sum(found_in_running_phase(cached)), communicator_->sum(own_peak()));
  keep_spans();
  running_.reset();
}

void RunRecorder::keep_spans() {
  for (Span& span : trace_.spans) {
    if (!running_ || span.step >= running_->phase.from_step + kTracedStepsPerPhase) continue;
    span.rank = seats_[span.rank];
    whole_.spans.push_back(std::move(span));
  }
  trace_.spans.clear();
}

namespace {

template <class Pasts>
void write(const Pasts& pasts, const std::vector<StepRecord>& steps, RunSummary& run, TrainingPlan& executed) {
  run.phases.clear();
  executed.phases.clear();
  for (const auto& past : pasts) {
    run.phases.push_back(past.summary);
    executed.phases.push_back(past.phase);
  }
  run.steps = steps;
}

}  // namespace

void RunRecorder::so_far(const CacheCounts& cached, RunSummary& run, TrainingPlan& executed) {
  agree_on_steps();
  std::vector<double> found = communicator_->sum(found_in_running_phase(cached)), peaks = communicator_->sum(own_peak());
  write(past_and_running(found, peaks), steps_, run, executed);
}

void RunRecorder::history(int num_steps, const CacheCounts& cached, RunSummary& run, TrainingPlan& executed) {
  std::vector<StepRecord> later(steps_.begin() + std::min<std::ptrdiff_t>(num_steps, std::ssize(steps_)), steps_.end());
  steps_.resize(std::min<std::size_t>(num_steps, steps_.size()));
  write(past_and_running(running_ ? found_in_running_phase(cached) : std::vector<double>{}, own_peak()), steps_, run, executed);
  steps_.insert(steps_.end(), later.begin(), later.end());
}

void RunRecorder::restore(const RunSummary& run, const TrainingPlan& executed) {
  FROSTPIPE_CHECK(run.phases.size() <= executed.phases.size(), "every phase has a summary, those to come have none");
  past_.clear();
  for (std::size_t i = 0; i < run.phases.size(); ++i) past_.push_back({executed.phases[i], run.phases[i]});
  running_.reset();
  steps_ = run.steps;
  num_agreed_ = steps_.size();
  spoke_.clear();
  trace_.spans.clear();
  std::erase_if(whole_.spans, [&](const Span& span) { return span.step >= static_cast<int>(steps_.size()); });
}

Nanoseconds RunRecorder::time_since(int step) const {
  Nanoseconds total = 0;
  for (const StepRecord& record : steps_) total += record.step >= step ? record.iteration_ns : 0;
  return total;
}

void RunRecorder::finish(const CacheCounts& cached, RunSummary& run, TrainingPlan& executed, Trace& whole_run) {
  end_phase(cached);
  // One trace on one clock: the earliest recorded moment of any rank is 0.
  whole_run = Trace{.num_ranks = num_seats_, .spans = {}, .events = {}};
  for (int rank = 0; rank < communicator_->world_size(); ++rank) {
    const Trace part = trace_from_json(communicator_->broadcast(to_json(whole_), rank), "trace of rank " + std::to_string(rank));
    whole_run.spans.insert(whole_run.spans.end(), part.spans.begin(), part.spans.end());
    whole_run.events.insert(whole_run.events.end(), part.events.begin(), part.events.end());
  }
  if (communicator_->rank() != 0) return;
  start_at_zero(whole_run);
  write(past_, steps_, run, executed);
  for (std::size_t i = 0; i < past_.size(); ++i) {
    run.phases[i].measured_timeline = step_of(whole_run, typical_step(run.phases[i], steps_));
  }
}

}  // namespace frostpipe
