#include "simulator/generation/simulate_generation.h"

#include <algorithm>
#include <cmath>
#include <deque>

#include "profiles/error.h"
#include "simulator/event_queue.h"
#include "simulator/generation/cache_reservations.h"

namespace frostpipe {
namespace {

struct Event {
  enum class Kind : std::uint8_t {
    arrival,   // of the next request
    received,  // request `index` is at the next place of its path
    computed,  // machine `index` is done with a layer
  };
  Kind kind = Kind::arrival;
  int index = 0;
};

/// A request on its way.
struct Flight {
  GenerationRequest request;
  std::vector<PathLeg> path;
  std::size_t hop = 0;       // of the path; its length = at the coordinator
  int generated = 0;         // tokens so far
  Nanoseconds begun_ns = 0;  // the iteration
  Nanoseconds sent_ns = 0;   // to where it is

  bool is_prompt() const { return generated == 0; }
  int tokens() const { return is_prompt() ? request.prompt_tokens : 1; }
};

struct Machine {
  std::vector<std::vector<int>> waiting;  // flights by the layer that they need next, from the machine's first
  std::vector<int> batch;                 // empty = free
  int layer = 0;                          // of the batch, from the machine's first
  Nanoseconds sending_until = 0, receiving_until = 0;  // its card
};

class Generation {
 public:
  Generation(const GenerationCluster& cluster, const GenerationOrder& order)
      : cluster_(cluster),
        order_(order),
        paths_(cluster, order.path_choice, order.seed),
        reservations_(cluster),
        machines_(cluster.machines.size() + 1),
        link_until_(machines_.size(), std::vector<Nanoseconds>(machines_.size())) {
    for (std::size_t i = 0; i < cluster.machines.size(); ++i)
      machines_[i].waiting.resize(cluster.machines[i].num_layers());
  }

  GenerationRun run() {
    const GenerationLoad& load = order_.load;
    if (load.kind == LoadKind::arriving) {
      for (const GenerationRequest& request : load.requests) queue_.schedule(request.arrival_ns, {});
    } else {
      for (int i = 0; i < load.in_flight; ++i) queue_.schedule(i * load.gap_ns, {});
    }
    while (queue_.next_ns() && *queue_.next_ns() < order_.end_ns)
      queue_.advance_to(*queue_.next_ns(), [&](const Event& event) { handle(event); });
    count_in_flight(order_.end_ns);
    run_.mean_in_flight = flight_ns_ / static_cast<double>(order_.end_ns - order_.begin_ns);
    return std::move(run_);
  }

 private:
  void handle(const Event& event) {
    if (event.kind == Event::Kind::arrival) return arrive();
    if (event.kind == Event::Kind::computed) return computed(event.index);
    const Flight& flight = flights_[event.index];
    if (flight.hop == flight.path.size()) return come_back(event.index);
    const PathLeg& leg = flight.path[flight.hop];
    machines_[leg.machine].waiting[leg.first_layer - cluster_.machines[leg.machine].first_layer].push_back(event.index);
    compute(leg.machine);
  }

  void arrive() {
    if (next_request_ == order_.load.requests.size()) return;
    GenerationRequest request = order_.load.requests[next_request_++];
    request.arrival_ns = queue_.now();
    in_front_.push_back(request);
    set_out();
    if (order_.load.kind == LoadKind::filling) in_front_.clear();
  }

  std::int64_t reserved_tokens(const GenerationRequest& request) const {
    return request.prompt_tokens + std::llround(order_.load.expected_generated_tokens);
  }

  void set_out() {
    while (!in_front_.empty()) {
      const GenerationRequest& request = in_front_.front();
      const std::int64_t tokens = reserved_tokens(request);
      auto path = paths_.choose(request.prompt_tokens, [&](int machine) {
        return reservations_.has_room(machine, tokens, order_.load.most_of_machine);
      });
      if (!path) return;
      count_in_flight(queue_.now());
      ++num_in_flight_;
      reservations_.add(*path, tokens);
      flights_.push_back({.request = request, .path = std::move(*path), .begun_ns = request.arrival_ns});
      in_front_.pop_front();
      send(static_cast<int>(flights_.size()) - 1, cluster_.coordinator());
    }
  }

  /// To the place `hop` of its path.
  void send(int index, int from) {
    Flight& flight = flights_[index];
    const bool is_back = flight.hop == flight.path.size();
    const int to = is_back ? cluster_.coordinator() : flight.path[flight.hop].machine;
    const auto bytes = static_cast<double>(cluster_.message_bytes(from, to, is_back ? 1 : flight.tokens()));
    const GenerationLink& link = cluster_.links[from][to];
    Nanoseconds& link_until = link_until_[from][to];
    struct Card {
      double bytes_per_second;
      Nanoseconds& until;
    };
    std::vector<Card> cards;  // the coordinator's is never full
    if (from != cluster_.coordinator())
      cards.push_back({cluster_.machines[from].card_bytes_per_second, machines_[from].sending_until});
    if (to != cluster_.coordinator())
      cards.push_back({cluster_.machines[to].card_bytes_per_second, machines_[to].receiving_until});
    Nanoseconds begin_ns = std::max(queue_.now(), link_until);
    double slowest = link.bytes_per_second;
    for (const Card& card : cards) {
      begin_ns = std::max(begin_ns, card.until);
      slowest = std::min(slowest, card.bytes_per_second);
    }
    for (const Card& card : cards) card.until = begin_ns + std::llround(1e9 * bytes / card.bytes_per_second);
    link_until = begin_ns + std::llround(1e9 * bytes / slowest);
    flight.sent_ns = queue_.now();
    queue_.schedule(link_until + link.latency_ns, {.kind = Event::Kind::received, .index = index});
  }

