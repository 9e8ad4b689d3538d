#pragma once
#include <condition_variable>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "serving/server/model_server.h"
#include "serving/server/wake_up.h"

namespace frostpipe {

struct PlanServerOptions {
  /// Command that starts a worker: this program, which checks is_serving_worker().
  std::vector<std::string> worker_command;
  /// Opens a plan's models, by name, from the current contents of their folders. It is called for every plan, so that a
  /// new plan's workers may load other weights.
  std::function<std::map<std::string, ServableModel>(const ServingPlan&)> open_models;
  /// Receives messages for the user, on the server's thread: a worker was lost, a plan was replaced.
  std::function<void(const std::string&)> note;
};

/// Serves the models of a plan by worker processes on this machine, one per virtual device. A thread of this object
/// waits for requests, reports and timers.
class PlanServer final : public ServedModels {
 public:
  /// Starts the workers.
  PlanServer(ServingPlan plan, PlanServerOptions options);
  /// Stops the workers at once.
  ~PlanServer() override;
  PlanServer(const PlanServer&) = delete;
  PlanServer& operator=(const PlanServer&) = delete;

  /// Waits for at most `limit_ns`; returns whether all workers of the first plan have loaded their weights. Throws
  /// InvalidInput or RuntimeFailure if one cannot load. Before it returns true, only names() and form_of() may be
  /// called.
  bool wait_until_loaded(Nanoseconds limit_ns);

  std::vector<std::string> names() const override;
  const RequestForm& form_of(std::string_view model) const override;
  std::future<RequestAnswer> ask(std::string_view model, RequestInput input) override;
  bool is_ready(std::string_view model) const override;
  int max_requests_at_once(std::string_view model) const override;
  ModelCounters counters_of(std::string_view model) const override;
  std::vector<WorkerState> workers() const override;

  /// Starts the workers of another plan for the same models. Once they have loaded, they get all requests, and the
  /// earlier workers end when they have answered theirs. The models' folders may hold new weights. Throws InvalidInput
  /// if the plan has other models, tokens, heads or another dtype, if other files of a folder than the weights have
  /// changed, and while another plan is being loaded. If its workers cannot load, the plan is abandoned, and a note
  /// says so.
  void replace(ServingPlan plan);
  /// Returns the newest plan that has loaded.
  ServingPlan plan() const;
  /// Begins the run whose results finish_run() returns. The time that workers compute counts until `window_ns` after
  /// this call; if that is not known yet, until the end of the window that finish_run() gets.
  void begin_run(std::optional<Nanoseconds> window_ns = std::nullopt);
  /// Returns the results of the newest plan's models for the requests since begin_run() or since the plan took over,
  /// whichever is later, in the plan's order. Their window ends `window_ns` after begin_run(). Waits until all have
  /// been answered.
  std::vector<ServingRun> finish_run(Nanoseconds window_ns);

 private:
  /// A plan and its workers.
  struct Service {
    explicit Service(ServingPlan served) : plan(std::move(served)) {}
    ServingPlan plan;
    Nanoseconds begin_ns = 0;  // on the steady clock
    std::vector<std::unique_ptr<ModelServer>> models;
    bool has_loaded() const;
    bool is_idle() const;
  };
  struct RequestedPlan {
    ServingPlan plan;
    std::map<std::string, ServableModel> models;
  };
  struct Arrival {
    std::size_t model = 0;
    Nanoseconds at_ns = 0;  // on the steady clock
    RequestInput input;
    std::promise<RequestAnswer> reply;
  };

  void run();
  void step();
  void advance(Service& service);
  void end_run_at(Nanoseconds end_ns);
  void try_next();
  void wait() const;
  std::unique_ptr<Service> start_service(const RequestedPlan& requested) const;
  std::size_t number_of(std::string_view model) const;
  void require_replaceable(const ServingPlan& plan) const;
  void require_same_form(const std::map<std::string, ServableModel>& models) const;

  PlanServerOptions options_;
  std::vector<std::string> names_;
  std::map<std::string, ServableModel> models_;  // of the first plan; all plans have the same forms
  WakeUp wake_up_;
  mutable std::mutex mutex_;  // guards everything below
  std::vector<ModelCounters> counters_;
  std::vector<Arrival> arrivals_;
  std::unique_ptr<Service> service_;           // receives new requests
  std::optional<RequestedPlan> requested_;     // to be started by the thread
  std::unique_ptr<Service> next_;              // is loading
  std::vector<std::unique_ptr<Service>> old_;  // finish their remaining requests
  Nanoseconds run_begin_ns_ = 0;               // on the steady clock
  std::optional<Nanoseconds> run_end_ns_;      // the same; not set if it is not known yet
  bool ends_ = false;
  std::exception_ptr failure_;  // error of the first plan
  std::condition_variable changed_;
  std::thread thread_;
};

}  // namespace frostpipe
