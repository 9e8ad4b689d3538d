#pragma once
#include <string>

#include "executor/execute.h"

namespace CLI {
class App;
}

namespace frostpipe {

/// The options that `frostpipe evaluate` and `frostpipe nets evaluate` have in common.
struct EvaluationOptions {
  std::string predictions;  // file to write; empty = none
  EvaluateOptions evaluate;
  std::string format;
};

/// Help texts that differ between the two commands.
struct EvaluationTexts {
  const char *data, *predictions;
};

/// Adds --model, --data, --predictions, --batch-size and --format.
void add_evaluation_options(CLI::App& command, EvaluationOptions& options, const EvaluationTexts& texts);

/// Scores the model by `score`, which is evaluate() or evaluate_net(), and prints the result; returns the exit code.
int print_evaluation(EvaluationOptions& options, Evaluation (*score)(const EvaluateOptions&, const Progress&));

}  // namespace frostpipe
