#include "cli/serving/generated_load.h"

#include <algorithm>
#include <chrono>
#include <random>

namespace frostpipe {
namespace {

constexpr int kInputs = 16;

struct Arrival {
  Nanoseconds at_ns = 0;
  std::size_t model = 0;
};

std::vector<Arrival> in_order(const ServingLoad& load) {
  std::vector<Arrival> arrivals;
  for (std::size_t model = 0; model < load.arrivals.size(); ++model)
    for (const Nanoseconds at_ns : load.arrivals[model]) arrivals.push_back({at_ns, model});
  std::ranges::stable_sort(arrivals, {}, &Arrival::at_ns);
  return arrivals;
}

RequestInput random_input(const RequestForm& form, std::mt19937_64& random) {
  RequestInput input;
  if (form.image_size > 0) {
    std::vector<float> pixels(static_cast<std::size_t>(3) * form.image_size * form.image_size);
    for (float& pixel : pixels) pixel = static_cast<float>(random() % 2001) / 1000 - 1;
    input.pixels = std::make_shared<const std::vector<float>>(std::move(pixels));
  } else if (form.vocabulary_size > 0) {
    input.tokens.resize(form.max_tokens);
    for (std::int32_t& token : input.tokens) token = static_cast<std::int32_t>(random() % form.vocabulary_size);
  }
  return input;
}

std::vector<std::vector<RequestInput>> random_inputs(const ServedModels& models, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::vector<RequestInput>> inputs;
  for (const std::string& name : models.names()) {
    inputs.emplace_back();
    for (int i = 0; i < kInputs; ++i) inputs.back().push_back(random_input(models.form_of(name), random));
  }
  return inputs;
}

}  // namespace

GeneratedLoad::GeneratedLoad(ServedModels& models, const ServingLoad& load)
    : models_(models),
      inputs_(random_inputs(models, load.seed.value_or(1))),
      load_(load),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

/// Returns false if it was stopped.
bool GeneratedLoad::sleep_until(Nanoseconds at_ns, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  stopped_.wait_until(lock, stop, begin_ + std::chrono::nanoseconds(at_ns), [] { return false; });
  return !stop.stop_requested();
}

void GeneratedLoad::run(const std::stop_token& stop) {
  const std::vector<std::string> names = models_.names();
  std::size_t number = 0;
  for (const auto& [at_ns, model] : in_order(load_)) {
    RequestInput input = inputs_[model][number++ % kInputs];
    if (!sleep_until(at_ns, stop)) return;
    models_.ask(names[model], std::move(input));
  }
  has_ended_ = sleep_until(load_.window_ns, stop);
}

}  // namespace frostpipe
