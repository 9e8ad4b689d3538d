#include "executor/loading/held_out.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/error_values.h"

namespace frostpipe {
namespace {

/// Returns whether the test samples are not chosen at random, since they are a separate file or there are to be none.
bool is_given(const DataSource& source) { return !source.test_data.empty() || source.held_out == 0; }

Split given_split(int num_train, const Dataset& dataset) {
  return {.train = numbers(0, num_train), .test = numbers(num_train, dataset.samples->size())};
}

}  // namespace

std::vector<int> numbers(int begin, int end) {
  std::vector<int> result(end - begin);
  std::iota(result.begin(), result.end(), begin);
  return result;
}

void hold_out_by_label(const DataSource& source, int num_train, Dataset& dataset) {
  const int size = dataset.samples->size();
  if (is_given(source)) {
    dataset.split = given_split(num_train, dataset);
    return;
  }
  const std::vector<std::string> single = labels_of_one_sample(dataset.labels, dataset.label_names);
  if (static_cast<int>(single.size()) == size)
    throw InvalidInput(source.data.string(),
                       "must have at least two samples of a label, one to train on and one to test on (or give "
                       "--test-data FILE, or --held-out 0 to test on nothing)",
                       fmt::format("with one of each of its {} labels: {}", size, in_quotes(single)));
  if (!single.empty())
    dataset.notes.push_back(fmt::format(
        "{}: {} of {} labels ha{} a single sample, which is trained on and never tested on: {}", source.data.string(),
        single.size(), dataset.label_names.size(), single.size() == 1 ? "s" : "ve", in_quotes(single)));
  dataset.split = with_place(source.data.string(), [&] {
    return hold_out(dataset.labels, static_cast<int>(dataset.label_names.size()), source.held_out, source.seed);
  });
}

void hold_out_of_all(const DataSource& source, int num_train, Dataset& dataset) {
  if (is_given(source)) {
    dataset.split = given_split(num_train, dataset);
    return;
  }
  if (num_train < 2)
    throw InvalidInput(source.data.string(),
                       "must have at least two samples, one to train on and one to test on (or give --test-data FILE, "
                       "or --held-out 0 to test on nothing)",
                       "with one");
  dataset.split = with_place(source.data.string(),
                             [&] { return hold_out(std::vector<int>(num_train, 0), 1, source.held_out, source.seed); });
}

void hold_out_by_context(const DataSource& source, int num_train_questions, Dataset& dataset) {
  std::vector<int> asked_about;  // contexts that have questions
  for (const Question& question : dataset.questions.questions) asked_about.push_back(question.context);
  std::sort(asked_about.begin(), asked_about.end());
  asked_about.erase(std::unique(asked_about.begin(), asked_about.end()), asked_about.end());
  std::vector<int> held_out;
  if (source.test_data.empty()) {
    if (asked_about.size() < 2 && source.held_out > 0)
      throw InvalidInput(source.data.string(),
                         "must have questions about at least two texts, one to train on and one to test on (or give "
                         "--test-data FILE, or --held-out 0 to test on nothing)",
                         fmt::format("with those about {}", asked_about.size()));
    const Split contexts = with_place(source.data.string(), [&] {
      return hold_out(std::vector<int>(asked_about.size(), 0), 1, source.held_out, source.seed);
    });
    for (const int index : contexts.test) held_out.push_back(asked_about[index]);
  }
  for (int i = 0; i < static_cast<int>(dataset.windows.size()); ++i) {
    const int question = dataset.windows[i].question;
    const bool tests = source.test_data.empty() ? std::binary_search(held_out.begin(), held_out.end(),
                                                                     dataset.questions.questions[question].context)
                                                : question >= num_train_questions;
    (tests ? dataset.split.test : dataset.split.train).push_back(i);
  }
}

}  // namespace frostpipe
