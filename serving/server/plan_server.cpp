#include "serving/server/plan_server.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "base/steady_clock.h"

namespace frostpipe {
namespace {

/// Workers are checked at least this often, since a silent one may be stuck.
constexpr Nanoseconds kLongestWaitNs = 1'000'000'000;

timespec as_timespec(Nanoseconds duration_ns) {
  constexpr Nanoseconds kSecond = 1'000'000'000;
  return {.tv_sec = duration_ns / kSecond, .tv_nsec = duration_ns % kSecond};
}

std::vector<std::string> names_of(const ServingPlan& plan) {
  std::vector<std::string> names;
  for (const ServedModel& model : plan.models) names.push_back(model.name);
  return names;
}

std::string heads_text(const ServedModel& model) {
  if (!model.shared_prefix) return "one head";
  return fmt::format("{} heads behind {} shared layers", model.shared_prefix->heads, model.shared_prefix->layers);
}

/// Returns the part of a run from `begin_ns` on, relative to that time.
ServingRun since(Nanoseconds begin_ns, ServingRun run) {
  std::erase_if(run.requests, [&](const ServedRequest& request) { return request.arrival_ns < begin_ns; });
  for (ServedRequest& request : run.requests) {
    request.arrival_ns -= begin_ns;
    request.end_ns -= begin_ns;
    if (request.admitted_ns) *request.admitted_ns -= begin_ns;
  }
  for (ServingSpan& span : run.timeline) {
    span.begin_ns -= begin_ns;
    span.end_ns -= begin_ns;
  }
  return run;
}

}  // namespace

bool PlanServer::Service::has_loaded() const {
  return std::ranges::all_of(models, [](const auto& model) { return model->has_loaded(); });
}

bool PlanServer::Service::is_idle() const {
  return std::ranges::all_of(models, [](const auto& model) { return model->is_idle(); });
}

PlanServer::PlanServer(ServingPlan plan, PlanServerOptions options)
    : options_(std::move(options)),
      names_(names_of(plan)),
      models_(options_.open_models(plan)),
      counters_(names_.size()),
      requested_(RequestedPlan{std::move(plan), models_}) {
  thread_ = std::thread([this] { run(); });
}

bool PlanServer::wait_until_loaded(Nanoseconds limit_ns) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::nanoseconds(limit_ns), [&] { return service_ || failure_; });
  if (failure_) std::rethrow_exception(failure_);
  return service_ != nullptr;
}

PlanServer::~PlanServer() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wake_up_.wake();
  thread_.join();
}

std::vector<std::string> PlanServer::names() const { return names_; }

std::size_t PlanServer::number_of(std::string_view model) const {
  const auto found = std::ranges::find(names_, model);
  FROSTPIPE_CHECK(found != names_.end(), "only models of the plan are asked");
  return static_cast<std::size_t>(found - names_.begin());
}

const RequestForm& PlanServer::form_of(std::string_view model) const {
  return models_.at(names_[number_of(model)]).form;
}

std::future<RequestAnswer> PlanServer::ask(std::string_view model, RequestInput input) {
  Arrival arrival{.model = number_of(model), .input = std::move(input), .reply = {}};
  std::future<RequestAnswer> answer = arrival.reply.get_future();
  {
    const std::lock_guard lock(mutex_);
    arrival.at_ns = steady_now_ns();
    arrivals_.push_back(std::move(arrival));
  }
  wake_up_.wake();
  return answer;
}

bool PlanServer::is_ready(std::string_view model) const {
  const std::lock_guard lock(mutex_);
  return service_->models[number_of(model)]->can_answer();
}

int PlanServer::max_requests_at_once(std::string_view model) const {
  const std::lock_guard lock(mutex_);
  return service_->models[number_of(model)]->max_requests_at_once();
}

ModelCounters PlanServer::counters_of(std::string_view model) const {
  const std::lock_guard lock(mutex_);
  const std::size_t number = number_of(model);
  ModelCounters counters = counters_[number];
  const auto add = [&](const Service& service) {
    counters.waiting += service.models[number]->num_waiting();
    counters.computing += service.models[number]->num_computing();
  };
  add(*service_);
  for (const auto& service : old_) add(*service);
  return counters;
}

