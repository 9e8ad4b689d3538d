#pragma once
#include <chrono>
#include <cstdio>
#include <string>

namespace frostpipe {

/// Shows the progress of a job on stderr: as a bar on a terminal, else in lines, at most one per 5 % and per 2 s, but
/// at least one every 30 s. Used as a Progress callback (executor/execute.h).
class ProgressDisplay {
 public:
  explicit ProgressDisplay(std::string job);
  /// Ends the line of a bar.
  ~ProgressDisplay();
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;

  void show(double fraction, const std::string& line);
  /// Removes the bar, so that something else can be written. The next show() draws it again.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  void show_bar(double fraction, const std::string& line);
  void show_line(double fraction, const std::string& line);

  std::string job_;
  bool is_terminal_ = false;
  bool bar_is_shown_ = false;
  double last_fraction_ = -1;
  Clock::time_point last_shown_{};
};

}  // namespace frostpipe
