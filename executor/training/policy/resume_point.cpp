#include "executor/training/policy/resume_point.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/files.h"

namespace frostpipe {

std::filesystem::path checkpoints_folder(const TrainOptions& options) { return options.output / "checkpoints"; }

NewestCheckpoint newest_checkpoint(const std::filesystem::path& root,
                                   const std::function<void(const std::string&)>& note) {
  NewestCheckpoint newest = newest_whole_checkpoint(root);
  for (const std::string& reason : newest.passed_over) note(fmt::format("a checkpoint is skipped: {}", reason));
  return newest;
}

std::filesystem::path folder_to_resume(const TrainOptions& options) {
  if (options.resume != "auto") return options.resume == "no" ? "" : options.resume;
  const bool has_ended = std::filesystem::exists(options.output / "summary.json");
  return has_ended ? "" : checkpoints_folder(options);
}

bool may_go_on(const TrainOptions& options) {
  const std::filesystem::path from = folder_to_resume(options);
  if (from.empty()) return false;
  std::error_code why;  // ignored: a folder that cannot be read has no checkpoints
  const auto is_one = [&](const std::filesystem::path& folder) {
    return std::filesystem::exists(folder / kCheckpointManifest, why);
  };
  const std::filesystem::directory_iterator entries(from, why);
  return is_one(from) || std::any_of(begin(entries), end(entries), is_one);
}

void require_same_settings(const RunSettings& saved, const RunSettings& now, const std::filesystem::path& folder) {
  const auto difference = first_difference(saved, now);
  if (!difference) return;
  throw InvalidInput(
      fmt::format("{}: is of another run: {}. Continue it with the same options, or start over with --resume no",
                  folder.string(), *difference));
}

std::string stopped_early(const TrainOptions& options, int step, int num_steps, bool checkpoint_is_written) {
  const std::string how =
      fmt::format("the same command{} again goes on from there", options.resume == "auto" ? "" : " with --resume auto");
  return fmt::format("stopped after {} of {} steps: {}", step, num_steps,
                     checkpoint_is_written ? how : "its checkpoint is missing, see above");
}

namespace {

/// Does the same as checkpoint_to_resume(), but does not compare settings.
std::optional<Checkpoint> whole_checkpoint_to_resume(const TrainOptions& options,
                                                     const std::function<void(const std::string&)>& note) {
  remove_unfinished_checkpoints(checkpoints_folder(options));
  for (const std::filesystem::path& folder : {options.output, options.output / "model"})
    remove_unfinished_files(folder);
  const std::filesystem::path from = folder_to_resume(options);
  if (from.empty()) return std::nullopt;
  if (options.resume != "auto" && !std::filesystem::exists(from))
    throw InvalidInput("--resume", "must name a folder that exists", from.string());
  if (std::filesystem::exists(from / kCheckpointManifest)) return read_whole_checkpoint(from);
  NewestCheckpoint newest = newest_checkpoint(from, note);
  if (!newest.checkpoint && options.resume != "auto")
    throw InvalidInput("--resume", "must name a whole checkpoint, or a folder of such", from.string());
  if (!newest.checkpoint && !newest.passed_over.empty()) {
    throw InvalidInput(
        fmt::format("{}: holds a run that has not ended, and no checkpoint of it is whole. Start over with --resume "
                    "no, which removes them",
                    from.string()));
  }
  return std::move(newest.checkpoint);
}

}  // namespace

std::optional<Checkpoint> checkpoint_to_resume(const TrainOptions& options, const RunSettings& settings,
                                               const std::function<void(const std::string&)>& note) {
  std::optional<Checkpoint> found = whole_checkpoint_to_resume(options, note);
  if (found) require_same_settings(found->settings, settings, found->folder);
  return found;
}

bool lies_in(const std::filesystem::path& root, const std::filesystem::path& folder) {
  const auto canonical = [](const std::filesystem::path& path) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(path));
  };
  const std::filesystem::path own = canonical(root);
  return canonical(folder.parent_path()) == own || canonical(folder).parent_path() == own;
}

bool keep_checkpoints_up_to(const std::filesystem::path& found, int step, const std::filesystem::path& root) {
  const bool is_own = !found.empty() && lies_in(root, found);
  if (is_own)
    remove_checkpoints_after(root, step);
  else
    keep_newest_checkpoints(root, 0, {});
  return is_own;
}

}  // namespace frostpipe
