/// Tokenizes many texts with frostpipe's tokenizer, for scripts/bench-tokenizers; bench/tokenizers/library.py does the
/// same with the `tokenizers` library.
///
///     frostpipe_token_results results FOLDER TEXTS OUTPUT    writes ids, positions and decoded text
///     frostpipe_token_results time FOLDER TEXTS              prints the processor's seconds for the ids of all texts
///
/// FOLDER holds tokenizer.json. TEXTS holds a size (4 bytes) and that many bytes of UTF-8 for each text. OUTPUT gets,
/// for each text, four arrays, each after its number of elements: the ids with the post-processor's tokens; the ids
/// without them; begin and end of each of the latter in code points; the bytes of their decoded text. All numbers have
/// 4 bytes and the processor's byte order.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <exception>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "executor/data/tokenizers/tokenizer.h"

namespace {

using frostpipe::SpannedTokens;
using frostpipe::Tokenizer;

std::string content_of(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw frostpipe::InvalidInput(path, "must be a file that can be read", "missing or unreadable");
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Returns the texts of a file; they refer to `content`.
std::vector<std::string_view> texts_in(std::string_view content) {
  std::vector<std::string_view> texts;
  while (!content.empty()) {
    std::uint32_t size = 0;
    if (content.size() < sizeof size) throw frostpipe::InvalidInput("TEXTS: ends within the size of a text");
    std::memcpy(&size, content.data(), sizeof size);
    content.remove_prefix(sizeof size);
    if (content.size() < size) throw frostpipe::InvalidInput("TEXTS: ends within a text");
    texts.push_back(content.substr(0, size));
    content.remove_prefix(size);
  }
  return texts;
}

template <typename Array>
void write_array(std::ofstream& file, const Array& array) {
  const auto size = static_cast<std::uint32_t>(array.size());
  file.write(reinterpret_cast<const char*>(&size), sizeof size);
  file.write(reinterpret_cast<const char*>(array.data()),
             static_cast<std::streamsize>(array.size() * sizeof *array.data()));
}

void write_results(const Tokenizer& tokenizer, const std::vector<std::string_view>& texts, const char* path) {
  std::ofstream file(path, std::ios::binary);
  for (const std::string_view text : texts) {
    write_array(file, tokenizer.encode(text));
    const SpannedTokens tokens = tokenizer.encode_with_spans(text);
    write_array(file, tokens.ids);
    write_array(file, tokens.spans);
    write_array(file, tokenizer.decode(tokens.ids));
  }
  if (!file.flush()) throw frostpipe::RuntimeFailure(std::string(path) + ": could not be written; is the disk full?");
}

double seconds_of(const Tokenizer& tokenizer, const std::vector<std::string_view>& texts) {
  std::size_t num_ids = 0;
  const std::clock_t begin = std::clock();
  for (const std::string_view text : texts) num_ids += tokenizer.encode(text).size();
  const std::clock_t end = std::clock();
  if (num_ids == 0) throw frostpipe::InvalidInput("the texts have no tokens");
  return static_cast<double>(end - begin) / CLOCKS_PER_SEC;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view task = argc > 1 ? argv[1] : "";
  if (!(task == "results" && argc == 5) && !(task == "time" && argc == 4)) {
    std::fputs("usage: frostpipe_token_results results FOLDER TEXTS OUTPUT | time FOLDER TEXTS\n", stderr);
    return 2;
  }
  try {
    const Tokenizer tokenizer(argv[2]);
    const std::string content = content_of(argv[3]);
    if (task == "results") {
      write_results(tokenizer, texts_in(content), argv[4]);
    } else {
      std::printf("%.6f\n", seconds_of(tokenizer, texts_in(content)));
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "frostpipe_token_results: %s\n", error.what());
    return 1;
  }
}
