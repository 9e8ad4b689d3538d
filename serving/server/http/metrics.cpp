#include "serving/server/http/metrics.h"

#include <fmt/format.h>

#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

namespace frostpipe {
namespace {

using Labels = std::vector<std::pair<std::string_view, std::string>>;

constexpr double kNanosecondsPerSecond = 1e9;

std::string escaped(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (c == '\n') {
      text += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') text += '\\';
    text += c;
  }
  return text;
}

class Page {
 public:
  void family(std::string_view name, std::string_view type, std::string_view help) {
    fmt::format_to(std::back_inserter(text_), "# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
  }

  template <class Number>
  void sample(std::string_view name, const Labels& labels, Number value) {
    text_ += name;
    char separator = '{';
    for (const auto& [label, content] : labels) {
      fmt::format_to(std::back_inserter(text_), "{}{}=\"{}\"", separator, label, escaped(content));
      separator = ',';
    }
    fmt::format_to(std::back_inserter(text_), "}} {}\n", value);
  }

  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

using Counters = std::vector<std::pair<std::string, ModelCounters>>;  // by model

void add_requests(Page& page, const Counters& counters) {
  page.family("frostpipe_requests_received_total", "counter", "Received requests.");
  for (const auto& [model, of] : counters)
    page.sample("frostpipe_requests_received_total", {{"model", model}}, of.requests);
  page.family("frostpipe_requests_total", "counter", "Finished requests by outcome.");
  for (const auto& [model, of] : counters) {
    std::int64_t dropped = 0;
    for (const auto& [reason, count] : of.dropped) dropped += count;
    const std::pair<const char*, std::int64_t> outcomes[] = {
        {"in_time", of.in_time}, {"late", of.late}, {"dropped", dropped}, {"failed", of.failed}};
    for (const auto& [outcome, count] : outcomes)
      page.sample("frostpipe_requests_total", {{"model", model}, {"outcome", outcome}}, count);
  }
  page.family("frostpipe_requests_dropped_total", "counter", "Dropped requests by reason.");
  for (const auto& [model, of] : counters) {
    for (const auto& [reason, count] : of.dropped)
      page.sample("frostpipe_requests_dropped_total", {{"model", model}, {"reason", reason}}, count);
  }
  page.family("frostpipe_texts_cut_total", "counter", "Received texts that were cut to the plan's tokens.");
  for (const auto& [model, of] : counters) page.sample("frostpipe_texts_cut_total", {{"model", model}}, of.cut);
  page.family("frostpipe_requests_waiting", "gauge", "Requests that are in no batch yet.");
  for (const auto& [model, of] : counters) page.sample("frostpipe_requests_waiting", {{"model", model}}, of.waiting);
  page.family("frostpipe_requests_computing", "gauge", "Requests in batches that are being computed.");
  for (const auto& [model, of] : counters)
    page.sample("frostpipe_requests_computing", {{"model", model}}, of.computing);
}

void add_latencies(Page& page, const Counters& counters) {
  constexpr std::size_t kBounds = std::size(kLatencyBoundsSeconds);
  const std::string name = "frostpipe_request_latency_seconds";
  page.family(name, "histogram", "Time from a request's arrival to its answer, in seconds.");
  for (const auto& [model, of] : counters) {
    const auto count_up_to = [&of = of](std::size_t i) {
      return i < of.latency_counts.size() ? of.latency_counts[i] : 0;
    };
    for (std::size_t i = 0; i < kBounds; ++i)
      page.sample(name + "_bucket", {{"model", model}, {"le", fmt::format("{}", kLatencyBoundsSeconds[i])}},
                  count_up_to(i));
    page.sample(name + "_bucket", {{"model", model}, {"le", "+Inf"}}, count_up_to(kBounds));
    page.sample(name + "_sum", {{"model", model}}, static_cast<double>(of.latency_sum_ns) / kNanosecondsPerSecond);
    page.sample(name + "_count", {{"model", model}}, count_up_to(kBounds));
  }
}

void add_batches(Page& page, const Counters& counters) {
  page.family("frostpipe_batch_size", "summary", "Requests in a batch.");
  for (const auto& [model, of] : counters) {
    page.sample("frostpipe_batch_size_sum", {{"model", model}}, of.requests_in_batches);
    page.sample("frostpipe_batch_size_count", {{"model", model}}, of.batches);
  }
}

void add_workers(Page& page, const std::vector<WorkerState>& workers) {
  const auto labels = [](const WorkerState& worker) {
    return Labels{{"model", worker.model},
                  {"pipeline", std::to_string(worker.pipeline)},
                  {"partition", std::to_string(worker.partition)},
                  {"virtual_device", std::to_string(worker.virtual_device)},
                  {"device_class", worker.device_class}};
  };
  page.family("frostpipe_worker_ready", "gauge", "1 if a worker has loaded its weights, else 0.");
  for (const WorkerState& worker : workers)
    page.sample("frostpipe_worker_ready", labels(worker), worker.is_ready ? 1 : 0);
  page.family("frostpipe_worker_busy_seconds_total", "counter", "Time in which a worker has computed, in seconds.");
  for (const WorkerState& worker : workers)
    page.sample("frostpipe_worker_busy_seconds_total", labels(worker),
                static_cast<double>(worker.busy_ns) / kNanosecondsPerSecond);
}

}  // namespace

std::string metrics_text(const ServedModels& models) {
  Counters counters;
  for (const std::string& model : models.names()) counters.emplace_back(model, models.counters_of(model));
  Page page;
  page.family("frostpipe_model_ready", "gauge", "1 if a model is ready, else 0.");
  for (const auto& [model, of] : counters)
    page.sample("frostpipe_model_ready", {{"model", model}}, models.is_ready(model) ? 1 : 0);
  add_requests(page, counters);
  add_latencies(page, counters);
  add_batches(page, counters);
  add_workers(page, models.workers());
  return page.take();
}

}  // namespace frostpipe