std::vector<WorkerState> PlanServer::workers() const {
  const std::lock_guard lock(mutex_);
  std::vector<WorkerState> workers;
  for (const auto& model : service_->models) model->add_workers(workers);
  return workers;
}

void PlanServer::require_replaceable(const ServingPlan& plan) const {
  if (names_of(plan) != names_)
    throw InvalidInput(fmt::format("the new plan serves {}, not {}; it is not used", fmt::join(names_of(plan), ", "),
                                   fmt::join(names_, ", ")));
  for (std::size_t i = 0; i < plan.models.size(); ++i) {
    const ServedModel &now = service_->plan.models[i], &next = plan.models[i];
    if (next.tokens != now.tokens)
      throw InvalidInput(fmt::format("the new plan is for {} tokens of {}, not {}; it is not used", next.tokens,
                                     names_[i], now.tokens));
    if (next.shared_prefix != now.shared_prefix)
      throw InvalidInput(fmt::format("the new plan has {} of {}, not {}; it is not used", heads_text(next), names_[i],
                                     heads_text(now)));
  }
  // Answers would differ, and buffers hold activations of one dtype.
  if (plan.dtype != service_->plan.dtype)
    throw InvalidInput(fmt::format("the new plan computes in {}, not {}; it is not used", to_string(plan.dtype),
                                   to_string(service_->plan.dtype)));
  if (requested_ || next_) throw InvalidInput("another plan is being loaded; the new one is not used");
}

/// Throws InvalidInput unless the files that determine the models' forms, all but the weights, are unchanged: requests
/// made for one plan may reach the next one, and HTTP formats its answers.
void PlanServer::require_same_form(const std::map<std::string, ServableModel>& models) const {
  for (const auto& [name, model] : models)
    for (std::size_t i = 0; i < model.folder_bytes.size(); ++i)
      if (model.folder_bytes[i].others != models_.at(name).folder_bytes[i].others)
        throw InvalidInput(
            model.folders[i],
            "must hold the same config.json and tokenizer as when `serving run` began, since only the weights may "
            "change; to serve these files, start `serving run` again",
            "overwritten");
}

void PlanServer::replace(ServingPlan plan) {
  {
    const std::lock_guard lock(mutex_);
    require_replaceable(plan);
  }
  std::map<std::string, ServableModel> models = options_.open_models(plan);  // slow
  require_same_form(models);
  {
    const std::lock_guard lock(mutex_);
    require_replaceable(plan);  // another call may have requested its plan meanwhile
    requested_ = RequestedPlan{std::move(plan), std::move(models)};
  }
  wake_up_.wake();
}

ServingPlan PlanServer::plan() const {
  const std::lock_guard lock(mutex_);
  return service_->plan;
}

void PlanServer::begin_run(std::optional<Nanoseconds> window_ns) {
  const std::lock_guard lock(mutex_);
  run_begin_ns_ = steady_now_ns();
  if (window_ns) end_run_at(run_begin_ns_ + *window_ns);
}

void PlanServer::end_run_at(Nanoseconds end_ns) {
  run_end_ns_ = end_ns;
  for (const auto& model : service_->models) model->end_window(end_ns - service_->begin_ns);
}

std::vector<ServingRun> PlanServer::finish_run(Nanoseconds window_ns) {
  std::unique_lock lock(mutex_);
  if (!run_end_ns_) end_run_at(run_begin_ns_ + window_ns);
  changed_.wait(lock, [&] { return arrivals_.empty() && service_->is_idle() && old_.empty(); });
  const Nanoseconds begin_ns = std::max(run_begin_ns_, service_->begin_ns);
  std::vector<ServingRun> runs;
  for (const auto& model : service_->models)
    runs.push_back(since(begin_ns - service_->begin_ns, model->run(run_begin_ns_ + window_ns - begin_ns)));
  return runs;
}

