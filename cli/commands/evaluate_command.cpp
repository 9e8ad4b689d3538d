#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/shared/common_options.h"
#include "cli/shared/evaluation.h"

namespace frostpipe {

Command add_evaluate_command(CLI::App& app) {
  const auto options = std::make_shared<EvaluationOptions>();
  CLI::App* command = app.add_subcommand("evaluate", "Score a trained model on data that it has not seen");
  add_evaluation_options(
      *command, *options,
      {.data = "Data of the kind that train takes. They may lack labels, and prompts and chats may lack an answer if "
               "--predictions completes them. Texts may be the lines of a .txt file",
       .predictions =
           "Also write each prediction to this file: labels as CSV (text, label, predicted, probability; several "
           "labels as lists in JSON, numbers without a probability), words with their labels as columns, "
           "answers to questions as SQuAD's script reads them ({\"id\": \"answer\"}), completions of prompts "
           "as JSON Lines (prompt, completion, expected)"});
  add_count_option(*command, "--max-new-tokens", options->evaluate.max_new_tokens,
                   "Largest number of tokens in a completion, which ends earlier at a token that ends a text")
      ->needs(command->get_option("--predictions"));
  add_sample_options(*command, options->evaluate.samples);
  add_record_options(*command, options->evaluate.samples);
  add_device_option(*command, options->evaluate.device);
  command->footer(
      "Example:\n  frostpipe evaluate --model runs/elastic/model --data unseen.csv --predictions predicted.csv");
  return {command, [options] { return print_evaluation(*options, evaluate); }};
}

}  // namespace frostpipe
