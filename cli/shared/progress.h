#pragma once
#include <chrono>
#include <cstdio>
#include <string>

namespace frostpipe {

/// Shows on stderr how far a job is: a bar on a terminal; lines when piped, at most one per 5 % and per 2 s, but one
/// every 30 s. Used as a Progress callback (executor/execute.h).
class ProgressDisplay {
 public:
  explicit ProgressDisplay(std::string job);
  /// Leaves a clean line after a bar.
  ~ProgressDisplay();
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;

  void show(double fraction, const std::string& line);
  /// Takes the bar away, so that something else can be written; it comes back with the next show().
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
