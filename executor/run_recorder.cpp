#include "executor/run_recorder.h"

#include <algorithm>
#include <functional>
#include <numeric>

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

}  // namespace

RunRecorder::RunRecorder(Communicator& communicator, ComputeDevice& device, const Model& model, const TrainingPlan& plan)
    : communicator_(communicator), device_(device), model_(model), plan_(plan) {
  trace_.num_ranks = whole_.num_ranks = communicator.world_size();
}

void RunRecorder::begin_phase(const Phase& phase, Nanoseconds transformation_ns, const CacheCounts& cached) {
  end_phase(cached);
  phases_.push_back({phase, transformation_ns, steps_.size(), by_layer(cached, model_.layers.size()), {}});
  device_.reset_peak();
}

Nanoseconds RunRecorder::median_iteration_ns() const {
  std::vector<Nanoseconds> times;
  for (std::size_t i = phases_.back().first_record; i < steps_.size(); ++i) times.push_back(static_cast<Nanoseconds>(spoken_ns_[i]));
  const double median = times.empty() ? 0 : static_cast<double>(quantile(std::move(times), 0.5));
  return static_cast<Nanoseconds>(communicator_.sum({median}).front());
}

void RunRecorder::end_phase(const CacheCounts& cached) {
  if (phases_.empty()) return;
  PhaseRecord& record = phases_.back();
  const std::vector<double> now = by_layer(cached, model_.layers.size());
  std::transform(now.begin(), now.end(), record.found_by_layer.begin(), record.found_by_layer.begin(), std::minus<>());
  record.peak_bytes.assign(communicator_.world_size(), 0.0);
  record.peak_bytes[communicator_.rank()] = static_cast<double>(device_.peak_bytes());
  const int last_traced = record.phase.from_step + kTracedStepsPerPhase;
  for (Span& span : trace_.spans) {
    if (span.step < last_traced) whole_.spans.push_back(std::move(span));
  }
  trace_.spans.clear();
}

void RunRecorder::record_step(const StepRecord& step, double loss_share, bool speaks) {
  steps_.push_back(step);
  loss_shares_.push_back(loss_share);
  spoken_ns_.push_back(speaks ? static_cast<double>(step.iteration_ns) : 0);
}

void RunRecorder::record_event(const char* name, Nanoseconds begin_ns, Nanoseconds end_ns) {
  whole_.events.push_back({communicator_.rank(), name, begin_ns, end_ns});
}

void RunRecorder::finish(const CacheCounts& cached, RunSummary& run, TrainingPlan& executed, Trace& whole_run) {
  end_phase(cached);
  const std::vector<double> losses = communicator_.sum(loss_shares_);
  const std::vector<double> times = communicator_.sum(spoken_ns_);
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    steps_[i].loss = losses[i];
    steps_[i].iteration_ns = static_cast<Nanoseconds>(times[i]);
  }
  for (PhaseRecord& record : phases_) {
    record.peak_bytes = communicator_.sum(record.peak_bytes);
    record.found_by_layer = communicator_.sum(std::move(record.found_by_layer));
  }

  // One trace on one clock: the earliest recorded moment of any rank is 0.
  whole_run = Trace{.num_ranks = communicator_.world_size(), .spans = {}, .events = {}};
  for (int rank = 0; rank < communicator_.world_size(); ++rank) {
    const Trace part = trace_from_json(communicator_.broadcast(to_json(whole_), rank), "trace of rank " + std::to_string(rank));
    whole_run.spans.insert(whole_run.spans.end(), part.spans.begin(), part.spans.end());
    whole_run.events.insert(whole_run.events.end(), part.events.begin(), part.events.end());
  }
  if (communicator_.rank() != 0) return;
  Nanoseconds origin = whole_run.spans.empty() ? 0 : whole_run.spans.front().begin_ns;
  for (const Span& span : whole_run.spans) origin = std::min(origin, span.begin_ns);
  for (const Event& event : whole_run.events) origin = std::min(origin, event.begin_ns);
  for (Span& span : whole_run.spans) {
    span.begin_ns -= origin;
    span.end_ns -= origin;
  }
  for (Event& event : whole_run.events) {
    event.begin_ns -= origin;
    event.end_ns -= origin;
  }

  executed.phases.clear();
  for (std::size_t p = 0; p < phases_.size(); ++p) {
    const PhaseRecord& record = phases_[p];
    const std::size_t end = p + 1 < phases_.size() ? phases_[p + 1].first_record : steps_.size();
    if (end == record.first_record) continue;
    std::vector<Nanoseconds> times, tokens;
    PhaseSummary summary;
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
    const std::vector<CacheFound> found = fractions(record.found_by_layer);
    summary.cache_hit_fraction = fraction_at(found, summary.first_trainable_layer);
    for (const CacheFound& one : found) summary.cache_base_fraction += one.layer < summary.first_trainable_layer ? one.fraction : 0;
    summary.samples_per_second = samples * 1e9 / static_cast<double>(std::accumulate(times.begin(), times.end(), Nanoseconds{0}));
    for (const double bytes : record.peak_bytes) summary.measured_peak_memory_bytes.push_back(static_cast<Bytes>(bytes));
    const std::size_t traced = std::min(end, record.first_record + kTracedStepsPerPhase);
    const auto typical = std::min_element(steps_.begin() + record.first_record, steps_.begin() + traced, [&](const StepRecord& a, const StepRecord& b) {
      return std::abs(a.iteration_ns - summary.measured_iteration_ns) < std::abs(b.iteration_ns - summary.measured_iteration_ns);
    });
    summary.measured_timeline = step_of(whole_run, typical->step);
    run.phases.push_back(std::move(summary));

    Phase phase = record.phase;
    phase.tokens = run.phases.back().tokens;
    phase.cache.found = found;
    executed.phases.push_back(std::move(phase));
  }
  run.steps = steps_;
}

}  // namespace frostpipe
