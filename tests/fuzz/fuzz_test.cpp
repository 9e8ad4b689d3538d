// Oracle: a reader either throws InvalidInput, or gives a value that it writes and reads again as the same. Everything
// else fails the program: other exceptions, signals (sanitizers, where built with them), and any allocation beyond
// kLargestAllocation. Cases are mutations of valid input, the same in every run.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <new>
#include <random>
#include <string>

#include "executor/data/byte_level_bpe.h"
#include "executor/data/images.h"
#include "executor/data/question_windows.h"
#include "executor/data/table.h"
#include "executor/data/text_data.h"
#include "executor/data/wordpiece.h"
#include "executor/job/activation_store.h"
#include "executor/job/checkpoint.h"
#include "executor/job/safetensors.h"
#include "plan/plan.h"
#include "plan/schedule.h"
#include "plan/summary.h"
#include "profiles/cluster.h"
#include "profiles/error.h"
#include "profiles/files.h"
#include "profiles/profile.h"
#include "tests/support/synthetic_profile.h"

namespace {

constexpr std::size_t kLargestAllocation = 64 << 20;

void* allocate(std::size_t size) {
  if (size > kLargestAllocation) {
    std::fprintf(stderr, "an allocation of %zu bytes for a small input\n", size);
    std::abort();
  }
  void* const memory = std::malloc(size == 0 ? 1 : size);
  if (!memory) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t size) { return allocate(size); }
void* operator new[](std::size_t size) { return allocate(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return allocate(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace frostpipe {
namespace {

int num_cases() {
  const char* const text = std::getenv("FROSTPIPE_FUZZ_CASES");
  return text ? std::atoi(text) : 3000;
}

/// Changes a valid input in one to four places.
class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  std::string operator()(std::string text) {
    for (int changes = 1 + below(4); changes > 0; --changes) change(text);
    return text;
  }
  int below(std::size_t bound) { return bound == 0 ? 0 : static_cast<int>(random_() % bound); }

 private:
  void change(std::string& text) {
    static const std::string kPieces[] = {"0",
                                          "-1",
                                          "1e308",
                                          "18446744073709551615",
                                          "9223372036854775807",
                                          "-9223372036854775808",
                                          "2147483648",
                                          "null",
                                          "true",
                                          "{}",
                                          "[]",
                                          "\"\"",
                                          "\"NaN\"",
                                          ",",
                                          ":",
                                          "{",
                                          "}",
                                          "[",
                                          "]",
                                          "\"",
                                          "\\u0000",
                                          "\n",
                                          "\t",
                                          "\xff\xfe",
                                          "\xf0\x9f\x98\x80",
                                          "\xed\xa0\x80",
                                          std::string(1, '\0'),
                                          "[[[[[[[[[[[[[[[[",
                                          "0.1",
                                          "e"};
    const int at = below(text.size() + 1);
    switch (below(8)) {
      case 0:  // a bit
        if (!text.empty()) text[below(text.size())] ^= static_cast<char>(1 << below(8));
        return;
      case 1:  // a byte
        if (!text.empty()) text[below(text.size())] = static_cast<char>(below(256));
        return;
      case 2:  // less
        text.erase(at, below(20) + 1);
        return;
      case 3:  // the end
        text.resize(at);
        return;
      case 4: {  // something twice
        const std::string piece = text.substr(at, below(40) + 1);
        text.insert(below(text.size() + 1), piece);
        return;
      }
      case 5:  // something else
        text.insert(at, kPieces[below(std::size(kPieces))]);
        return;
      case 6: {  // another number
        const std::size_t digit = text.find_first_of("0123456789", at);
        if (digit == std::string::npos) return;
        std::size_t end = digit;
        while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end]))) ++end;
        text.replace(digit, end - digit, kPieces[below(7)]);
        return;
      }
      default: {  // two places swapped
        if (text.size() < 2) return;
        std::swap(text[below(text.size())], text[below(text.size())]);
      }
    }
  }

  std::mt19937_64 random_;
};

/// Reads mutations of `valid`; `read` may throw InvalidInput and nothing else.
void fuzz(const std::string& valid, const std::function<void(const std::string&)>& read) {
  Mutator mutate(7);
  int refused = 0;
  for (int i = 0; i < num_cases(); ++i) {
    const std::string text = i == 0 ? valid : mutate(valid);
    try {
      read(text);
    } catch (const InvalidInput&) {
      ++refused;
      ASSERT_GT(i, 0) << "the valid input is refused";
    } catch (const std::exception& error) {
      std::ofstream("fuzz-failure", std::ios::binary) << text;
      FAIL() << "case " << i << " (written to fuzz-failure): " << error.what();
    }
  }
  EXPECT_GT(refused, num_cases() / 4) << "the mutations hardly change anything";
}

/// A file in memory that is written anew for every case.
class ScratchFile {
 public:
  ScratchFile() : path_("/dev/shm/frostpipe_fuzz_" + std::to_string(getpid())) {}
  ~ScratchFile() { std::filesystem::remove(path_); }
  const std::filesystem::path& write(const std::string& text) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << text;
    return path_;
  }

