#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/read_table.h"
#include "executor/data/images.h"
#include "executor/data/squad.h"
#include "executor/data/tagged_words.h"
#include "executor/data/text_data.h"
#include "serving/import/arrival_times.h"
#include "tests/fuzz/mutations.h"

namespace frostpipe {
namespace {

using test::fuzz;
using test::ScratchFolder;

void fuzz_texts(const std::string& valid) {
  const ScratchFolder folder;
  fuzz(valid, [&](const std::string& text) {
    const TextData data = read_texts(folder.write("texts", text));
    if (data.texts.size() != data.labels.size()) throw std::logic_error("texts and labels differ in number");
    std::string again = csv_line({"text", "label"});
    for (std::size_t i = 0; i < data.texts.size(); ++i)
      again += csv_line({data.texts[i], data.label_names.at(data.labels[i])});
    try {
      if (read_texts(folder.write("texts", again)).texts != data.texts)
        throw std::logic_error("read, written and read again are other texts");
    } catch (const InvalidInput& error) {
      throw std::logic_error(error.what());
    }
  });
}

TEST(Fuzz, TextTables) {
  fuzz_texts("text\tlabel\na fine film\tpositive\n\"dull\", they said\tnegative\nund s\xc3\xbc\xc3\x9f\tpositive\n");
}

TEST(Fuzz, TextTablesAsCsv) {
  fuzz_texts(
      "text,label\na fine film,positive\n\"dull, they said\",negative\r\n\"say \"\"so\"\"\nund "
      "s\xc3\xbc\xc3\x9f\",positive\n");
}

void fuzz_several_labels(const std::string& name, const std::string& valid) {
  const ScratchFolder folder;
  fuzz(valid, [&](const std::string& text) {
    const TextData data = read_texts(folder.write(name, text), {}, ProblemType::multi_label);
    if (data.texts.size() != data.targets.size()) throw std::logic_error("texts and labels differ in number");
    for (const std::vector<double>& targets : data.targets)
      if (data.problem_type == ProblemType::multi_label && targets.size() != data.label_names.size())
        throw std::logic_error("a text has a number for each label");
  });
}

TEST(Fuzz, TextsWithSeveralLabels) {
  fuzz_several_labels("lists.jsonl",
                      "{\"text\": \"a\", \"labels\": [\"x\", \"y\"]}\n{\"text\": \"b\", \"labels\": []}\n");
  fuzz_several_labels("lists.csv", "text,label\na,\"[\"\"x\"\", \"\"y\"\"]\"\nb,\nc,x\n");
  fuzz_several_labels("flags.csv", "text,x,y\na,0,1\nb,1,1\nc,0,0\n");
}

void fuzz_words(const std::string& name, const std::string& valid) {
  const ScratchFolder folder;
  fuzz(valid, [&](const std::string& text) {
    const TaggedWords words = read_tagged_words(folder.write(name, text), {});
    for (const TaggedSentence& sentence : words.sentences) {
      if (sentence.words.size() != sentence.labels.size()) throw std::logic_error("a word has a label");
      for (const int label : sentence.labels)
        if (words.label_names.at(label).empty()) throw std::logic_error("a label has a name");
    }
  });
}

TEST(Fuzz, WordsWithLabels) {
  fuzz_words("a.conll", "-DOCSTART- -X- O\n\nAda NNP B-PER\nslept VBD O\n\nYes UH O\n");
  fuzz_words("a.bio", "Ada\tB-PER\nslept\tO\n");
  fuzz_words("a.jsonl", "{\"tokens\": [\"Ada\", \"slept\"], \"ner_tags\": [\"B-PER\", \"O\"]}\n");
}

TEST(Fuzz, RecordedArrivals) {
  fuzz("TIMESTAMP,tokens\n2023-11-16 18:17:03.9799600,4808\r\n2024-02-29T00:00:00Z,1\n12.5,3\n",
       [](const std::string& text) {
         const std::vector<Nanoseconds> times = import_arrival_times(text, "times.csv");
         if (times.front() != 0) throw std::logic_error("times count from the earliest");
         std::string again;
         for (const Nanoseconds time_ns : times)
           again += std::to_string(time_ns / 1'000'000'000) + "." +
                    std::to_string(1'000'000'000 + time_ns % 1'000'000'000).substr(1) + "\n";
         const std::vector<Nanoseconds> read_again = import_arrival_times(again, "again.csv");
         for (std::size_t i = 0; i < times.size(); ++i) {
           // As a double, the longest allowed time is exact only to some hundred nanoseconds.
           if (std::abs(read_again.at(i) - times[i]) > 1'024)
             throw std::logic_error("read, written and read again are other times");
         }
       });
}

TEST(Fuzz, Questions) {
  const ScratchFolder folder;
  fuzz(
      R"({"data":[{"paragraphs":[{"context":"a fine film","qas":[{"id":"1","question":"what?",
       "answers":[{"text":"fine","answer_start":2}]}]}]}]})",
      [&](const std::string& text) {
        const QuestionSet set = read_squad(folder.write("questions.json", text));
        for (const Question& question : set.questions) {
          for (const std::string& answer : question.answers)
            if (set.contexts.at(question.context).find(answer) == std::string::npos)
              throw std::logic_error("an answer outside its context");
        }
      });
}

TEST(Fuzz, CifarRecords) {
  const ScratchFolder folder;
  std::string valid;
  for (int record = 0; record < 2; ++record)
    valid += std::string(1, static_cast<char>(record)) + std::string(3072, 'x');
  fuzz(valid, [&](const std::string& text) {
    const ImageData data = open_images(folder.write("cifar10.bin", text));
    for (int i = 0; i < data.size(); ++i) {
      if (data.load(i).pixels.size() != 3072 || data.label(i) < 0 || data.label(i) >= 10)
        throw std::logic_error("not a picture of CIFAR");
    }
  });
}

}  // namespace
}  // namespace frostpipe
