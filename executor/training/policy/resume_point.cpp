#include "executor/training/policy/resume_point.h"

#include <fmt/format.h>

#include "profiles/error.h"
#include "profiles/files.h"

namespace frostpipe {

std::filesystem::path checkpoints_folder(const TrainOptions& options) { return options.output / "checkpoints"; }

NewestCheckpoint newest_checkpoint(const std::filesystem::path& root,
                                   const std::function<void(const std::string&)>& note) {
  NewestCheckpoint newest = newest_whole_checkpoint(root);
  for (const std::string& reason : newest.passed_over) note(fmt::format("a checkpoint is passed over: {}", reason));
  return newest;
}

std::filesystem::path folder_to_resume(const TrainOptions& options) {
  if (options.resume != "auto") return options.resume == "no" ? "" : options.resume;
  const bool has_ended = std::filesystem::exists(options.output / "summary.json");
  return has_ended ? "" : checkpoints_folder(options);
}

std::optional<Checkpoint> checkpoint_to_resume(const TrainOptions& options, const RunSettings& settings,
                                               const std::function<void(const std::string&)>& note) {
  remove_unfinished_checkpoints(checkpoints_folder(options));
  for (const std::filesystem::path& folder : {options.output, options.output / "model"})
    remove_unfinished_files(folder);
  const std::filesystem::path from = folder_to_resume(options);
  if (from.empty()) return std::nullopt;
  std::optional<Checkpoint> found;
  if (std::filesystem::exists(from / "checkpoint.json")) {
    found = read_checkpoint(from);
  } else {
    NewestCheckpoint newest = newest_checkpoint(from, note);
    found = std::move(newest.checkpoint);
    if (!found && options.resume != "auto")
      throw InvalidInput("--resume", "must name a whole checkpoint, or a folder of such", from.string());
    if (!found && !newest.passed_over.empty()) {
      throw InvalidInput(
          fmt::format("{}: holds a run that has not ended, and no checkpoint of it is whole. Start over with --resume "
                      "no, which removes them",
                      from.string()));
    }
  }
  if (!found) return std::nullopt;
  if (const auto difference = first_difference(found->settings, settings)) {
    throw InvalidInput(
        fmt::format("{}: is of another run: {}. Continue it with the same options, or start over with --resume no",
                    found->folder.string(), *difference));
  }
  return found;
}

bool lies_in(const std::filesystem::path& root, const Checkpoint& checkpoint) {
  return std::filesystem::absolute(checkpoint.folder.parent_path()) == std::filesystem::absolute(root);
}

bool keep_checkpoints_up_to(const std::optional<Checkpoint>& found, const std::filesystem::path& root) {
  const bool is_own = found && lies_in(root, *found);
  if (is_own)
    remove_checkpoints_after(root, found->step);
  else
    keep_newest_checkpoints(root, 0, {});
  return is_own;
}

}  // namespace frostpipe
