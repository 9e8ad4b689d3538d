#include "cli/shared/run_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/shared/report_words.h"

namespace frostpipe {
namespace {

using TextOf = std::function<std::string(const RunSummary&)>;

std::vector<std::string> each_once(const std::vector<RunSummary>& runs, const TextOf& text_of) {
  std::vector<std::string> texts;
  for (const RunSummary& run : runs)
    if (std::string text = text_of(run); !text.empty() && std::ranges::find(texts, text) == texts.end())
      texts.push_back(text);
  return texts;
}

template <class Property>
bool all_equal(const std::vector<RunSummary>& runs, const Property& property) {
  return std::ranges::all_of(runs, [&](const RunSummary& run) { return property(run) == property(runs.front()); });
}

/// Returns the name of the net or of the Transformer; "a Transformer" if its name is unknown.
std::string model_of(const RunSummary& run) {
  if (run.net) return run.net->net;
  return run.model.empty() ? "a Transformer" : run.model;
}

bool have_one_model(const std::vector<RunSummary>& runs) {
  const RunSummary* named = nullptr;
  for (const RunSummary& run : runs) {
    if (run.net.has_value() != runs.front().net.has_value()) return false;
    if (!run.net && run.model.empty()) continue;
    if (named != nullptr && model_of(run) != model_of(*named)) return false;
    named = &run;
  }
  return true;
}

/// Returns "data (115 / 230 training samples, 29 / 60 test samples)", without the numbers that are equal; empty if
/// the runs have the same data.
std::string differing_data(const std::vector<RunSummary>& runs) {
  std::vector<std::string> parts;
  const auto add = [&](int RunSummary::*number, std::string_view what) {
    if (!all_equal(runs, [&](const RunSummary& run) { return run.*number; }))
      parts.push_back(fmt::format(
          "{} {}", distinct_texts(runs, [&](const RunSummary& run) { return grouped(run.*number); }), what));
  };
  add(&RunSummary::num_train_samples, "training samples");
  add(&RunSummary::num_test_samples, "test samples");
  if (!all_equal(runs, [](const RunSummary& run) { return run.label_names; })) parts.emplace_back("other labels");
  if (parts.empty() && !all_equal(runs, [](const RunSummary& run) { return run.test_items; }))
    parts.emplace_back("other test samples");
  return parts.empty() ? "" : fmt::format("data ({})", fmt::join(parts, ", "));
}

}  // namespace

std::string distinct_texts(const std::vector<RunSummary>& runs, const TextOf& text_of) {
  return fmt::format("{}", fmt::join(each_once(runs, text_of), " / "));
}

std::vector<std::string> differing_settings(const std::vector<RunSummary>& runs) {
  std::vector<std::string> settings;
  if (!have_one_model(runs)) settings.push_back(fmt::format("model ({})", distinct_texts(runs, model_of)));
  if (const std::string data = differing_data(runs); !data.empty()) settings.push_back(data);
  const auto add = [&](std::string_view name, const TextOf& text_of) {
    if (each_once(runs, text_of).size() > 1)
      settings.push_back(fmt::format("{} ({})", name, distinct_texts(runs, text_of)));
  };
  add("seed", [](const RunSummary& run) { return std::to_string(run.seed); });
  add("mini-batch", [](const RunSummary& run) { return std::to_string(run.global_batch_size); });
  add("number of steps", [](const RunSummary& run) { return std::to_string(run.num_steps); });
  return settings;
}

std::string settings_sentence(const std::vector<RunSummary>& runs) {
  if (runs.size() < 2) return "";
  const std::vector<std::string> settings = differing_settings(runs);
  if (settings.empty()) return "Equal data, seed, mini-batch and number of steps.";
  return fmt::format("The runs differ in {}: compare with care.", listed(settings));
}

}  // namespace frostpipe
