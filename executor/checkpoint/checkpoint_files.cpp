#include "executor/checkpoint/checkpoint_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <span>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/system_reason.h"

namespace frostpipe {

std::string content_hash(std::string_view text) {
  return fmt::format("{:016x}", hash_bytes(std::as_bytes(std::span(text))));
}

CheckpointFile file_of(std::string_view name, std::string_view text) {
  return {std::string(name), static_cast<Bytes>(text.size()), content_hash(text)};
}

const CheckpointFile& entry_of(const std::vector<CheckpointFile>& files, std::string_view name,
                               const std::filesystem::path& folder) {
  for (const CheckpointFile& file : files) {
    if (file.name == name) return file;
  }
  throw InvalidInput((folder / kCheckpointManifest).string() + ": files", fmt::format("must list {}", name), "missing");
}

std::string read_listed(const std::vector<CheckpointFile>& files, std::string_view name,
                        const std::filesystem::path& folder) {
  std::string text = read_text_file(folder / name);
  if (content_hash(text) != entry_of(files, name, folder).hash) refuse_changed_file(folder / name);
  return text;
}

SafetensorsFile open_listed(const CheckpointFile& listed, const std::filesystem::path& folder) {
  SafetensorsFile file(folder / listed.name);
  if (static_cast<Bytes>(file.content().size()) != listed.bytes ||
      fmt::format("{:016x}", hash_bytes(file.content())) != listed.hash)
    refuse_changed_file(folder / listed.name);
  return file;
}

void refuse_changed_file(const std::filesystem::path& path) {
  throw InvalidInput(path.string(), "must be as it was written",
                     "a file with other content: it is truncated or was changed");
}

void synchronize_folder(const std::filesystem::path& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) throw RuntimeFailure(fmt::format("{}: {}", folder.string(), system_reason(errno)));
  const bool failed = fsync(descriptor) != 0 && errno != EINVAL;  // EINVAL: the file system has no fsync for folders
  const int error = errno;
  close(descriptor);
  if (failed) throw RuntimeFailure(fmt::format("{}: {}", folder.string(), system_reason(error)));
}

void publish_checkpoint(const std::filesystem::path& unfinished, const std::filesystem::path& whole) {
  synchronize_folder(unfinished);
  // A checkpoint of this step exists already if the run went back to an earlier step and has reached this one again. It
  // may be the only checkpoint, so it is removed after the new one has its name, unless the file system cannot exchange
  // names.
  const bool exchanged = renameat2(AT_FDCWD, unfinished.c_str(), AT_FDCWD, whole.c_str(), RENAME_EXCHANGE) == 0;
  if (!exchanged) {
    std::filesystem::remove_all(whole);
    std::filesystem::rename(unfinished, whole);
  }
  synchronize_folder(whole.parent_path());
  if (exchanged) std::filesystem::remove_all(unfinished);
}

}  // namespace frostpipe
