#include "cli/serving/serve_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/json_text.h"
#include "base/steady_clock.h"
#include "cli/serving/generated_load.h"
#include "cli/serving/served_folders.h"
#include "cli/serving/serving_plan_text.h"
#include "cli/serving/serving_report.h"
#include "cli/serving/serving_run_text.h"
#include "cli/shared/output.h"
#include "cli/shared/table.h"
#include "cli/shared/usage_error.h"
#include "serving/plan/serving_plan.h"
#include "serving/server/http/http_server.h"
#include "serving/server/plan_server.h"
#include "serving/simulator/simulate_serving.h"

namespace frostpipe {
namespace {

constexpr int kUsualPort = 8000;
constexpr Nanoseconds kLookEveryNs = 50'000'000;

bool is_emulated(const ServeOptions& options) { return options.device == "emulated"; }

/// Returns the command that starts this program as a worker. On emulated devices it does not need LibTorch.
std::vector<std::string> worker_command(const ServeOptions& options) {
  return {"/proc/self/exe", "serving", "run", options.plan, "--device", options.device};
}

std::map<std::string, ServableModel> servable_models(const ServeOptions& options, const ServingPlan& plan,
                                                     const OpenModel& open_model) {
  std::map<std::string, ServableModel> models;
  if (is_emulated(options)) {
    for (const ServedModel& planned : plan.models) models[planned.name] = emulated_model(planned);
    return models;
  }
  const auto folders = served_folders(plan, options.models);
  for (std::size_t i = 0; i < folders.size(); ++i) {
    const ServedModel& planned = plan.models[i];
    ServableModel& model = models[planned.name] = open_model(folders[i], planned, plan.dtype);
    model.device = options.device;
  }
  return models;
}

/// Blocks SIGINT, SIGTERM and SIGHUP, in threads that are started later too, so that next() can wait for them.
class Signals {
 public:
  Signals() {
    sigemptyset(&set_);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set_, number);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  }
  /// Returns the next signal, or 0 if none comes in time.
  int next(Nanoseconds wait_ns) const {
    const timespec limit{.tv_sec = 0, .tv_nsec = wait_ns};
    return std::max(0, sigtimedwait(&set_, nullptr, &limit));
  }

 private:
  sigset_t set_{};
};

void replace_plan(PlanServer& server, const ServeOptions& options) {
  try {
    server.replace(load_serving_plan(options.plan));
    print_note(fmt::format("{}: the plan is read again and its workers are started", options.plan));
  } catch (const std::exception& error) {
    print_note(fmt::format("the previous plan goes on: {}", error.what()));
  }
}

/// Waits for the workers. A SIGHUP that comes meanwhile has its effect afterwards.
void wait_until_loaded(PlanServer& server, const ServeOptions& options, const Signals& signals) {
  bool is_replaced = false;
  while (!server.wait_until_loaded(kLookEveryNs)) {
    const int signal = signals.next(0);
    if (signal == SIGINT || signal == SIGTERM)
      throw RuntimeFailure("was ended before all workers had loaded their part of the model");
    is_replaced = is_replaced || signal == SIGHUP;
  }
  if (is_replaced) replace_plan(server, options);
}

/// Returns how long the service has lasted.
Nanoseconds serve_until_the_end(PlanServer& server, const ServeOptions& options, const Signals& signals,
                                const std::optional<ServingLoad>& load) {
  std::optional<GeneratedLoad> generated;
  server.begin_run(load ? std::optional(load->window_ns) : std::nullopt);
  const Nanoseconds begin_ns = steady_now_ns();
  if (load) generated.emplace(server, *load);
  while (!generated || !generated->has_ended()) {
    const int signal = signals.next(kLookEveryNs);
    if (signal == SIGHUP) replace_plan(server, options);
    if (signal == SIGINT || signal == SIGTERM) break;
  }
  if (generated && generated->has_ended()) return load->window_ns;
  return steady_now_ns() - begin_ns;
}

/// Simulates the same arrivals, to compare the results.
std::vector<ServedAndSimulated> with_simulated(const ServingPlan& plan, std::vector<ServingRun> served) {
  std::vector<ServedAndSimulated> models;
  for (ServingRun& run : served) {
    const auto model = std::ranges::find(plan.models, run.model, &ServedModel::name);
    std::vector<Nanoseconds> arrivals;
    for (const ServedRequest& request : run.requests) arrivals.push_back(request.arrival_ns);
    ServingRun simulated = simulate_serving(plan, *model, arrivals, run.window_ns, {.timeline = true});
    models.push_back({.served = std::move(run), .simulated = std::move(simulated)});
  }
  return models;
}

std::vector<ServedModelRun> in_rows(const std::vector<ServedAndSimulated>& models) {
  std::vector<ServedModelRun> rows;
  for (const auto& [served, simulated] : models) {
    rows.push_back({.name = served.model, .run = served, .summary = summarize(served)});
    rows.push_back({.name = served.model + ", simulated", .run = simulated, .summary = summarize(simulated)});
  }
  return rows;
}

std::string served_text(Nanoseconds served_ns, const std::vector<ServedAndSimulated>& models) {
  const std::vector<ServedModelRun> rows = in_rows(models);
  std::string text = fmt::format("served for {}\n", format_duration(served_ns));
  if (const Nanoseconds window_ns = models.front().served.window_ns; window_ns < served_ns)
    text += fmt::format("the figures are those of the newest plan, in the last {}\n", format_duration(window_ns));
  text += "\n";
  text += models_table(rows) + "\n" + pools_table(rows);
  const std::string losses = losses_text(rows);
  return losses.empty() ? text : text + "\n" + losses;
}

std::string served_json(const std::vector<ServedAndSimulated>& models) {
  nlohmann::ordered_json json = {
      {"format", "frostpipe.serving_run"}, {"version", 1}, {"window_ns", models.front().served.window_ns}};
  json["models"] = nlohmann::ordered_json::array();
  for (const auto& [served, simulated] : models) {
    nlohmann::ordered_json model = serving_run_json(served, summarize(served));
    model["cut"] = served.cut;
    model["simulated"] = serving_run_json(simulated, summarize(simulated));
    json["models"].push_back(std::move(model));
  }
  return json_text(json, 2) + "\n";
}

/// Reads the file's only line. Short keys are refused, because they could be guessed by trying.
std::string read_api_key(const std::string& path) {
  constexpr std::size_t kLeast = 16, kMax = 1024;
  std::string key = read_named_file(path, 2 * kMax);
  while (key.ends_with('\n') || key.ends_with('\r')) key.pop_back();
  const bool is_printable = std::ranges::all_of(key, [](char c) { return c > ' ' && c < 127; });
  if (key.size() < kLeast || key.size() > kMax || !is_printable)
    throw InvalidInput(
        fmt::format("{}: must hold one line, the key, of {} to {} printable characters without blanks; "
                    "`openssl rand -hex 32` makes one",
                    path, kLeast, kMax));
  return key;
}

std::shared_ptr<const TlsIdentity> read_identity(const ServeOptions& options) {
  if (options.ssl_certfile.empty()) return nullptr;
  return std::make_shared<TlsIdentity>(options.ssl_certfile, options.ssl_keyfile);
}

std::string host_in_url(const std::string& host) {
  return host.find(':') == std::string::npos ? host : "[" + host + "]";  // an IPv6 address
}

/// Says to how many tokens texts are cut.
void note_limits(const PlanServer& server) {
  for (const std::string& name : server.names()) {
    const RequestForm& form = server.form_of(name);
    if (form.tokens_of)
      print_note(fmt::format("texts for {} are cut to {} tokens, as planned; `serving plan --tokens` sets their number",
                             name, form.max_tokens));
  }
}

void warn_if_unprotected(const HttpServer& http, const ServeOptions& options) {
  if (!http.is_beyond_loopback()) return;
  if (options.api_key_file.empty())
    print_note(fmt::format(
        "WARNING: {} is reached from other hosts, and any client that reaches it may send requests; --api-key-file "
        "asks for a key, --host 127.0.0.1 keeps it to this host",
        options.host));
  if (options.ssl_certfile.empty())
    print_note(
        fmt::format("WARNING: {} is reached from other hosts without encryption; --ssl-certfile and --ssl-keyfile "
                    "encrypt, --host 127.0.0.1 keeps it to this host",
                    options.host));
}

}  // namespace

