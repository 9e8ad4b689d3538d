#include "executor/job/step_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <optional>

namespace frostpipe {

bool StepLog::write(const std::vector<StepRecord>& steps) {
  std::error_code none;
  std::filesystem::create_directories(path_.parent_path(), none);
  const int descriptor = open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (descriptor < 0) return false;
  std::string text = line_may_be_torn_ && lseek(descriptor, 0, SEEK_END) > 0 ? "\n" : "";
  for (const StepRecord& step : steps) text += to_json_line(step) + "\n";
  const ssize_t written = ::write(descriptor, text.data(), text.size());  // in one piece
  line_may_be_torn_ = written != std::ssize(text);
  close(descriptor);
  if (line_may_be_torn_) return false;
  has_written_ = true;
  return true;
}

std::vector<StepRecord> StepLog::read(int num_steps) const {
  std::map<int, StepRecord> by_step;
  std::ifstream file(path_);
  for (std::string line; std::getline(file, line);) {
    const std::optional<StepRecord> step = step_from_json_line(line);
    if (step && step->step < num_steps) by_step[step->step] = *step;
  }
  std::vector<StepRecord> steps;
  for (const auto& [number, step] : by_step) steps.push_back(step);
  return steps;
}

void StepLog::begin_anew() const {
  std::error_code none;
  std::filesystem::remove(path_, none);
}

void StepLog::begin_with(const std::filesystem::path& other_folder) const {
  begin_anew();
  std::error_code none;
  std::filesystem::copy_file(other_folder / path_.filename(), path_, none);
}

}  // namespace frostpipe
