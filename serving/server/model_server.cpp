#include "serving/server/model_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "profiles/device_type.h"
#include "serving/simulator/simulate_serving.h"

namespace frostpipe {
namespace {

/// If a run has this many requests, the older half is forgotten, up to the oldest that has no answer yet.
constexpr std::int64_t kMaxRemembered = 2'000'000;
/// The timeline of a run has only its first batches.
constexpr std::size_t kMaxSpans = 20'000;
/// The largest lateness among this many batches is reserved from the objective for the next ones, but at least 1/50 and
/// at most 1/4 of it.
constexpr int kLatenessBatches = 200;
constexpr int kLeastPartOfObjective = 50, kLargestPartOfObjective = 4;
constexpr const char* kNoWorkerLeft = "no worker of the pool is left";

std::vector<int> layer_bounds(const ServedModel& model, const ServingPipeline& pipeline) {
  std::vector<int> bounds;
  for (const ServingPartition& partition : pipeline.partitions)
    bounds.push_back(model.blocks[partition.first_block].begin);
  bounds.push_back(model.blocks[pipeline.partitions.back().end_block - 1].end);
  return bounds;
}

BatchShape shape_of(BatchShape shape, const ServingPipeline& pipeline) {
  shape.max_requests = pipeline.batch_size;
  return shape;
}

void count_latency(Nanoseconds latency_ns, ModelCounters& counters) {
  counters.latency_sum_ns += latency_ns;
  counters.latency_counts.resize(std::size(kLatencyBoundsSeconds) + 1);
  for (std::size_t i = 0; i < std::size(kLatencyBoundsSeconds); ++i)
    if (1e-9 * static_cast<double>(latency_ns) <= kLatencyBoundsSeconds[i]) ++counters.latency_counts[i];
  ++counters.latency_counts.back();
}

/// Returns the largest factor, at least 1, by which all pools of a pipeline may take longer than planned such that a
/// planned batch is in time while the pipeline is idle, even if a quarter of the objective is kept free and the data
/// plane considers a request only a twelfth of the objective after its arrival. With a larger factor, no request would
/// be accepted any more.
double max_slowdown(const ServedModel& model, const ServingPipeline& pipeline) {
  static_assert(kLargestPartOfObjective == 4);
  Nanoseconds left_ns = model.objective_ns - model.objective_ns / 3, compute_ns = 0;
  for (const ServingPartition& partition : pipeline.partitions) {
    left_ns -= partition.latency_ns + pipeline.batch_size * partition.transfer_ns;
    compute_ns += partition.compute_ns.back();
  }
  return std::max(1.0, static_cast<double>(left_ns) / static_cast<double>(compute_ns));
}

int num_devices_of(const ServingPartition& partition) {
  return (partition.num_virtual_devices + partition.share - 1) / partition.share;
}

/// Returns the model's first device: each pool has devices of its own, in the plan's order.
int first_device_of(const ServingPlan& plan, const ServedModel& served) {
  int first = 0;
  for (const ServedModel& model : plan.models) {
    if (model.name == served.name) break;
    for (const ServingPipeline& pipeline : model.pipelines)
      for (const ServingPartition& partition : pipeline.partitions) first += num_devices_of(partition);
  }
  return first;
}

}  // namespace

ModelServer::ModelServer(const ServingPlan& plan, const ServedModel& served, const ServableModel& model,
                         const std::vector<std::string>& worker_command)
    : model_(model),
      engine_(plan, served, /*with_timeline=*/false),
      plane_(engine_),
      max_requests_at_once_(
          most_requests_at_once(plan, served, served.objective_ns / kLeastPartOfObjective, kMaxRequestsAtOnce)) {
  engine_.observer = this;
  engine_.run.model = served.name;
  engine_.run.objective_ns = served.objective_ns;
  engine_.kept_free_ns = served.objective_ns / kLeastPartOfObjective;
  int device = first_device_of(plan, served);
  for (std::size_t i = 0; i < served.pipelines.size(); ++i) {
    const ServingPipeline& pipeline = served.pipelines[i];
    buffers_.emplace_back();
    pools_.emplace_back();
    for (std::size_t partition = 0; partition < pipeline.partitions.size(); ++partition) {
      PartitionLoad load{.folders = model.folders,
                         .folder_bytes = model.folder_bytes,
                         .shared_layers = served.shared_prefix ? served.shared_prefix->layers : 0,
                         .layers = layer_bounds(served, pipeline),
                         .partition = static_cast<int>(partition),
                         .dtype = plan.dtype,
                         .device = model.device,
                         .device_index = device,
                         .threads = threads_of(pipeline.partitions[partition].device_class),
                         .shape = shape_of(model.shape, pipeline)};
      if (model.folders.empty()) load.compute_ns = pipeline.partitions[partition].compute_ns;
      device += num_devices_of(pipeline.partitions[partition]);
      pools_[i].emplace_back(engine_.pipelines[i][partition], worker_command, std::move(load),
                             fmt::format("{}'s pipeline {}, partition {}", served.name, i, partition),
                             max_slowdown(served, pipeline));
    }
  }
}

ModelServer::~ModelServer() {
  for (auto& [request, pending] : pending_)
    pending.reply.set_value({.kind = RequestAnswer::Kind::failed, .values = {}, .why = "the server has ended"});
}

bool ModelServer::has_loaded() const {
  return std::ranges::all_of(pools_, [](const std::vector<WorkerPool>& pools) {
    return std::ranges::all_of(pools, [](const WorkerPool& pool) { return pool.has_loaded(); });
  });
}

bool ModelServer::can_answer() const {
  return std::ranges::any_of(pools_, [](const std::vector<WorkerPool>& pools) {
    return std::ranges::all_of(pools, [](const WorkerPool& pool) { return pool.has_ready_worker(); });
  });
}

void ModelServer::advance_to(Nanoseconds now_ns) {
  engine_.queue.advance_to(now_ns, [&](const ServingEvent& event) { plane_.handle(event); });
  while (!arriving_.empty() && arriving_.begin()->first <= now_ns) {
    const std::int64_t batch = arriving_.begin()->second;
    arriving_.erase(arriving_.begin());
    order(batch);
  }
}

std::optional<Nanoseconds> ModelServer::next_ns() const {
  const std::optional<Nanoseconds> timer_ns = engine_.queue.next_ns();
  if (arriving_.empty()) return timer_ns;
  return timer_ns ? std::min(*timer_ns, arriving_.begin()->first) : arriving_.begin()->first;
}

void ModelServer::arrive(Nanoseconds at_ns, RequestInput input, std::promise<RequestAnswer> reply,
                         ModelCounters& counters) {
  forget_old();
  const std::int64_t request = engine_.arrive(at_ns);
  ++counters.requests;
  if (input.is_cut) {
    ++counters.cut;
    ++engine_.run.cut;
  }
  pending_.emplace(request, Pending{std::move(input), std::move(reply), &counters});
  plane_.handle({.kind = ServingEvent::Kind::arrival, .index = request});
}

ModelServer::Pending ModelServer::take_pending(std::int64_t request) {
  return std::move(pending_.extract(request).mapped());
}

void ModelServer::dropped(std::int64_t request, DropReason reason) {
  Pending pending = take_pending(request);
  ++pending.counters->dropped[std::string(to_string(reason))];
  pending.reply.set_value({.kind = RequestAnswer::Kind::dropped, .values = {}, .why = std::string(to_string(reason))});
}

void ModelServer::sent(int pipeline, std::int64_t first_request, int requests, const std::vector<RouteLeg>& legs) {
  const std::int64_t number = num_batches_++;
  Batch& batch = batches_[number];
  batch = {
      .pipeline = pipeline, .first_request = first_request, .lengths = {}, .legs = legs, .delay_ns = plane_.delay_ns()};
  batch.lengths.resize(requests);
  for (std::size_t partition = 0; partition < legs.size(); ++partition)
    pools_[pipeline][partition].reserve(number, legs[partition]);
  ModelCounters& counters = *pending_.at(first_request).counters;
  ++counters.batches;
  counters.requests_in_batches += requests;
  try {
    batch.buffer = take_buffer(pipeline);
  } catch (const RuntimeFailure& error) {
    return fail(number, error.what());  // later batches reuse the buffers of batches that have ended
  }
  fill(batch, buffers_[pipeline].all[*batch.buffer]);
  order(number);
}

int ModelServer::take_buffer(int pipeline) {
  Buffers& buffers = buffers_[pipeline];
  if (buffers.free.empty()) {
    buffers.all.push_back(BatchBuffer::make(shape_of(model_.shape, engine_.model.pipelines[pipeline])));
    return static_cast<int>(buffers.all.size()) - 1;
  }
  const int number = buffers.free.back();
  buffers.free.pop_back();
  return number;
}

void ModelServer::fill(Batch& batch, BatchBuffer& buffer) {
  auto token = buffer.tokens().begin();
  auto pixel = buffer.pixels().begin();
  for (int i = 0; i < batch.num_requests(); ++i) {
    const RequestInput& input = pending_.at(batch.first_request + i).input;
    const bool has_tokens = !input.tokens.empty();
    batch.lengths[i] = has_tokens ? static_cast<std::int64_t>(input.tokens.size()) : model_.shape.max_tokens;
    token = std::ranges::copy(input.tokens, token).out;
    if (input.pixels) pixel = std::ranges::copy(*input.pixels, pixel).out;
  }
}

void ModelServer::order(std::int64_t number) {
  const Batch& batch = batches_.at(number);
  const BatchBuffer& buffer = buffers_[batch.pipeline].all[*batch.buffer];
  WorkerPool& pool = pools_[batch.pipeline][batch.partition];
  if (!pool.order({.batch = number, .buffer = *batch.buffer, .ordered_ns = 0, .lengths = batch.lengths}, buffer))
    fail(number, kNoWorkerLeft);
}

std::vector<std::string> ModelServer::poll_workers() {
  std::vector<std::string> notes;
  for (std::vector<WorkerPool>& pools : pools_) {
    for (WorkerPool& pool : pools) {
      WorkerPool::Events events = pool.poll(engine_.queue.now());
      for (const auto& [device, report] : events.reports) take_report(pool, device, report);
      for (const std::int64_t batch : events.lost_batches) fail(batch, "its worker was lost");
      std::ranges::move(events.notes, std::back_inserter(notes));
    }
  }
  return notes;
}

void ModelServer::note_span(const Batch& batch, int device, Nanoseconds duration_ns) {
  PoolUse& use = engine_.run.pools[pool_at(batch, batch.partition).use];
  const Nanoseconds begin_ns = engine_.queue.now() - duration_ns;
  use.busy_ns += std::max<Nanoseconds>(0, std::min(engine_.queue.now(), window_end_ns_) - begin_ns);
  if (engine_.run.timeline.size() >= kMaxSpans) return;
  engine_.run.timeline.push_back({.kind = ServingSpan::Kind::compute,
                                  .pipeline = batch.pipeline,
                                  .partition = batch.partition,
                                  .virtual_device = device,
                                  .requests = batch.num_requests(),
                                  .begin_ns = begin_ns,
                                  .end_ns = engine_.queue.now()});
}

void ModelServer::take_report(WorkerPool& pool, int device, const BatchReport& report) {
  pool.release(report.batch, engine_.queue.now());
  if (!report.failure.empty()) return fail(report.batch, report.failure);
  const Batch& batch = batches_.at(report.batch);
  note_span(batch, device, report.end_ns - report.begin_ns);
  if (batch.partition + 1 == static_cast<int>(batch.legs.size())) return finish(report.batch);
  pass_on(report.batch);
}

/// Moves a batch to the next partition. Emulated devices have emulated network cards; others share memory.
void ModelServer::pass_on(std::int64_t number) {
  Batch& batch = batches_.at(number);
  const RouteLeg& leg = batch.legs[++batch.partition];
  if (!model_.folders.empty()) return order(number);
  const Pool& pool = pool_at(batch, batch.partition);
  const Nanoseconds late_ns = engine_.queue.now() - batch.legs[batch.partition - 1].compute_end_ns;
  const Nanoseconds begin_ns = std::max(engine_.queue.now(), leg.transfer_begin_ns + std::max<Nanoseconds>(0, late_ns));
  arriving_.emplace(begin_ns + pool.transfer_ns(batch.num_requests()) + pool.partition->latency_ns, number);
}

void ModelServer::finish(std::int64_t number) {
  const Batch batch = std::move(batches_.extract(number).mapped());
  Buffers& buffers = buffers_[batch.pipeline];
  const std::span<const double> answers = buffers.all[*batch.buffer].answers();
  const Nanoseconds now_ns = engine_.queue.now();
  for (int i = 0; i < batch.num_requests(); ++i) {
    Pending pending = take_pending(batch.first_request + i);
    ServedRequest& request = engine_.request(batch.first_request + i);
    request.end_ns = now_ns;
    const Nanoseconds latency_ns = now_ns - request.arrival_ns;
    ++(latency_ns <= engine_.model.objective_ns ? pending.counters->in_time : pending.counters->late);
    count_latency(latency_ns, *pending.counters);
    const auto size = static_cast<std::size_t>(model_.shape.heads) * model_.shape.answer_size;
    const auto own = answers.subspan(i * size, size);
    pending.reply.set_value({.values = std::vector<double>(own.begin(), own.end())});
  }
  buffers.free.push_back(*batch.buffer);
  learn_lateness(batch.delay_ns, now_ns - batch.legs.back().compute_end_ns);
}

void ModelServer::fail(std::int64_t number, const std::string& why) {
  const Batch batch = std::move(batches_.extract(number).mapped());
  for (WorkerPool& pool : pools_[batch.pipeline]) pool.release(number, engine_.queue.now());
  for (int i = 0; i < batch.num_requests(); ++i) {
    Pending pending = take_pending(batch.first_request + i);
    ServedRequest& request = engine_.request(batch.first_request + i);
    request.end_ns = engine_.queue.now();
    request.drop = DropReason::failed;
    ++pending.counters->failed;
    pending.reply.set_value({.kind = RequestAnswer::Kind::failed, .values = {}, .why = why});
  }
  if (batch.buffer) buffers_[batch.pipeline].free.push_back(*batch.buffer);
}

/// Learns how much of the objective to reserve: the sum of the largest delay and the largest lateness, since fast
/// workers do not compensate for a late timer.
void ModelServer::learn_lateness(Nanoseconds delay_ns, Nanoseconds late_ns) {
  largest_delay_ns_ = std::max(largest_delay_ns_, delay_ns);
  largest_lateness_ns_ = std::max(largest_lateness_ns_, late_ns);
  if (++num_learnt_from_ < kLatenessBatches) return;
  const Nanoseconds objective_ns = engine_.model.objective_ns;
  engine_.kept_free_ns = std::clamp(largest_delay_ns_ + largest_lateness_ns_, objective_ns / kLeastPartOfObjective,
                                    objective_ns / kLargestPartOfObjective);
  largest_delay_ns_ = largest_lateness_ns_ = 0;
  num_learnt_from_ = 0;
}

void ModelServer::forget_old() {
  if (static_cast<std::int64_t>(engine_.run.requests.size()) < kMaxRemembered) return;
  std::int64_t oldest = engine_.num_requests() - kMaxRemembered / 2;
  for (const auto& [request, pending] : pending_) oldest = std::min(oldest, request);
  engine_.forget_before(oldest);
}

void ModelServer::add_descriptors(std::vector<int>& descriptors) const {
  for (const std::vector<WorkerPool>& pools : pools_)
    for (const WorkerPool& pool : pools) pool.add_descriptors(descriptors);
}

void ModelServer::add_workers(std::vector<WorkerState>& workers) const {
  for (std::size_t pipeline = 0; pipeline < pools_.size(); ++pipeline) {
    for (std::size_t partition = 0; partition < pools_[pipeline].size(); ++partition) {
      const WorkerPool& pool = pools_[pipeline][partition];
      for (int device = 0; device < pool.size(); ++device) {
        workers.push_back({.model = name(),
                           .device_class = engine_.model.pipelines[pipeline].partitions[partition].device_class,
                           .pipeline = static_cast<int>(pipeline),
                           .partition = static_cast<int>(partition),
                           .virtual_device = device,
                           .is_ready = pool.is_ready(device),
                           .busy_ns = pool.busy_ns(device)});
      }
    }
  }
}

ServingRun ModelServer::run(Nanoseconds window_ns) const {
  ServingRun run = engine_.run;
  run.window_ns = window_ns;
  return run;
}

}  // namespace frostpipe