 private:
  std::filesystem::path path_;
};

TrainingPlan small_plan() {
  TrainingPlan plan{.method = "static", .world_size = 2, .global_batch_size = 8, .num_steps = 20, .phases = {Phase{}}};
  plan.phases[0].layout = {.pipeline_parallel_size = 2, .placement = {1, 0}};
  plan.phases[0].partition = {{0, 2}, {2, 6}};
  plan.phases[0].cache.found = {{2, 0.5}};
  return plan;
}

RunSummary small_run() {
  RunSummary run{.name = "run",
                 .phases = {PhaseSummary{}},
                 .steps = {{.step = 0, .loss = 0.5}},
                 .label_names = {"a", "b"},
                 .test_items = {1},
                 .test_labels = {0},
                 .test_predictions = {1}};
  run.recoveries.push_back({.step = 3, .cause = "c", .source = "s"});
  return run;
}

TEST(Fuzz, Profiles) {
  fuzz(to_json(test::synthetic_profile(2, std::vector<test::SyntheticLayer>(6))), [](const std::string& text) {
    const Profile profile = profile_from_json(text, "profile.json");
    if (profile_from_json(to_json(profile), "again") != profile)
      throw std::logic_error("read, written and read again is another profile");
  });
}

TEST(Fuzz, Clusters) {
  Cluster cluster{.name = "c", .devices = {{}, {.memory_limit_bytes = 1 << 20}}};
  fuzz(to_json(cluster), [](const std::string& text) {
    const Cluster read = cluster_from_json(text, "cluster.json");
    if (cluster_from_json(to_json(read), "again") != read)
      throw std::logic_error("read, written and read again is another cluster");
  });
}

TEST(Fuzz, PlansAndTheirValidation) {
  const Model model = test::synthetic_model(2);
  fuzz(to_json(small_plan()), [&](const std::string& text) {
    const TrainingPlan plan = plan_from_json(text, "plan.json");
    if (plan_from_json(to_json(plan), "again") != plan)
      throw std::logic_error("read, written and read again is another plan");
    validate(plan, model, "plan.json");
  });
}

TEST(Fuzz, Runs) {
  fuzz(to_json(small_run()),
       [](const std::string& text) { run_from_json(to_json(run_from_json(text, "run.json")), "again"); });
}

TEST(Fuzz, Safetensors) {
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"b":{"dtype":"BF16",
       "shape":[4],"data_offsets":[24,32]}})";
  std::string valid(8, '\0');
  valid[0] = static_cast<char>(header.size());
  valid += header + std::string(32, 'x');
  ScratchFile scratch;
  fuzz(valid, [&](const std::string& text) {
    const SafetensorsFile file(scratch.write(text));
    std::size_t sum = 0;
    for (const auto& [name, tensor] : file.tensors()) {
      for (const std::byte value : tensor.data) sum += static_cast<std::size_t>(value);
    }
    if (sum > 255 * text.size() * file.tensors().size()) throw std::logic_error("tensors hold more than the file");
  });
}

