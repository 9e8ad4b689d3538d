#include "executor/run_folder/step_log.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <string_view>

#include "base/files.h"

namespace frostpipe {

namespace {

/// Returns whether a file's last line is incomplete, as a kill or a full disk may leave it.
bool ends_within_a_line(const std::filesystem::path& path) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(path, none) || std::filesystem::file_size(path, none) == 0) return false;
  std::ifstream file(path, std::ios::binary);
  return file.seekg(-1, std::ios::end).get() != '\n';
}

}  // namespace

bool StepLog::write(const std::vector<StepRecord>& steps) {
  std::error_code none;
  std::filesystem::create_directories(path_.parent_path(), none);
  std::string text = line_may_be_torn_ && ends_within_a_line(path_) ? "\n" : "";
  for (const StepRecord& step : steps) text += to_json_line(step) + "\n";
  line_may_be_torn_ = !append_to_file(path_, text);  // one write
  if (line_may_be_torn_) return false;
  has_written_ = true;
  return true;
}

std::vector<StepRecord> StepLog::read(int num_steps) const {
  std::map<int, StepRecord> by_step;
  const std::string text = read_text_if_any(path_, kAnySize);
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    const std::optional<StepRecord> step = step_from_json_line(line);
    if (step && step->step < num_steps) by_step[step->step] = *step;
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
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
