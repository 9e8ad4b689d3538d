#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/steady_clock.h"
#include "executor/communication/communicator.h"
#include "executor/communication/hosts.h"
#include "executor/device/memory_meter.h"
#include "executor/profiler/measure_links.h"
#include "operators/execute_net.h"
#include "operators/executor/device_runner.h"
#include "operators/graph/counted_operators.h"
#include "operators/nets/net_folder.h"
#include "operators/training/cpu_class.h"
#include "operators/training/operator_line.h"
#include "operators/training/processor_time.h"

namespace frostpipe {
namespace {

/// The exchange of a plan for one device, which has no transfers.
class NoExchange final : public TensorExchange {
 public:
  void send(int, const at::Tensor&) override {}
  void expect(int, const at::Tensor&) override {}
  void take(int) override {}
  void end_iteration() override {}
};

/// Returns a plan with all operators on one device, in the graph's order.
OperatorPlan plan_alone(const OperatorGraph& graph) {
  OperatorPlan plan{.method = OperatorMethod::single, .graph = graph};
  plan.machine.devices = {{.device_class = "here"}};
  plan.order.resize(1);
  for (int op = 0; op < static_cast<int>(graph.operators.size()); ++op) {
    plan.graph.operators[op].times = {{.device_class = "here", .overhead_ns = 0, .work_ns = 0}};
    plan.placement.emplace_back();
    if (is_split_by_samples(graph.operators[op].kind)) plan.placement.back() = {{0, 0, graph.batch}};
  }
  plan.order[0] = topological_order(graph);
  return plan;
}

/// The time that an operator took, and the memory that it needed besides its inputs and outputs.
struct OperatorMeasurement {
  double ns = 0, own_bytes = 0;
};

/// Measures operators in whole iterations of the net on this device, so that each finds the processor's caches in the
/// same state as in training.
class NetBench {
 public:
  NetBench(const NetShape& net, int batch, const CpuClass& cpu)
      : net_(net),
        plan_(plan_alone(counted_operators(net, batch).graph)),
        tasks_(tasks_of(plan_.graph, plan_.machine, plan_.placement)),
        runner_(net_, plan_, tasks_, 0, exchange_),
        slow_cpu_(cpu.slowdown),
        state_(random_state(net, /*seed=*/1, at::kFloat)),
        momentum_(no_momentum(state_)),
        pictures_(at::randn({batch, net.channels, net.picture_size, net.picture_size})),
        labels_(at::randint(net.layers.back().out_channels, {batch}, at::kLong)) {}

  /// Runs one iteration. Returns what each operator took.
  std::vector<OperatorMeasurement> measure() {
    std::vector<OperatorMeasurement> measured(plan_.graph.operators.size());
    runner_.begin_iteration(state_, pictures_, labels_);
    for (int place = 0; place < static_cast<int>(runner_.tasks().size()); ++place) {
      const OperatorTask& task = tasks_.tasks[runner_.tasks()[place]];
      MemoryMeter::reset_peak();
      const Bytes expected = MemoryMeter::live_bytes() + output_bytes(plan_.graph, task);
      const Nanoseconds begin_ns = steady_now_ns();
      slow_cpu_.begin_work();
      runner_.run_task(place, momentum_,
                       {.optimizer = Optimizer::kSgd, .learning_rate = 1e-3, .momentum = 0.9, .weight_decay = 0});
      slow_cpu_.end_work();
      measured[task.op] = {.ns = static_cast<double>(steady_now_ns() - begin_ns),
                           .own_bytes = static_cast<double>(std::max<Bytes>(0, MemoryMeter::peak_bytes() - expected))};
    }
    runner_.end_iteration(state_);
    return measured;
  }