TEST(Fuzz, Checkpoints) {
  const std::filesystem::path folder = "/dev/shm/frostpipe_fuzz_checkpoint_" + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  Checkpoint checkpoint{.step = 3,
                        .settings = {.num_steps = 20, .optimizer = "adamw", .dtype = "float32"},
                        .freeze_rule = "paper",
                        .freeze_state = {1, 2},
                        .plan = small_plan(),
                        .run = small_run()};
  const CheckpointTexts texts = to_texts(checkpoint, {});
  for (const auto& [name, content] : {std::pair("checkpoint.json", texts.checkpoint),
                                      std::pair("plan.json", texts.plan), std::pair("run.json", texts.run)}) {
    std::ofstream(folder / "checkpoint.json", std::ios::trunc) << texts.checkpoint;
    std::ofstream(folder / "plan.json", std::ios::trunc) << texts.plan;
    std::ofstream(folder / "run.json", std::ios::trunc) << texts.run;
    fuzz(content, [&](const std::string& text) {
      std::ofstream(folder / name, std::ios::binary | std::ios::trunc) << text;
      const Checkpoint read = read_checkpoint(folder);
      if (read.plan != checkpoint.plan || read.run != checkpoint.run || read.step != checkpoint.step)
        throw std::logic_error("a changed checkpoint was read as another one");
    });
  }
  std::filesystem::remove_all(folder);
}

TEST(Fuzz, CacheEntries) {
  const std::string name = "frostpipe_fuzz_store_" + std::to_string(getpid());
  const auto store = ActivationStore::create({.entry_bytes = {256, 256}, .memory_bytes = 4096}, name);
  const std::vector<std::byte> written(256, std::byte{3});
  std::vector<std::byte> read(256);
  const std::uint64_t key = 77;
  const std::string path = store->files().shared;
  ASSERT_TRUE(store->write(0, key, written));
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  std::mt19937_64 random(7);
  const auto size = static_cast<std::streamoff>(std::filesystem::file_size(path));
  int missed = 0;
  for (int i = 0; i < num_cases(); ++i) {
    for (int change = 0; change < 3; ++change) {  // anywhere behind the header: tables and entries
      file.seekp(16 + static_cast<std::streamoff>(random() % static_cast<std::uint64_t>(size - 16)));
      file.put(static_cast<char>(random()));
    }
    file.flush();
    const std::uint64_t found = store->read(0, std::span(&key, 1), read);
    ASSERT_TRUE(found == 0 || (found == key && read == written)) << "case " << i << ": another entry than was written";
    if (found == 0) {
      ++missed;
      ASSERT_TRUE(store->write(0, key, written));
      ASSERT_EQ(store->read(0, std::span(&key, 1), read), key)
          << "case " << i << ": a damaged entry cannot be written again";
    }
  }
  EXPECT_GT(missed, 0);
}

void fuzz_texts(const std::string& valid) {
  ScratchFile scratch;
  fuzz(valid, [&](const std::string& text) {
    const TextData data = read_texts(scratch.write(text));
    if (data.texts.size() != data.labels.size()) throw std::logic_error("texts and labels differ in number");
    std::string again = csv_line({"text", "label"});
    for (std::size_t i = 0; i < data.texts.size(); ++i)
      again += csv_line({data.texts[i], data.label_names.at(data.labels[i])});
    try {
      if (read_texts(scratch.write(again)).texts != data.texts)
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

void fuzz_tokenizer(const std::string& valid, const char* extension) {
  const std::filesystem::path path = "/dev/shm/frostpipe_fuzz_tokenizer_" + std::to_string(getpid()) + extension;
  fuzz(valid, [&](const std::string& text) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
    const WordPiece tokenizer(path);
    tokenizer.encode("A fine film, s\xc3\xbc\xc3\x9f \xff", 16);
  });
  std::filesystem::remove(path);
}

TEST(Fuzz, Vocabularies) { fuzz_tokenizer("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nfine\nfilm\n##s\n,\n", ".txt"); }

TEST(Fuzz, TokenizerFiles) {
  fuzz_tokenizer(
      R"({"version":"1.0","normalizer":{"type":"BertNormalizer","lowercase":true},"model":{"type":"WordPiece",
       "unk_token":"[UNK]","continuing_subword_prefix":"##",)"
      R"("max_input_chars_per_word":100,"vocab":{"[PAD]":0,"[UNK]":1,"[CLS]":2,"[SEP]":3,"[MASK]":4,"a":5,"fine":6,
       "film":7,"##s":8,",":9}}})",
      "tokenizer.json");
}

