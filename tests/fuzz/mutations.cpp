#include "tests/fuzz/mutations.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "profiles/error.h"

namespace frostpipe::test {
namespace {

/// The first kNumbers of kPieces are numbers.
constexpr std::size_t kNumbers = 7;
const std::string kPieces[] = {"0",
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

}  // namespace

int num_cases() {
  const char* const text = std::getenv("FROSTPIPE_FUZZ_CASES");
  return text ? std::atoi(text) : 3000;
}

std::string Mutator::operator()(std::string text) {
  for (int changes = 1 + below(4); changes > 0; --changes) change(text);
  return text;
}

void Mutator::change(std::string& text) {
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
      text.replace(digit, end - digit, kPieces[below(kNumbers)]);
      return;
    }
    default: {  // two places swapped
      if (text.size() < 2) return;
      std::swap(text[below(text.size())], text[below(text.size())]);
    }
  }
}

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

ScratchFolder::ScratchFolder() : path_("/dev/shm/frostpipe_fuzz_" + std::to_string(getpid())) {
  std::filesystem::create_directories(path_);
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path ScratchFolder::write(const std::string& name, const std::string& text) const {
  std::filesystem::path file = path_ / name;
  std::ofstream stream(file, std::ios::binary | std::ios::trunc);
  stream << text;
  stream.close();
  if (!stream) throw std::runtime_error(file.string() + " cannot be written");
  return file;
}

}  // namespace frostpipe::test