std::string serve_plan(const ServeOptions& options, const OpenModel& open_model) {
  if (is_emulated(options) && !options.models.empty())
    throw UsageError("--model: has no meaning with --device emulated, which computes nothing");
  const Signals signals;  // from now on they end the run in order
  const std::shared_ptr<const TlsIdentity> tls = read_identity(options);
  const ServingPlan plan = load_serving_plan(options.plan);
  const std::string api_key = options.api_key_file.empty() ? "" : read_api_key(options.api_key_file);
  if (!options.output.empty()) {
    std::filesystem::create_directories(options.output);
    for (const char* name : {"serving_run.json", "report.html"})
      require_writable(std::filesystem::path(options.output) / name);
  }
  // Report wrong options before the workers load, which may take minutes.
  std::optional<ServingLoad> load;
  if (is_given(options.load)) load = serving_load(plan, options.load);
  const bool has_http = !load || options.port;
  if (has_http) require_free_port(options.host, options.port.value_or(kUsualPort));
  PlanServer server(plan,
                    {.worker_command = worker_command(options),
                     .open_models = [&](const ServingPlan& read) { return servable_models(options, read, open_model); },
                     .note = [](const std::string& note) { print_note(note); }});
  wait_until_loaded(server, options, signals);
  print_note(fmt::format("{} {} loaded", server.workers().size(),
                         server.workers().size() == 1 ? "worker has" : "workers have"));
  note_limits(server);
  std::optional<HttpServer> http;
  if (has_http) {
    const HttpServerOptions http_options = {
        .host = options.host, .port = options.port.value_or(kUsualPort), .api_key = api_key, .tls = tls};
    http.emplace(server, http_options);
    warn_if_unprotected(*http, options);
    print_note(fmt::format("serves {} on {}://{}:{}", fmt::join(server.names(), ", "), tls ? "https" : "http",
                           host_in_url(options.host), http->port()));
  }
  const Nanoseconds served_ns = serve_until_the_end(server, options, signals, load);
  http.reset();
  const std::vector<ServedAndSimulated> models = with_simulated(server.plan(), server.finish_run(served_ns));
  if (!options.output.empty()) {
    const std::filesystem::path folder = options.output;
    write_named_file(folder / "serving_run.json", served_json(models));
    write_named_file(folder / "report.html", serving_report(models, options.plan));
  }
  return options.format == "json" ? served_json(models) : served_text(served_ns, models);
}

}  // namespace frostpipe