TEST(Fuzz, AnyTextThroughATokenizer) {
  const std::filesystem::path path = "/dev/shm/frostpipe_fuzz_vocabulary_" + std::to_string(getpid()) + ".txt";
  std::ofstream(path) << "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nfine\nfilm\n##s\n,\n";
  const WordPiece tokenizer(path);
  Mutator mutate(9);
  for (int i = 0; i < num_cases(); ++i) {
    const std::vector<std::int32_t> ids =
        tokenizer.encode(mutate("A fine film, s\xc3\xbc\xc3\x9f and \xe4\xb8\xad\xe6\x96\x87 dull"), 16);
    ASSERT_LE(ids.size(), 16u);
    for (const std::int32_t id : ids) ASSERT_TRUE(id >= 0 && id < 10);
  }
  std::filesystem::remove(path);
}

/// GPT-2's files with a vocabulary of the 256 bytes, one merge and the end of text.
std::string byte_level_vocabulary() {
  std::string json = "{";
  for (int byte = 0, other = 0; byte < 256; ++byte) {
    const bool plain = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    const int c = plain ? byte : 256 + other++;
    std::string character = c < 0x80
                                ? std::string(1, static_cast<char>(c))
                                : std::string{static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))};
    if (character == "\"" || character == "\\") character = "\\" + character;
    json += "\"" + character + "\":" + std::to_string(byte) + ",";
  }
  return json + R"("ab":256,"<|endoftext|>":257})";
}

/// A folder in memory whose files are written anew for every case.
class ScratchFolder {
 public:
  ScratchFolder() : path_("/dev/shm/frostpipe_fuzz_folder_" + std::to_string(getpid())) {
    std::filesystem::create_directories(path_);
  }
  ~ScratchFolder() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& write(const std::string& name, const std::string& text) {
    std::ofstream(path_ / name, std::ios::binary | std::ios::trunc) << text;
    return path_;
  }

 private:
  std::filesystem::path path_;
};

void use(const ByteLevelBpe& tokenizer) {
  const std::string text = "ab cab \xc3\xbc\xff's <|endoftext|>";
  const std::vector<std::int32_t> ids = tokenizer.encode(text);
  for (const std::int32_t id : ids) {
    if (id < 0 || id >= tokenizer.vocabulary_size()) throw std::logic_error("an id outside the vocabulary");
  }
  tokenizer.decode(ids);
}

TEST(Fuzz, ByteLevelVocabularies) {
  ScratchFolder folder;
  folder.write("merges.txt", "#version: 0.2\na b\n");
  fuzz(byte_level_vocabulary(), [&](const std::string& text) { use(ByteLevelBpe(folder.write("vocab.json", text))); });
}

TEST(Fuzz, ByteLevelMerges) {
  ScratchFolder folder;
  folder.write("vocab.json", byte_level_vocabulary());
  fuzz("#version: 0.2\na b\n", [&](const std::string& text) { use(ByteLevelBpe(folder.write("merges.txt", text))); });
}

TEST(Fuzz, ByteLevelTokenizerFiles) {
  ScratchFolder folder;
  fuzz(R"({"model":{"type":"BPE","vocab":)" + byte_level_vocabulary() +
           R"(,"merges":["a b"]},"normalizer":null,"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},)"
           R"("added_tokens":[{"id":257,"content":"<|endoftext|>","special":true}]})",
       [&](const std::string& text) { use(ByteLevelBpe(folder.write("tokenizer.json", text))); });
}

