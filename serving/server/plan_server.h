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
  /// How a worker is started: this program, which looks at is_serving_worker().
  std::vector<std::string> worker_command;
  /// By name, as their folders are now. Of every plan again, so that another plan's workers may load other weights.
  std::function<std::map<std::string, ServableModel>(const ServingPlan&)> open_models;
  /// Sentences for people: a worker was lost, a plan was replaced. From the server's thread.
  std::function<void(const std::string&)> note;
};

/// Serves the models of a plan by worker processes of this machine, one per virtual device. A thread of its own waits
/// for requests, reports and timers.
class PlanServer final : public ServedModels {
 public:
  /// Starts the workers.
  PlanServer(ServingPlan plan, PlanServerOptions options);
  /// Ends the workers at once.
  ~PlanServer() override;
  PlanServer(const PlanServer&) = delete;
  PlanServer& operator=(const PlanServer&) = delete;

  /// Whether all workers of the first plan have loaded their weights, after at most `limit_ns`. Throws InvalidInput or
  /// RuntimeFailure where one cannot. Nothing but this, names() and form_of() is asked before.
  bool wait_until_loaded(Nanoseconds limit_ns);

  std::vector<std::string> names() const override;
  const RequestForm& form_of(std::string_view model) const override;
  std::future<RequestAnswer> ask(std::string_view model, RequestInput input) override;
  bool is_ready(std::string_view model) const override;
  ModelCounters counters_of(std::string_view model) const override;
  std::vector<WorkerState> workers() const override;

  /// Starts the workers of another plan for the same models, which requests go to once these have loaded; the workers
  /// before them end when they have answered theirs. The models' folders may hold other weights than before. Throws
  /// InvalidInput where it serves other models, or while another plan is being loaded. A plan whose workers cannot load
  /// is given up, and a note says so.
  void replace(ServingPlan plan);
  /// The newest that has loaded.
  ServingPlan plan() const;
  /// The newest plan has loaded and no older one has requests left.
  bool is_settled() const;
  /// Times of finish_run() count from now on.
  void begin_run();
  /// What the newest plan's models have done with the requests since begin_run, in its order. Waits until all have
  /// their answers.
  std::vector<ServingRun> finish_run(Nanoseconds window_ns);

 private:
  /// A plan and its workers.
  struct Service {
    explicit Service(ServingPlan served) : plan(std::move(served)) {}
    ServingPlan plan;
    Nanoseconds begin_ns = 0;  // of the steady clock
    std::vector<std::unique_ptr<ModelServer>> models;
    bool has_loaded() const;
    bool is_idle() const;
  };
  struct Wanted {
    ServingPlan plan;
    std::map<std::string, ServableModel> models;
  };
  struct Arrival {
    std::size_t model = 0;
    Nanoseconds at_ns = 0;  // of the steady clock
    RequestInput input;
    std::promise<RequestAnswer> reply;
  };

  void run();
  void step();
  void advance(Service& service);
  void look_after(Service& service);
  void try_next();
  void wait() const;
  std::unique_ptr<Service> start_service(const Wanted& wanted) const;
  std::size_t number_of(std::string_view model) const;
  void require_replaceable(const ServingPlan& plan) const;
  void require_same_form(const std::map<std::string, ServableModel>& models) const;

  PlanServerOptions options_;
  std::vector<std::string> names_;
  std::map<std::string, ServableModel> models_;  // of the first plan; the forms are those of all
  WakeUp wake_up_;
  mutable std::mutex mutex_;  // of all below
  std::vector<ModelCounters> counters_;
  std::vector<Arrival> arrivals_;
  std::unique_ptr<Service> service_;           // requests go to it
  std::optional<Wanted> wanted_;               // to be started by the thread
  std::unique_ptr<Service> next_;              // is loading
  std::vector<std::unique_ptr<Service>> old_;  // answer what they have
  Nanoseconds run_begin_ns_ = 0;               // of the steady clock
  bool ends_ = false;
  std::exception_ptr trouble_;  // of the first plan
  std::condition_variable changed_;
  std::thread thread_;
};

}  // namespace frostpipe
