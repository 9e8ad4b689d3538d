#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "executor/data/chats/examples.h"
#include "executor/data/question_windows.h"
#include "executor/data/split.h"
#include "executor/data/tagged_words.h"
#include "executor/data/text_data.h"
#include "executor/execute.h"
#include "executor/loading/image_samples.h"
#include "executor/loading/samples.h"
#include "executor/models/folder/model_folder.h"

namespace frostpipe {

/// The data that a run trains and tests on.
struct Dataset {
  Task task = Task::sequence_classification;
  ProblemType problem_type = ProblemType::single_label;
  int usual_max_tokens = kMaxTokens;  // of samples where SampleOptions::max_tokens is 0
  AnswerShape answer_shape{};         // of the model's answers
  std::unique_ptr<Samples> samples;
  Split split;
  std::vector<std::string> label_names;      // for classification
  std::vector<int> labels;                   // for classification, by sample; empty if they are to be predicted
  std::vector<std::vector<double>> targets;  // the same for several labels and for regression, as in TextData
  QuestionSet questions;                     // for question answering
  std::vector<Window> windows;               // one per sample
  TaggedWords words;                         // for token classification; each sentence is a sample
  /// For each sentence, the positions of its words' first tokens in the sample; -1 for a word that is cut off or has no
  /// tokens.
  std::vector<std::vector<int>> first_tokens;
  std::vector<int> test_by_length;  // split.test sorted by length, so that attention can batch samples of one length
  /// Set only for classification, if the data are to be scored: each text, or the place of each picture.
  std::vector<std::string> items;
  std::vector<std::string> notes;  // possible mistakes in the data: messages for the user
};

/// Returns the task of the data: a folder or a CIFAR file (.bin) holds pictures, .conll and .bio words with labels,
/// .txt text without labels (or words, if it begins with -DOCSTART-), .json questions or records, .jsonl and .ndjson
/// records; anything else is a table. Records and tables hold texts with labels, words with labels, or training
/// examples of a causal model (kind_of_records); what is not a regular file, such as a pipe, holds texts with labels.
/// Throws InvalidInput if the data do not exist, and as kind_of_records() does.
Task task_of(const std::filesystem::path& data, const ColumnNames& columns = {});

/// Reads the data, sets the task and labels of `folder` accordingly, and converts the samples to model inputs. Test
/// samples are numbered after the training samples. Throws InvalidInput that names the file, also if the folder's
/// vocabulary has more tokens than its config says.
Dataset load_dataset(const DataSource& source, const SampleOptions& options, ModelFolder& folder);

/// Reads data that the folder's model is to score, without changing the model's head. All samples are in split.train,
/// and labels must be among the folder's. Texts and words need no labels; each line of a .txt file is a text for a
/// classifier of texts, and a sentence for a classifier of words. Prompts without an answer are left out where answers
/// are optional. Throws InvalidInput as load_dataset() does, and, for data that are classified, unless the folder names
/// its labels, each differently.
Dataset load_to_score(const std::filesystem::path& data, const SampleOptions& options, ModelFolder& folder,
                      Answers answers = Answers::required);

/// These do what load_dataset() and load_to_score() do, for pictures and without a model folder: they leave
/// `answer_shape` unset. Labels are in the order of `known_labels` if the data have the same ones.
Dataset load_pictures(const DataSource& source, const ImageInput& input, const std::vector<std::string>& known_labels);
Dataset load_pictures_to_score(const std::filesystem::path& data, const ImageInput& input,
                               const std::vector<std::string>& labels);

/// Returns a hash of every sample's content and of the split, to check that a resumed run has the same data.
std::string fingerprint(const Dataset& dataset);

/// Throws InvalidInput unless the folder names its labels, each differently.
void require_different_labels(const std::filesystem::path& model_folder, const std::vector<std::string>& label_names);

}  // namespace frostpipe