TEST(Fuzz, Questions) {
  ScratchFile scratch;
  fuzz(
      R"({"data":[{"paragraphs":[{"context":"a fine film","qas":[{"id":"1","question":"what?",
       "answers":[{"text":"fine","answer_start":2}]}]}]}]})",
      [&](const std::string& text) {
        const QuestionSet set = read_squad(scratch.write(text));
        for (const Question& question : set.questions) {
          if (set.contexts.at(question.context).find(question.answers.at(0)) == std::string::npos)
            throw std::logic_error("an answer outside its context");
        }
      });
}

/// Every window fits, and where it marks the answer it holds the answer.
TEST(Fuzz, WindowsOfAnyText) {
  ScratchFolder folder;
  folder.write("vocab.json", byte_level_vocabulary());
  const ByteLevelBpe byte_level(folder.write("merges.txt", "#version: 0.2\na b\n"));
  const WordPiece word_piece(folder.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nfine\nfilm\n##s\n,\n") /
                             "vocab.txt");
  Mutator mutate(10);
  for (const PairTokenizer& tokenizer : {pair_tokenizer(word_piece), pair_tokenizer(byte_level)}) {
    for (int i = 0; i < num_cases(); ++i) {
      QuestionSet set{.contexts = {mutate("A fine film, s\xc3\xbc\xc3\x9f and \xe4\xb8\xad\xe6\x96\x87 dull")},
                      .questions = {{.id = "q", .question = mutate("how fine?")}}};
      Question& question = set.questions[0];
      const std::vector<std::size_t> starts = code_point_starts(set.contexts[0]);
      if (starts.size() > 1) {
        question.answer_start = static_cast<int>(mutate.below(starts.size() - 1));
        const std::size_t end = question.answer_start + 1 + mutate.below(starts.size() - 1 - question.answer_start);
        question.answers = {
            set.contexts[0].substr(starts[question.answer_start], starts[end] - starts[question.answer_start])};
      }
      for (const Window& window : windows_of(set, tokenizer, 16, 3)) {
        ASSERT_LE(window.ids.size(), 16u);
        ASSERT_EQ(window.ids.size(), window.num_question_tokens + window.spans.size() + tokenizer.behind.size());
        if (window.end_position == 0) continue;
        ASSERT_TRUE(window.num_question_tokens <= window.start_position &&
                    window.start_position <= window.end_position);
        const TokenSpan first = window.spans.at(window.start_position - window.num_question_tokens),
                        last = window.spans.at(window.end_position - window.num_question_tokens);
        ASSERT_TRUE(first.begin <= question.answer_start &&
                    last.end >=
                        question.answer_start + static_cast<int>(code_point_starts(question.answers[0]).size()) - 1);
        answer_text(set, window, window.start_position, window.end_position);
      }
    }
  }
}

TEST(Fuzz, CifarRecords) {
  const std::filesystem::path path = "/dev/shm/frostpipe_fuzz_cifar10_" + std::to_string(getpid()) + ".bin";
  std::string valid;
  for (int record = 0; record < 2; ++record)
    valid += std::string(1, static_cast<char>(record)) + std::string(3072, 'x');
  fuzz(valid, [&](const std::string& text) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
    const ImageData data = open_images(path);
    for (int i = 0; i < data.size(); ++i) {
      if (data.load(i).pixels.size() != 3072 || data.label(i) < 0 || data.label(i) >= 10)
        throw std::logic_error("not a picture of CIFAR");
    }
  });
  std::filesystem::remove(path);
}

TEST(Fuzz, SchedulesAsCsv) {
  fuzz("0F0,0F1,,0B0,0B1\n,1F0,1B0,1F1,1B1\n",
       [](const std::string& text) { schedule_from_csv(text, "schedule.csv"); });
}

}  // namespace
}  // namespace frostpipe
