#pragma once
// Oracle: a reader either throws InvalidInput, in our own words and few of them, or gives a value that it writes and
// reads again as the same. Everything else fails the program: other exceptions, signals (sanitizers, where built with
// them), 5 s of a core for one case, and any allocation beyond that of allocation_limit.cpp. Cases are mutations of
// valid input, the same in every run.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <random>
#include <string>

namespace frostpipe::test {

/// FROSTPIPE_FUZZ_CASES, or as many as a unit test has time for.
int num_cases();

/// Changes a valid input in one to four places.
class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  std::string operator()(std::string text);
  /// From 0 to bound - 1.
  int below(std::size_t bound) { return bound == 0 ? 0 : static_cast<int>(random_() % bound); }

 private:
  void change(std::string& text);

  std::mt19937_64 random_;
};

/// Reads num_cases() mutations of `valid`, of which the first is `valid` itself, and where it is JSON as many with
/// hostile values (hostile_json.h). `read` may throw InvalidInput, though not of the first, and nothing else; another
/// exception's input is written to the file fuzz-failure.
void fuzz(const std::string& valid, const std::function<void(const std::string&)>& read);

/// A folder in memory, whose files are written again for every case. One at a time in a process.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  /// Writes a file and returns its path. Throws std::runtime_error.
  std::filesystem::path write(const std::string& name, const std::string& text) const;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace frostpipe::test
