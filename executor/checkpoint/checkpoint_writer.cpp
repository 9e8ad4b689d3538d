#include "executor/checkpoint/checkpoint_writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/separated_values.h"
#include "base/system_reason.h"

namespace frostpipe {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

/// Returns the list of the files that a rank has written: a line "NAME BYTES HASH" for each.
std::string listing_of(const std::vector<CheckpointFile>& files) {
  std::string text;
  for (const CheckpointFile& file : files) text += fmt::format("{} {} {}\n", file.name, file.bytes, file.hash);
  return text;
}

void read_listing(const std::filesystem::path& path, std::map<std::string, CheckpointFile>& files) {
  const std::string text = read_text_file(path);
  for (const std::string_view part : lines_of(text)) {
    const std::string line(part);
    const std::size_t first = line.find(' '), second = line.rfind(' ');
    CheckpointFile file{.name = line.substr(0, first), .bytes = 0, .hash = line.substr(second + 1)};
    const char* const end = line.data() + std::min(second, line.size());
    const char* const begin = line.data() + std::min(first + 1, line.size());
    const auto [rest, error] = std::from_chars(begin, end, file.bytes);
    if (first >= second || error != std::errc() || rest != end)
      throw RuntimeFailure(fmt::format("{}: is damaged: its lines must be \"NAME BYTES HASH\"", path.string()));
    files[file.name] = std::move(file);
  }
}

}  // namespace

struct CheckpointWriter::State {
  std::filesystem::path root;
  int rank = 0, keep = 1;
  std::thread thread;
  std::atomic<bool> busy = false, failed = false, given_up = false, waits_for_ranks = false;
  std::atomic<int> held = -1, completed = -1, completed_everywhere = -1;  // steps; -1 = none
  mutable std::mutex mutex;
  std::optional<std::string> note;
  std::string why_given_up;
  struct Written {
    std::filesystem::path path;
    CheckpointFile file;
  };
  std::map<int, Written> frozen;  // files of frozen layers

  CheckpointFile write_layer(const LayerImage& image, const std::filesystem::path& folder, int step) {
    const std::string name = layer_file_name(image.layer);
    const auto before = frozen.find(image.layer);
    if (image.frozen && before != frozen.end()) {
      const bool is_linked = link(before->second.path.c_str(), (folder / name).c_str()) == 0;
      if (!is_linked && image.tensors.empty()) std::filesystem::copy_file(before->second.path, folder / name);
      if (is_linked || image.tensors.empty()) {
        before->second.path = checkpoint_path(root, step) / name;
        return before->second.file;
      }
    }
    std::vector<SafetensorsWriter::Entry> entries;
    for (const ImageTensor& tensor : image.tensors) entries.push_back({tensor.name, tensor.dtype, {tensor.count}});
    SafetensorsWriter writer(folder / name, std::move(entries));
    for (const ImageTensor& tensor : image.tensors) writer.write(tensor.data);
    writer.finish();
    CheckpointFile file{name, writer.bytes(), fmt::format("{:016x}", writer.hash())};
    if (image.frozen) frozen[image.layer] = {checkpoint_path(root, step) / name, file};
    return file;
  }

