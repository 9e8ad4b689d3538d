#include "tests/fuzz/mutations.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/time.h>
#include <unistd.h>

#include <cctype>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "tests/fuzz/hostile_json.h"

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

const std::string* text_that_is_read = nullptr;

/// Uses only functions that a signal handler may call.
void write_failure(const std::string& text) {
  const int file = open("fuzz-failure", O_WRONLY | O_CREAT | O_TRUNC, 0666);
  [[maybe_unused]] const ssize_t written = write(file, text.data(), text.size());
  close(file);
}

void end_slow_case(int) {
  write_failure(*text_that_is_read);
  constexpr std::string_view kMessage = "a case of over 5 s (written to fuzz-failure)\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kMessage.data(), kMessage.size());
  std::abort();
}

}  // namespace

int num_cases() {
  const char* const text = std::getenv("FROSTPIPE_FUZZ_CASES");
  return text ? std::atoi(text) : 2000;
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

namespace {

/// Words of libraries, which are meaningless to users.
constexpr const char* kForeignWords[] = {"[json.exception", "std::",   "basic_string",
                                         "vector::_M",      "map::at", "filesystem error"};

/// The fault of an error message, or nothing if it is one of ours and of bounded length.
std::string what_is_wrong_with(std::string_view message) {
  for (const char* const word : kForeignWords)
    if (message.find(word) != std::string_view::npos) return fmt::format("the message says {}", word);
  constexpr std::size_t kLongestMessage = 5000;
  return message.size() > kLongestMessage ? fmt::format("a message of {} bytes", message.size()) : "";
}

/// Limits the processor time of reading a text while this object exists: beyond it the program ends.
class TimeLimit {
 public:
  explicit TimeLimit(const std::string& text) {
    text_that_is_read = &text;
    set({.it_interval = {}, .it_value = {.tv_sec = 5, .tv_usec = 0}});
  }
  ~TimeLimit() { set({}); }
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

 private:
  static void set(const itimerval& value) { setitimer(ITIMER_VIRTUAL, &value, nullptr); }
};

/// The error message if it is refused.
std::optional<std::string> refusal_of(const std::string& text, const std::function<void(const std::string&)>& read) {
  const TimeLimit limit(text);
  try {
    read(text);
    return std::nullopt;
  } catch (const InvalidInput& error) {
    if (const std::string wrong = what_is_wrong_with(error.what()); !wrong.empty())
      throw std::logic_error(fmt::format("{}: {}", wrong, std::string_view(error.what()).substr(0, 500)));
    return error.what();
  }
}

void fuzz_with(const std::string& valid, const std::function<std::string()>& next,
               const std::function<void(const std::string&)>& read) {
  int refused = 0;
  for (int i = 0; i < num_cases(); ++i) {
    const std::string text = i == 0 ? valid : next();
    try {
      const std::optional<std::string> refusal = refusal_of(text, read);
      ASSERT_TRUE(!refusal || i > 0) << "the valid input is refused: " << *refusal;
      refused += refusal ? 1 : 0;
    } catch (const std::exception& error) {
      write_failure(text);
      FAIL() << "case " << i << " (written to fuzz-failure): " << error.what();
    }
  }
  EXPECT_GT(refused, num_cases() / 4) << "the mutations hardly change anything";
}

}  // namespace

void fuzz(const std::string& valid, const std::function<void(const std::string&)>& read) {
  std::signal(SIGVTALRM, end_slow_case);
  Mutator mutate(7);
  fuzz_with(
      valid, [&] { return mutate(valid); }, read);
  if (!nlohmann::json::accept(valid)) return;
  HostileJson hostile(valid, 7);
  fuzz_with(
      valid, [&] { return hostile.next(); }, read);
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