 private:
  const NetShape& net_;
  OperatorPlan plan_;
  OperatorTasks tasks_;
  NoExchange exchange_;
  DeviceRunner runner_;
  SlowCpu slow_cpu_;
  NetState state_;
  std::vector<NetMomentum> momentum_;
  at::Tensor pictures_, labels_;
};

/// Returns the sizes of the mini-batches to measure, ascending: a quarter, a half and the whole. The smaller ones stand
/// for parts of the mini-batch.
std::vector<int> batches_to_measure(int batch) {
  std::vector<int> batches;
  for (const int divisor : {4, 2, 1})
    if (batch / divisor > 0 && (batches.empty() || batches.back() != batch / divisor))
      batches.push_back(batch / divisor);
  return batches;
}

/// Pairs of a share of the mini-batch and the measured value (nanoseconds or bytes).
using Points = std::vector<std::pair<double, double>>;

/// Fits the cost of an operator. Updates do not depend on the mini-batch, since they are split along the parameters:
/// their mean is taken as work, without overhead.
OperatorLine line_of(const Operator& one, const Points& points) {
  if (is_split_by_samples(one.kind)) return line_through(points);
  double sum = 0;
  for (const auto& [share, value] : points) sum += value;
  return {.constant = 0, .slope = sum / static_cast<double>(points.size())};
}

ClassCost time_of(const Operator& one, const std::string& device_class, const Points& times, const Points& bytes) {
  const OperatorLine time = line_of(one, times), memory = line_of(one, bytes);
  return {.device_class = device_class,
          .overhead_ns = static_cast<Nanoseconds>(time.constant),
          .work_ns = static_cast<Nanoseconds>(time.slope),
          .overhead_bytes = static_cast<Bytes>(memory.constant),
          .work_bytes = static_cast<Bytes>(memory.slope)};
}

/// Returns the means on this rank by size of the mini-batch, then by operator. The first iteration of each size is not
/// counted.
std::map<int, std::vector<OperatorMeasurement>> measure_batches(const NetShape& net,
                                                                const OperatorMeasureOptions& options,
                                                                const CpuClass& cpu, Communicator& communicator,
                                                                const Progress& progress) {
  const std::vector<int> batches = batches_to_measure(options.global_batch_size);
  const int num_rounds = options.quick ? 2 : 6;
  std::map<int, std::vector<OperatorMeasurement>> means;
  double done = 0;
  for (const int batch : batches) {
    NetBench bench(net, batch, cpu);
    std::vector<OperatorMeasurement>& mean = means[batch];
    for (int round = 0; round <= num_rounds; ++round) {
      communicator.control_group().barrier();  // all measure at once: ranks share caches in training too
      const std::vector<OperatorMeasurement> measured = bench.measure();
      mean.resize(measured.size());
      for (std::size_t op = 0; op < measured.size() && round > 0; ++op)
        mean[op].ns += measured[op].ns / num_rounds, mean[op].own_bytes += measured[op].own_bytes / num_rounds;
      if (communicator.rank() == 0)
        progress((done + (round + 1.0) / (num_rounds + 1)) / static_cast<double>(batches.size()),
                 fmt::format("mini-batches of {} samples, round {} of {}", batch, round, num_rounds));
    }
    ++done;
  }
  return means;
}

/// Returns how many bytes a rank sends or receives per second of processor time. All ranks send to the next one at
/// once. As in training, what is sent is in no cache, and what is received goes to newly allocated memory.
std::int64_t message_bytes_per_cpu_second(Communicator& communicator) {
  constexpr int kMessages = 16;
  constexpr std::int64_t kBytes = 4 << 20;
  const int rank = communicator.rank(), num_ranks = communicator.world_size();
  if (num_ranks < 2) return 0;
  Group& group = communicator.weight_transfer_group();
  const auto sent = at::zeros({kMessages, kBytes}, at::kByte);
  const auto exchange = [&] {
    for (int i = 0; i < kMessages; ++i) {
      const auto into = at::empty({kBytes}, at::kByte);
      Transfer coming = group.receive(into, (rank + num_ranks - 1) % num_ranks, i, "measuring messages");
      Transfer going = group.send(sent[i], (rank + 1) % num_ranks, i, "measuring messages");
      going.wait();
      coming.wait();
    }
  };
  exchange();  // not measured: connections are set up at their first use
  communicator.control_group().barrier();
  const Nanoseconds begin_ns = processor_time_ns(CLOCK_PROCESS_CPUTIME_ID);
  exchange();
  const auto took_ns = static_cast<double>(processor_time_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_ns);
  const double ns_per_byte = communicator.sum({took_ns / (2.0 * kMessages * kBytes)}).front() / num_ranks;
  return static_cast<std::int64_t>(1e9 / ns_per_byte);
}

CpuClass class_of_rank(const OperatorMeasureOptions& options, int rank) {
  return *parse_cpu_class(options.device_classes.at(rank));
}

}  // namespace

void check_inputs(const OperatorMeasureOptions& options) {
  require_batch(open_net_folder(options.model).net, options.global_batch_size);
  for (const std::string& one : options.device_classes)
    if (!parse_cpu_class(one))
      throw InvalidInput("--hardware",
                         "must be CPUs to be measured: \"cpu\", \"cpu x THREADS\", \"cpu / SLOWDOWN\", with commas "
                         "between them",
                         one);
}

MeasuredOperators measure_operators(const RankEnvironment& self, const OperatorMeasureOptions& options,
                                    const Progress& progress) {
  const at::NoGradGuard no_grad;
  const NetFolder folder = open_net_folder(options.model);
  const CpuClass cpu = class_of_rank(options, self.rank);
  const auto device = make_device("cpu", self.local_rank, cpu.threads);
  const auto communicator = Communicator::connect(self, *device);
  MeasuredOperators result{.graph = counted_operators(folder.net, options.global_batch_size).graph, .cluster = {}};
  if (self.rank == 0) progress(0, "links between ranks");
  result.cluster = measure_links(*communicator, *device, at::TensorOptions().dtype(at::kFloat), std::nullopt,
                                 options.quick, hosts_of_ranks(*communicator));
  result.cluster.message_bytes_per_cpu_second = message_bytes_per_cpu_second(*communicator);
  const auto means = measure_batches(folder.net, options, cpu, *communicator, progress);
  nlohmann::json own;
  for (const auto& [batch, by_operator] : means)
    for (const OperatorMeasurement& measured : by_operator)
      own[std::to_string(batch)].push_back({measured.ns, measured.own_bytes});
  std::vector<nlohmann::json> all;
  for (const std::string& text : communicator->gather(own.dump())) {
    result.cluster.devices[all.size()].type = options.device_classes[all.size()];
    all.push_back(nlohmann::json::parse(text));
  }
  for (std::size_t op = 0; op < result.graph.operators.size(); ++op) {
    std::map<std::string, std::pair<Points, Points>> points;  // times, bytes; by class, which several ranks may have
    for (std::size_t rank = 0; rank < all.size(); ++rank)
      for (const auto& [batch, measured] : all[rank].items()) {
        const double share = std::stod(batch) / options.global_batch_size;
        auto& [times, bytes] = points[options.device_classes[rank]];
        times.emplace_back(share, measured[op][0].get<double>());
        bytes.emplace_back(share, measured[op][1].get<double>());
      }
    Operator& one = result.graph.operators[op];
    for (const auto& [device_class, of_class] : points)
      one.times.push_back(time_of(one, device_class, of_class.first, of_class.second));
  }
  return result;
}

}  // namespace frostpipe