/// Runs the server's thread. Errors of the first plan are thrown by wait_until_loaded(); those of later plans, and lack
/// of system resources, become notes.
void PlanServer::run() {
  while (true) {
    try {
      {
        const std::lock_guard lock(mutex_);
        if (ends_) break;
        step();
        if (failure_) break;
      }
      changed_.notify_all();
      wait();
    } catch (const std::exception& error) {
      options_.note(fmt::format("the server goes on after a failure: {}", error.what()));
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
  const std::lock_guard lock(mutex_);
  next_.reset();
  old_.clear();
  service_.reset();
  for (Arrival& arrival : arrivals_)
    arrival.reply.set_value({.kind = RequestAnswer::Kind::failed, .values = {}, .why = "the server has ended"});
  changed_.notify_all();
}

void PlanServer::step() {
  try_next();
  if (!service_) return;
  advance(*service_);
  for (Arrival& arrival : std::exchange(arrivals_, {})) {
    // A new plan may have taken over since the request arrived.
    const Nanoseconds at_ns = std::max<Nanoseconds>(0, arrival.at_ns - service_->begin_ns);
    service_->models[arrival.model]->arrive(at_ns, std::move(arrival.input), std::move(arrival.reply),
                                            counters_[arrival.model]);
  }
  for (const auto& service : old_) advance(*service);
  std::erase_if(old_, [](const auto& service) { return service->is_idle(); });
}

void PlanServer::advance(Service& service) {
  const Nanoseconds now_ns = steady_now_ns() - service.begin_ns;
  for (const auto& model : service.models) {
    model->advance_to(now_ns);
    for (const std::string& note : model->poll_workers()) options_.note(note);
  }
}

/// Starts the requested plan, and switches to it once it has loaded.
void PlanServer::try_next() {
  try {
    if (requested_) next_ = start_service(*std::exchange(requested_, std::nullopt));
    if (!next_) return;
    advance(*next_);
    if (!next_->has_loaded()) return;
    if (service_) {
      old_.push_back(std::move(service_));
      options_.note("the new plan's workers have loaded: requests go to them from now on");
    }
    service_ = std::move(next_);
  } catch (const std::exception& error) {
    next_.reset();
    if (service_)
      options_.note(fmt::format("the new plan cannot be served, so the previous one stays in use: {}", error.what()));
    else
      failure_ = std::current_exception();
  }
}

std::unique_ptr<PlanServer::Service> PlanServer::start_service(const RequestedPlan& requested) const {
  auto service = std::make_unique<Service>(requested.plan);
  service->begin_ns = steady_now_ns();
  for (const ServedModel& model : service->plan.models)
    service->models.push_back(
        std::make_unique<ModelServer>(service->plan, model, requested.models.at(model.name), options_.worker_command));
  if (run_end_ns_)
    for (const auto& model : service->models) model->end_window(*run_end_ns_ - service->begin_ns);
  return service;
}

/// Waits until a request arrives, a worker sends a message, or an event is due.
void PlanServer::wait() const {
  std::vector<pollfd> entries{{wake_up_.descriptor(), POLLIN, 0}};
  Nanoseconds wait_ns = kLongestWaitNs;
  {
    const std::lock_guard lock(mutex_);
    std::vector<int> descriptors;
    const auto add = [&](const Service& service) {
      for (const auto& model : service.models) {
        model->add_descriptors(descriptors);
        if (const auto due_ns = model->next_ns())
          wait_ns = std::min(wait_ns, std::max<Nanoseconds>(0, service.begin_ns + *due_ns - steady_now_ns()));
      }
    };
    for (const Service* service : {service_.get(), next_.get()})
      if (service) add(*service);
    for (const auto& service : old_) add(*service);
    for (const int descriptor : descriptors) entries.push_back({descriptor, POLLIN, 0});
  }
  const timespec limit = as_timespec(wait_ns);
  ppoll(entries.data(), entries.size(), &limit, nullptr);
  wake_up_.clear();
}

}  // namespace frostpipe
