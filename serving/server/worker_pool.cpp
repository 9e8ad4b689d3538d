#include "serving/server/worker_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/steady_clock.h"

namespace frostpipe {
namespace {

constexpr int kMaxLosses = 3;
/// A time so late that nothing is in time, and early enough for sums to stay within 64 bits.
constexpr Nanoseconds kForEver = std::numeric_limits<Nanoseconds>::max() / 4;
/// A worker that takes this many times the planned duration for its oldest batch, and at least kLeastStuckNs, is stuck.
constexpr int kStuckFactor = 20;
constexpr Nanoseconds kLeastStuckNs = 10'000'000'000;
constexpr Nanoseconds kStartAgainAfterNs = 1'000'000'000;
/// A pool is slower than planned if half of its last kSlowdownBatches batches took at least kLeastSlowdown times the
/// planned time. The median is used, since single batches are delayed on any machine; smaller differences are left to
/// the part of the objective that is kept free.
constexpr std::size_t kSlowdownBatches = 15;
constexpr double kLeastSlowdown = 1.2;

}  // namespace

WorkerPool::WorkerPool(Pool& reserved, std::vector<std::string> command, PartitionLoad load, std::string name,
                       double max_slowdown)
    : reserved_(reserved),
      command_(std::move(command)),
      load_(std::move(load)),
      name_(std::move(name)),
      workers_(reserved.device_until.size()),
      start_again_ns_(workers_.size()),
      reservations_(workers_.size()),
      losses_(workers_.size()),
      busy_ns_(workers_.size()),
      max_slowdown_(max_slowdown) {
  for (int device = 0; device < size(); ++device) start(device);
}

std::string WorkerPool::name_of(int device) const { return fmt::format("worker {} of {}", device, name_); }

void WorkerPool::start(int device) {
  reserved_.device_until[device] = kForEver;
  PartitionLoad load = load_;
  load.device_index += device / reserved_.partition->share;
  workers_[device] = std::make_unique<WorkerProcess>(command_, load, name_of(device));
}

WorkerPool::Events WorkerPool::poll(Nanoseconds now_ns) {
  Events events;
  for (int device = 0; device < size(); ++device) {
    if (start_again_ns_[device] && steady_now_ns() >= *start_again_ns_[device]) start_again(device, events);
    if (!workers_[device]) continue;
    while (const auto message = workers_[device]->receive()) handle(device, *message, now_ns, events);
    workers_[device]->send_orders();
    if (workers_[device]->is_gone()) {
      lose(device, "was lost", events);
    } else if (is_stuck(device)) {
      lose(device, "did not answer", events);
    }
  }
  return events;
}

void WorkerPool::handle(int device, const FromWorker& message, Nanoseconds now_ns, Events& events) {
  if (message.loaded && !message.loaded->empty()) {
    if (losses_[device] == 0) throw RuntimeFailure(fmt::format("{}: {}", name_of(device), *message.loaded));
    events.notes.push_back(fmt::format("{}: {}", name_of(device), *message.loaded));
  } else if (message.loaded) {
    workers_[device]->is_loaded = true;
    correct(device, now_ns);
  }
  if (!message.report) return;
  losses_[device] = 0;
  const Nanoseconds duration_ns = message.report->end_ns - message.report->begin_ns;
  busy_ns_[device] += duration_ns;
  auto& orders = workers_[device]->orders;
  const auto reported = std::ranges::find(orders, message.report->batch, &OrderedBatch::batch);
  if (reported != orders.end()) {
    if (message.report->failure.empty())
      learn_slowdown(static_cast<double>(duration_ns) / static_cast<double>(reported->planned_ns), events);
    orders.erase(reported);
  }
  if (!orders.empty()) orders.front().first_ns = steady_now_ns();
  events.reports.emplace_back(device, *message.report);
}

void WorkerPool::lose(int device, const std::string& how, Events& events) {
  WorkerProcess& worker = *workers_[device];
  if (losses_[device] == 0 && !worker.is_loaded)
    throw RuntimeFailure(fmt::format("{} ended before it had loaded its part of the model", name_of(device)));
  for (const OrderedBatch& order : worker.orders) events.lost_batches.push_back(order.batch);
  const bool starts_again = ++losses_[device] <= kMaxLosses;
  events.notes.push_back(fmt::format("{} (process {}) {}, with {} batches; {}", name_of(device), worker.pid(), how,
                                     worker.orders.size(),
                                     starts_again ? "it is started again" : "it is given up, and the others go on"));
  reserved_.device_until[device] = kForEver;
  workers_[device].reset();
  if (starts_again) start_again(device, events);
}

void WorkerPool::start_again(int device, Events& events) {
  try {
    start(device);
    start_again_ns_[device].reset();
  } catch (const RuntimeFailure& error) {
    if (!start_again_ns_[device])
      events.notes.push_back(
          fmt::format("{} cannot be started, and is tried again every second: {}", name_of(device), error.what()));
    start_again_ns_[device] = steady_now_ns() + kStartAgainAfterNs;
  }
}

bool WorkerPool::is_stuck(int device) const {
  const auto& orders = workers_[device]->orders;
  if (orders.empty()) return false;
  const Nanoseconds limit_ns = std::max(kLeastStuckNs, kStuckFactor * orders.front().planned_ns);
  return steady_now_ns() - orders.front().first_ns > limit_ns;
}

/// Scales the planned times by the median of the last batches, so that no more requests are accepted than can be
/// answered in time. The limit leaves an idle pool able to take a batch, which is measured again: no slowdown lasts for
/// ever.
void WorkerPool::learn_slowdown(double times_planned, Events& events) {
  times_planned_.push_back(times_planned);
  if (times_planned_.size() < kSlowdownBatches) return;
  std::vector<double> sorted = times_planned_;
  times_planned_.erase(times_planned_.begin());
  std::ranges::sort(sorted);
  const double median = sorted[kSlowdownBatches / 2];
  reserved_.slowdown = median < kLeastSlowdown ? 1 : std::min(median, max_slowdown_);
  if (median < kLeastSlowdown || std::exchange(has_noted_slowdown_, true)) return;
  events.notes.push_back(fmt::format(
      "WARNING: batches of {} take {:.1f} times the planned time; fewer requests are accepted while they do, "
      "so that these are answered in time; profile again under the conditions of serving",
      name_, median));
}

void WorkerPool::reserve(std::int64_t batch, const RouteLeg& leg) {
  reservations_[leg.device].push_back(
      {.batch = batch, .begin_ns = leg.compute_begin_ns, .compute_ns = leg.compute_end_ns - leg.compute_begin_ns});
}

void WorkerPool::release(std::int64_t batch, Nanoseconds now_ns) {
  for (int device = 0; device < size(); ++device) {
    const auto is_of_batch = [&](const Reservation& reservation) { return reservation.batch == batch; };
    if (std::erase_if(reservations_[device], is_of_batch) > 0) correct(device, now_ns);
  }
}

/// Recomputes the reservation as if all remaining batches ran one after another, the first not before now.
void WorkerPool::correct(int device, Nanoseconds now_ns) {
  Nanoseconds until_ns = now_ns;
  for (const Reservation& reservation : reservations_[device])
    until_ns = std::max(until_ns, reservation.begin_ns) + reservation.compute_ns;
  reserved_.device_until[device] = is_ready(device) ? until_ns : kForEver;
}

bool WorkerPool::order(BatchOrder order, const BatchBuffer& buffer) {
  const auto holds = [&](const std::vector<Reservation>& reservations) {
    return std::ranges::find(reservations, order.batch, &Reservation::batch) != reservations.end();
  };
  int device = static_cast<int>(std::ranges::find_if(reservations_, holds) - reservations_.begin());
  const Reservation reservation = *std::ranges::find(reservations_.at(device), order.batch, &Reservation::batch);
  if (!is_ready(device)) {
    std::vector<int> ready;
    for (int other = 0; other < size(); ++other)
      if (is_ready(other)) ready.push_back(other);
    if (ready.empty()) return false;
    std::erase_if(reservations_[device], [&](const Reservation& one) { return one.batch == order.batch; });
    device = *std::ranges::min_element(ready, {}, [&](int other) { return reserved_.device_until[other]; });
    reservations_[device].push_back(reservation);
    reserved_.device_until[device] += reservation.compute_ns;
  }
  order.ordered_ns = steady_now_ns();
  // If the worker is gone, poll() finds the batch among its orders.
  workers_[device]->order(order, buffer, reserved_.planned_ns(static_cast<int>(order.lengths.size())));
  return true;
}

bool WorkerPool::has_loaded() const {
  return std::ranges::all_of(workers_, [](const auto& worker) { return worker && worker->is_loaded; });
}

bool WorkerPool::has_ready_worker() const {
  return std::ranges::any_of(workers_, [](const auto& worker) { return worker && worker->is_loaded; });
}

void WorkerPool::add_descriptors(std::vector<int>& descriptors) const {
  for (const auto& worker : workers_)
    if (worker) descriptors.push_back(worker->descriptor());
}

}  // namespace frostpipe