  /// Waits until the lists in `folder` have `num_layers` files and returns these; nothing if the checkpoint is given
  /// up.
  std::optional<std::vector<CheckpointFile>> wait_for_layers(const std::filesystem::path& folder,
                                                             int num_layers) const {
    std::map<std::string, CheckpointFile> files;
    for (; !given_up; std::this_thread::sleep_for(5ms)) {
      files.clear();
      for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        if (entry.path().extension() == ".written") read_listing(entry.path(), files);
      }
      if (static_cast<int>(files.size()) < num_layers) continue;
      std::vector<CheckpointFile> all;
      for (auto& [name, file] : files) all.push_back(std::move(file));
      return all;
    }
    return std::nullopt;
  }

  std::string reason_given() const {
    const std::lock_guard lock(mutex);
    return why_given_up;
  }

  void write(CheckpointPart& part) {
    // No rank waits for the list of a rank that writes no layers, so that list might never be removed.
    if (part.layers.empty() && !part.manifest) return;
    const std::filesystem::path whole = checkpoint_path(root, part.step),
                                folder = whole.string() + ".part-" + part.attempt;
    std::filesystem::create_directories(folder);
    std::vector<CheckpointFile> files;
    for (LayerImage& image : part.layers) {
      files.push_back(write_layer(image, folder, part.step));
      image.tensors.clear();
    }
    write_file_atomically(folder / fmt::format("rank-{}.written", rank), listing_of(files));
    if (!part.manifest) return;
    waits_for_ranks = true;
    auto layers = wait_for_layers(folder, part.num_layers);
    waits_for_ranks = false;
    if (!layers) throw RuntimeFailure(reason_given());
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() == ".written") std::filesystem::remove(entry.path());
    }
    for (CheckpointFile& layer : *layers) layer.host = part.host;
    layers->insert(layers->end(), part.elsewhere.begin(), part.elsewhere.end());
    const CheckpointTexts texts = to_texts(*part.manifest, *layers);
    write_file_atomically(folder / "plan.json", texts.plan);
    write_file_atomically(folder / "run.json", texts.run);
    write_file_atomically(folder / "checkpoint.json", texts.checkpoint);
    synchronize_folder(folder);
    if (given_up) throw RuntimeFailure(reason_given());  // checked again after the slow part
    publish_checkpoint(folder, whole);
    completed = part.step;
    keep_newest_checkpoints(root, keep, {held, completed_everywhere});
  }

  void run(CheckpointPart part) {
    try {
      write(part);
    } catch (const std::exception& error) {
      failed = true;
      std::error_code ignored;
      if (part.manifest)
        std::filesystem::remove_all(checkpoint_path(root, part.step).string() + ".part-" + part.attempt, ignored);
      const std::lock_guard lock(mutex);
      note = not_written(part.step, error);
    }
    busy = false;
  }

  static std::string not_written(int step, const std::exception& error) {
    const auto* const system = dynamic_cast<const std::system_error*>(&error);
    return fmt::format("the checkpoint of step {} was not written: {}; training goes on", step,
                       system ? system_reason(*system) : error.what());
  }
};

CheckpointWriter::CheckpointWriter(std::filesystem::path root, int rank, int keep) : state_(std::make_unique<State>()) {
  state_->root = std::move(root);
  state_->rank = rank;
  state_->keep = keep;
}

CheckpointWriter::~CheckpointWriter() {
  give_up("the job ends, or a new rendezvous round begins");
  if (state_->thread.joinable()) state_->thread.join();
}

bool CheckpointWriter::busy() const { return state_->busy; }

void CheckpointWriter::start(CheckpointPart part) {
  FROSTPIPE_CHECK(!state_->busy, "one checkpoint at a time");
  if (state_->thread.joinable()) state_->thread.join();
  state_->busy = true;
  state_->failed = state_->given_up = state_->waits_for_ranks = false;
  const int step = part.step;
  try {
    state_->thread =
        std::thread([state = state_.get(), part = std::move(part)]() mutable { state->run(std::move(part)); });
  } catch (const std::system_error& error) {  // no more threads available
    state_->failed = true;
    state_->busy = false;
    const std::lock_guard lock(state_->mutex);
    state_->note = State::not_written(step, error);
  }
}

void CheckpointWriter::finish(int seconds) {
  const auto longest = std::chrono::seconds(seconds);
  for (auto until = Clock::now() + longest; busy() && Clock::now() < until; std::this_thread::sleep_for(5ms))
    if (!state_->waits_for_ranks) until = Clock::now() + longest;  // its own writing has no limit
  give_up(fmt::format("some rank's layers did not come within {} s", seconds));
  if (state_->thread.joinable()) state_->thread.join();
}

bool CheckpointWriter::failed() const { return state_->failed; }

void CheckpointWriter::give_up(const std::string& why) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->why_given_up = why;
  }
  state_->given_up = true;
}

void CheckpointWriter::forget() {
  if (state_->thread.joinable()) state_->thread.join();
  state_->frozen.clear();
}

std::optional<std::string> CheckpointWriter::take_note() {
  const std::lock_guard lock(state_->mutex);
  return std::exchange(state_->note, std::nullopt);
}

void CheckpointWriter::hold(std::optional<int> step) { state_->held = step.value_or(-1); }

int CheckpointWriter::completed() const { return state_->completed; }

void CheckpointWriter::completed_everywhere(int step) { state_->completed_everywhere = step; }

int CheckpointWriter::completed_everywhere() const { return state_->completed_everywhere; }

void CheckpointWriter::set_completed(int step) { state_->completed = state_->completed_everywhere = step; }

bool CheckpointWriter::has_frozen(int layer) const {
  const auto written = state_->frozen.find(layer);
  return written != state_->frozen.end() && std::filesystem::exists(written->second.path);
}

}  // namespace frostpipe
