#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"

namespace frostpipe {

/// A bar in the row `thread` of the group `process`, as long as the span lasts.
struct TimelineSpan {
  std::string name;
  std::string category = {};  // viewers show or hide all spans of a category; empty = none
  int process = 0;
  int thread = 0;
  Nanoseconds begin_ns = 0;
  Nanoseconds end_ns = 0;
  std::string color = {};  // a color name that the trace viewer reserves; empty = chosen by the span's name
  std::vector<std::pair<std::string, std::int64_t>> values = {};  // shown when the bar is selected
};

/// A row and its name.
struct TimelineThread {
  int process = 0;
  int thread = 0;
  std::string name;
};

/// A group of rows: a rank, a device or a pool of devices.
struct TimelineProcess {
  int process = 0;
  std::string name;
};

/// A run as bars in rows, independent of any file format. Simulators and recorders of all kinds make one.
struct Timeline {
  std::vector<TimelineProcess> processes;  // shown in the order of their numbers
  std::vector<TimelineThread> threads;
  std::vector<TimelineSpan> spans;

  void add_process(int process, std::string name) { processes.push_back({process, std::move(name)}); }
  void add_thread(int process, int thread, std::string name) { threads.push_back({process, thread, std::move(name)}); }
};

}  // namespace frostpipe
