#pragma once
#include <array>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "serving/plan/serving_plan.h"
#include "serving/server/servable_model.h"
#include "serving/server/worker_pool.h"
#include "serving/simulator/reserved_plane.h"

namespace frostpipe {

/// One model of a plan while it is served: the reserved data plane of the simulator decides, on a clock that runs by
/// itself, and workers compute. What they report corrects what is reserved. Of one thread. Times count from the begin
/// of the plan's service.
///
/// A batch that a lost worker had is lost; one that was on its way to it goes to another of its pool. A lost worker is
/// started again (WorkerPool).
class ModelServer final : private ServingObserver {
 public:
  /// Starts the workers. `plan` outlives it.
  ModelServer(const ServingPlan& plan, const ServedModel& served, const ServableModel& model,
              const std::vector<std::string>& worker_command);
  /// Requests that have no answer are told so.
  ~ModelServer() override;

  /// All workers have loaded. Throws RuntimeFailure or InvalidInput where one cannot.
  bool has_loaded() const;
  /// Some pipeline has a worker for each of its partitions.
  bool can_answer() const;
  /// The time of all that follows; what is due happens.
  void advance_to(Nanoseconds now_ns);
  /// When something is due next.
  std::optional<Nanoseconds> next_ns() const;
  /// A request that arrived at `at_ns`, which is not later than the time.
  void arrive(Nanoseconds at_ns, RequestInput input, std::promise<RequestAnswer> reply, ModelCounters& counters);
  /// Takes what workers say, and notes who is gone. Returns sentences for people.
  std::vector<std::string> look_after_workers();
  /// No request waits or is computed.
  bool is_idle() const { return pending_.empty(); }

  const std::string& name() const { return engine_.model.name; }
  void add_descriptors(std::vector<int>& descriptors) const;
  void add_workers(std::vector<WorkerState>& workers) const;
  std::int64_t num_waiting() const { return plane_.num_waiting(); }
  std::int64_t num_computing() const { return static_cast<std::int64_t>(pending_.size()) - plane_.num_waiting(); }
  /// What has happened so far; the last kMostRemembered requests.
  ServingRun run(Nanoseconds window_ns) const;

 private:
  struct Pending {
    RequestInput input;
    std::promise<RequestAnswer> reply;
    ModelCounters* counters = nullptr;
  };
  /// A batch on its way.
  struct Batch {
    int pipeline = 0;
    std::int64_t first_request = 0;
    std::vector<std::int64_t> lengths;  // tokens, by request
    std::vector<RouteLeg> legs;
    Nanoseconds delay_ns = 0;   // of its timer
    int partition = 0;          // where it is, or goes
    std::optional<int> buffer;  // none: there was no room for one
    int num_requests() const { return static_cast<int>(lengths.size()); }
  };
  /// Of a pipeline.
  struct Buffers {
    std::vector<BatchBuffer> all;
    std::vector<int> free;
  };

  void sent(int pipeline, std::int64_t first_request, int requests, const std::vector<RouteLeg>& legs) override;
  void dropped(std::int64_t request, DropReason reason) override;
  int take_buffer(int pipeline);
  void fill(Batch& batch, BatchBuffer& buffer);
  void order(std::int64_t number);
  void pass_on(std::int64_t number);
  void take_report(WorkerPool& pool, int device, const BatchReport& report);
  void note_span(const Batch& batch, int device, Nanoseconds duration_ns);
  void finish(std::int64_t number);
  void fail(std::int64_t number, const std::string& why);
  void learn_lateness(Nanoseconds delay_ns, Nanoseconds late_ns);
  void forget_old();
  Pending take_pending(std::int64_t request);
  Pool& pool_at(const Batch& batch, int partition) { return engine_.pipelines[batch.pipeline][partition]; }

  ServableModel model_;
  ServingEngine engine_;
  ReservedPlane plane_;
  std::vector<std::vector<WorkerPool>> pools_;  // [pipeline][partition]
  std::vector<Buffers> buffers_;                // by pipeline
  std::unordered_map<std::int64_t, Pending> pending_;
  std::unordered_map<std::int64_t, Batch> batches_;
  std::multimap<Nanoseconds, std::int64_t> arriving_;  // emulated transfers: batches by when they are there
  std::int64_t num_batches_ = 0;
  // Of the last batches: when they set out, and when they were answered, against what was reserved.
  Nanoseconds largest_delay_ns_ = 0, largest_lateness_ns_ = 0;
  int num_learnt_from_ = 0;
};

}  // namespace frostpipe
