#include "serving/server/worker/folder_bytes.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/system_reason.h"

namespace frostpipe {
namespace {

constexpr std::array<std::string_view, 9> kOthers = {"config.json",
                                                     "preprocessor_config.json",
                                                     "vocab.txt",
                                                     "vocab.json",
                                                     "merges.txt",
                                                     "tokenizer.json",
                                                     "tokenizer_config.json",
                                                     "special_tokens_map.json",
                                                     "added_tokens.json"};

bool are_weights(std::string_view name) {
  return name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json");
}

/// Reads the file instead of mapping it, since truncating a mapped file would kill the process.
void add_file(const std::filesystem::path& path, StreamHash& hash) {
  constexpr std::size_t kPart = std::size_t{1} << 20;
  const Descriptor file = open_regular_file(path);
  const auto part = std::make_unique<std::byte[]>(kPart);
  while (true) {
    const ssize_t count = ::read(file.number(), part.get(), kPart);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw InvalidInput(fmt::format("{}: cannot be read: {}", path.string(), system_reason(errno)));
    if (count == 0) return;
    hash.add({part.get(), static_cast<std::size_t>(count)});
  }
}

std::string hash_of(const std::filesystem::path& folder, std::vector<std::string> names) {
  std::ranges::sort(names);
  StreamHash hash;
  for (const std::string& name : names) {
    hash.add(std::as_bytes(std::span(name.c_str(), name.size() + 1)));
    StreamHash content;
    add_file(folder / name, content);
    const std::uint64_t value = content.value();
    hash.add(std::as_bytes(std::span(&value, 1)));
  }
  return fmt::format("{:016x}", hash.value());
}

}  // namespace

FolderBytes read_folder_bytes(const std::filesystem::path& folder) {
  std::vector<std::string> weights, others;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (are_weights(name)) weights.push_back(name);
    if (std::ranges::find(kOthers, name) != kOthers.end()) others.push_back(name);
  }
  if (error) throw InvalidInput(fmt::format("{}: cannot be read: {}", folder.string(), system_reason(error.value())));
  return {.weights = hash_of(folder, std::move(weights)), .others = hash_of(folder, std::move(others))};
}

}  // namespace frostpipe
