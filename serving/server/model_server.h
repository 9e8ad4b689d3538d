#pragma once
#include <future>
#include <limits>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "serving/data_plane/reserved_plane.h"
#include "serving/plan/serving_plan.h"
#include "serving/server/servable_model.h"
#include "serving/server/worker_pool.h"

namespace frostpipe {

/// Serves one model of a plan: the simulator's reserved data plane decides in real time, and workers compute. Their
/// reports correct the reservations. For use by one thread. Times are relative to the start of the plan's service.
///
/// The batches that were sent to a lost worker are lost; one that is only reserved for it goes to another worker of its
/// pool. A lost worker is restarted (WorkerPool).
class ModelServer final : private ServingObserver {
 public:
  /// Starts the workers. `plan` must outlive the server.
  ModelServer(const ServingPlan& plan, const ServedModel& served, const ServableModel& model,
              const std::vector<std::string>& worker_command);
  /// Answers the requests that have no answer yet with `failed`.
  ~ModelServer() override;

  /// True when all workers have loaded.
  bool has_loaded() const;
  /// True if some pipeline has a worker for each of its partitions.
  bool can_answer() const;
  /// Sets the current time, and processes everything that is due.
  void advance_to(Nanoseconds now_ns);
  /// Returns the time of the next event, if there is one.
  std::optional<Nanoseconds> next_ns() const;
  /// Adds a request, which arrived at `at_ns`, not later than the current time.
  void arrive(Nanoseconds at_ns, RequestInput input, std::promise<RequestAnswer> reply, ModelCounters& counters);
  /// Processes workers' messages and losses; returns notes for the user. Throws RuntimeFailure if a worker cannot load.
  std::vector<std::string> poll_workers();
  /// True if no request waits or is being computed.
  bool is_idle() const { return pending_.empty(); }

  /// Returns the largest number of requests, up to kMaxRequestsAtOnce, that the plan can answer in time together.
  int max_requests_at_once() const { return max_requests_at_once_; }
  const std::string& name() const { return engine_.model.name; }
  void add_descriptors(std::vector<int>& descriptors) const;
  void add_workers(std::vector<WorkerState>& workers) const;
  std::int64_t num_waiting() const { return plane_.num_waiting(); }
  std::int64_t num_computing() const { return static_cast<std::int64_t>(pending_.size()) - plane_.num_waiting(); }
  /// Sets the time after which computing no longer counts in run().
  void end_window(Nanoseconds at_ns) { window_end_ns_ = at_ns; }
  /// Returns the results so far; of the requests at least the last million, and usually at most two million.
  ServingRun run(Nanoseconds window_ns) const;

 private:
  struct Pending {
    RequestInput input;
    std::promise<RequestAnswer> reply;
    ModelCounters* counters = nullptr;
  };
  /// A batch in progress.
  struct Batch {
    int pipeline = 0;
    std::int64_t first_request = 0;
    std::vector<std::int64_t> lengths;  // tokens, by request
    std::vector<RouteLeg> legs;
    Nanoseconds delay_ns = 0;   // lateness of its timer
    int partition = 0;          // its current or next partition
    std::optional<int> buffer;  // not set if there was no memory for one
    int num_requests() const { return static_cast<int>(lengths.size()); }
  };
  /// The batch buffers of a pipeline.
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
  std::multimap<Nanoseconds, std::int64_t> arriving_;  // emulated transfers: batches by their time of arrival
  std::int64_t num_batches_ = 0;
  // Largest delays of the last batches: of sending, and of answering, relative to the reservations.
  Nanoseconds largest_delay_ns_ = 0, largest_lateness_ns_ = 0;
  int num_learnt_from_ = 0;
  const int max_requests_at_once_;
  Nanoseconds window_end_ns_ = std::numeric_limits<Nanoseconds>::max();
};

}  // namespace frostpipe