  /// Begins a batch where the machine is free and anything waits.
  void compute(int index) {
    Machine& machine = machines_[index];
    if (!machine.batch.empty()) return;
    const auto has_work = [&](int layer) { return !machine.waiting[layer].empty(); };
    const int num_layers = static_cast<int>(machine.waiting.size());
    int steps = 1;
    while (steps <= num_layers && !has_work((machine.layer + steps) % num_layers)) ++steps;
    if (steps > num_layers) return;
    machine.layer = (machine.layer + steps) % num_layers;

    const GenerationMachine& limits = cluster_.machines[index];
    int prompts = 0, prompt_tokens = 0, decodes = 0;
    std::int64_t tokens_come_in = 0;
    std::vector<int> left;
    for (const int one : machine.waiting[machine.layer]) {
      const Flight& flight = flights_[one];
      int& number = flight.is_prompt() ? prompts : decodes;
      if (number == (flight.is_prompt() ? limits.largest_prompt_batch : limits.largest_decode_batch)) {
        left.push_back(one);
        continue;
      }
      ++number;
      if (flight.is_prompt()) prompt_tokens += flight.request.prompt_tokens;
      if (flight.path[flight.hop].first_layer == limits.first_layer + machine.layer) tokens_come_in += flight.tokens();
      machine.batch.push_back(one);
    }
    machine.waiting[machine.layer] = std::move(left);
    const auto bytes_come_in = static_cast<double>(cluster_.activation_bytes * tokens_come_in);
    const Nanoseconds time_ns = std::llround(1e9 * bytes_come_in * limits.copy_seconds_per_byte) +
                                (prompts > 0 ? limits.prompt_ns.at(prompt_tokens) : 0) +
                                (decodes > 0 ? limits.decode_ns.at(decodes) : 0);
    queue_.schedule(queue_.now() + time_ns, {.kind = Event::Kind::computed, .index = index});
  }

  void computed(int index) {
    Machine& machine = machines_[index];
    const std::vector<int> batch = std::exchange(machine.batch, {});
    const std::size_t next = machine.layer + 1;
    for (const int one : batch) {
      if (next < machine.waiting.size()) {
        machine.waiting[next].push_back(one);
        continue;
      }
      Flight& flight = flights_[one];
      const int from = flight.hop == 0 ? cluster_.coordinator() : flight.path[flight.hop - 1].machine;
      paths_.observe(from, index, queue_.now() - flight.sent_ns);
      ++flight.hop;
      send(one, index);
    }
    compute(index);
  }

  /// With the next token.
  void come_back(int index) {
    Flight& flight = flights_[index];
    const bool was_prompt = flight.is_prompt();
    if (queue_.now() >= order_.begin_ns)
      (was_prompt ? run_.prompt_ns : run_.decode_ns).push_back(queue_.now() - flight.begun_ns);
    ++flight.generated;
    flight.begun_ns = queue_.now();
    const bool is_done = flight.generated >= flight.request.generated_tokens;
    if (is_done) {
      count_in_flight(queue_.now());
      --num_in_flight_;
      reservations_.remove(flight.path, reserved_tokens(flight.request));
      set_out();
    } else {
      flight.hop = 0;
      paths_.add_token(flight.path);
      send(index, cluster_.coordinator());
    }
    if (was_prompt) let_in(LoadKind::filling);
    if (is_done) let_in(order_.load.kind);
  }

  /// One more, if the load is of that kind, not of arrivals, and fits.
  void let_in(LoadKind kind) {
    const GenerationLoad& load = order_.load;
    if (load.kind != kind || kind == LoadKind::arriving) return;
    if (kind == LoadKind::filling && reservations_.fullest_layer() > load.most_of_layer) return;
    queue_.schedule(queue_.now(), {});
  }

  void count_in_flight(Nanoseconds until_ns) {
    const Nanoseconds since_ns = std::max(counted_until_, order_.begin_ns);
    if (until_ns > since_ns)
      flight_ns_ += static_cast<double>(num_in_flight_) * static_cast<double>(until_ns - since_ns);
    counted_until_ = until_ns;
  }

  const GenerationCluster& cluster_;
  const GenerationOrder& order_;
  RequestPaths paths_;
  CacheReservations reservations_;
  std::vector<Machine> machines_;  // the coordinator is the last one
  std::vector<std::vector<Nanoseconds>> link_until_;
  EventQueue<Event> queue_;
  std::size_t next_request_ = 0;
  std::deque<GenerationRequest> in_front_;
  std::vector<Flight> flights_;
  int num_in_flight_ = 0;
  Nanoseconds counted_until_ = 0;
  double flight_ns_ = 0;
  GenerationRun run_;
};

}  // namespace

GenerationRun simulate_generation(const GenerationCluster& cluster, const GenerationOrder& order) {
  FROSTPIPE_CHECK(order.begin_ns < order.end_ns, "a run has a time that counts");
  return Generation(cluster, order).run();
}

}  // namespace frostpipe
