#pragma once
// Oracle: a reader either throws InvalidInput with a short message of ours, or returns a value that can be written and
// read back unchanged. Everything else fails the program: other exceptions, signals (and sanitizers, if built with
// them), 5 s of processor time for one case, and any allocation beyond the limit of allocation_limit.cpp. Cases are
// mutations of valid input, the same in every run.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <random>
#include <string>

namespace frostpipe::test {

/// FROSTPIPE_FUZZ_CASES, or a number that suits a unit test.
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

/// Reads num_cases() mutations of `valid`, the first of which is `valid` itself; if it is JSON, also the same number
/// with hostile values (hostile_json.h). `read` may throw only InvalidInput, and nothing for the first; the input of
/// another exception is written to the file fuzz-failure.
void fuzz(const std::string& valid, const std::function<void(const std::string&)>& read);

/// A folder in memory whose files are written again for every case. A process has one at a time.
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
