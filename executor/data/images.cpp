#include "executor/data/images.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/error_values.h"
#include "base/files.h"
#include "base/separated_values.h"
#include "executor/data/text_file.h"

namespace frostpipe {
namespace {

namespace fs = std::filesystem;

/// The pictures of a folder or a CIFAR file, with the label names that are found there.
struct Opened {
  std::vector<int> labels;
  std::vector<std::string> label_names;
  std::function<Image(int)> load;
  std::function<std::string(int)> place;  // place of picture i
  std::string fingerprint;
};

void require_countable(const fs::path& path, std::uint64_t num_images) {
  if (num_images > static_cast<std::uint64_t>(std::numeric_limits<int>::max()))
    throw InvalidInput(path.string(), "must have fewer than 2^31 images", std::to_string(num_images));
}

// ---- Folders ------------------------------------------------------------------------------------

struct Entry {
  std::string name;
  bool is_folder = false;
  bool is_file = false;
};

/// Returns the entries in order of their names' bytes, without hidden ones.
std::vector<Entry> entries_of(const fs::path& folder) {
  std::vector<Entry> entries;
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      Entry found{.name = entry.path().filename().string()};
      if (found.name.starts_with('.')) continue;
      std::error_code ignored;  // a dangling link is neither
      found.is_folder = entry.is_directory(ignored);
      found.is_file = entry.is_regular_file(ignored);
      entries.push_back(std::move(found));
    }
  } catch (const fs::filesystem_error& error) {
    throw InvalidInput(fmt::format("{}: cannot be read: {}", folder.string(), error.code().message()));
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return entries;
}

bool is_picture(const Entry& entry) {
  std::string extension = fs::path(entry.name).extension().string();
  for (char& c : extension)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return entry.is_file && (extension == ".jpg" || extension == ".jpeg" || extension == ".png");
}

std::vector<std::string> pictures_of(const fs::path& label_folder) {
  std::vector<std::string> names;
  for (Entry& entry : entries_of(label_folder)) {
    if (!is_picture(entry))
      throw InvalidInput((label_folder / entry.name).string(),
                         "a label's folder must hold nothing but files that end in .jpg, .jpeg or .png",
                         entry.is_folder ? "a folder" : "another file");
    names.push_back(std::move(entry.name));
  }
  if (names.empty()) throw InvalidInput(label_folder.string(), "a label's folder must hold an image", "without one");
  if (!is_utf8(label_folder.filename().string()))  // the name is written to config.json, which is UTF-8
    throw InvalidInput(label_folder.string(), "a label's folder must have a name in UTF-8 (rename it)",
                       "of another kind");
  return names;
}

Image decode_file(const fs::path& path) {
  constexpr std::uintmax_t kMaxBytes = std::uintmax_t{1} << 29;  // 64,000,000 pixels of 8 bytes
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  if (!error && size > kMaxBytes)
    throw InvalidInput(path.string(), fmt::format("an image must have at most {} bytes", kMaxBytes),
                       std::to_string(size));
  const std::string content = read_text_file(path);
  return decode_image(std::as_bytes(std::span(content)), path.string());
}

Opened open_folder(const fs::path& root) {
  Opened opened;
  std::string contents;
  auto paths = std::make_shared<std::vector<std::string>>();  // paths of the pictures within the root
  for (Entry& entry : entries_of(root)) {
    if (is_picture(entry))
      throw InvalidInput((root / entry.name).string(), "an image must lie in the folder of its label", "beside those");
    if (!entry.is_folder) continue;
    for (const std::string& picture : pictures_of(root / entry.name)) {
      paths->push_back(entry.name + "/" + picture);
      std::error_code ignored;
      contents += fmt::format("{} {}\n", paths->back(), fs::file_size(root / paths->back(), ignored));
      opened.labels.push_back(static_cast<int>(opened.label_names.size()));
    }
    opened.label_names.push_back(std::move(entry.name));
  }
  if (opened.labels.empty())
    throw InvalidInput(root.string(), "must have a sub-folder of images for each label (or be a binary file of CIFAR)",
                       "a folder without one");
  require_countable(root, paths->size());

  opened.fingerprint = fingerprint(contents);
  const auto path_of = [root, paths = std::move(paths)](int i) { return root / (*paths)[static_cast<std::size_t>(i)]; };
  opened.load = [path_of](int i) { return decode_file(path_of(i)); };
  opened.place = [path_of](int i) { return path_of(i).string(); };
  return opened;
}

// ---- CIFAR --------------------------------------------------------------------------------------

constexpr int kSide = 32;
constexpr std::size_t kPixelBytes = 3 * kSide * kSide;

struct CifarKind {
  std::size_t num_labels;
  std::size_t label_bytes;  // bytes before the pixels; the last one is the label
  const char* names_file;

  std::size_t record_bytes() const { return label_bytes + kPixelBytes; }
};
constexpr CifarKind kCifar10 = {.num_labels = 10, .label_bytes = 1, .names_file = "batches.meta.txt"};
constexpr CifarKind kCifar100 = {.num_labels = 100, .label_bytes = 2, .names_file = "fine_label_names.txt"};
constexpr std::size_t kNumCoarseLabels = 20;

/// True if `number` occurs in `name` without a digit beside it: 10 does in "cifar-10-batches" but not in "train_10000".
bool names_number(std::string_view name, std::string_view number) {
  const auto is_digit = [&](std::size_t i) { return i < name.size() && name[i] >= '0' && name[i] <= '9'; };
  for (std::size_t at = name.find(number); at != std::string_view::npos; at = name.find(number, at + 1))
    if (!is_digit(at + number.size()) && (at == 0 || !is_digit(at - 1))) return true;
  return false;
}

CifarKind kind_of(const fs::path& path, std::uint64_t size) {
  const bool fits_10 = size % kCifar10.record_bytes() == 0;
  const bool fits_100 = size % kCifar100.record_bytes() == 0;
  if (size == 0 || (!fits_10 && !fits_100))
    throw InvalidInput(path.string(),
                       fmt::format("a CIFAR file must have a multiple of {} (CIFAR-10) or {} bytes (CIFAR-100)",
                                   kCifar10.record_bytes(), kCifar100.record_bytes()),
                       std::to_string(size));
  if (fits_10 != fits_100) return fits_10 ? kCifar10 : kCifar100;

  const std::string file = path.filename().string();
  std::error_code ignored;
  const std::string folder = fs::absolute(path, ignored).parent_path().filename().string();
  const bool says_10 = names_number(file, "10") || names_number(folder, "10");
  const bool says_100 = names_number(file, "100") || names_number(folder, "100");
  if (says_10 == says_100)
    throw InvalidInput(path.string(),
                       "is ambiguous: a file whose size fits both CIFAR-10 and CIFAR-100 must have either 10 or 100 in "
                       "its name or its folder's",
                       fmt::format("\"{}\" in \"{}\" of {} bytes", file, folder, size));
  return says_10 ? kCifar10 : kCifar100;
}

std::vector<std::string> label_names_beside(const fs::path& path, const CifarKind& kind) {
  std::vector<std::string> names;
  const fs::path names_path = path.parent_path() / kind.names_file;
  std::error_code ignored;
  if (!fs::exists(names_path, ignored)) {
    for (std::size_t i = 0; i < kind.num_labels; ++i) names.push_back(std::to_string(i));
    return names;
  }
  const std::string content = read_utf8_file(names_path);
  for (const std::string_view line : lines_of(content))
    if (!line.empty()) names.emplace_back(line);
  if (names.size() != kind.num_labels)
    throw InvalidInput(names_path.string(), fmt::format("must have {} lines, a label's name each", kind.num_labels),
                       fmt::format("with {}", names.size()));
  std::vector<std::string> sorted = names;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
    throw InvalidInput(names_path.string(), "names of labels must differ", fmt::format("twice \"{}\"", *twice));
  return names;
}

void require_label(const fs::path& path, std::size_t record, const char* which, std::size_t limit, char byte) {
  const auto value = static_cast<unsigned char>(byte);
  if (value >= limit)
    throw InvalidInput(fmt::format("{}: record {}", path.string(), record),
                       fmt::format("the {} must be < {}", which, limit), std::to_string(value));
}

Opened open_cifar(const fs::path& path) {
  // Check the size before reading the file.
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  if (error) throw InvalidInput(fmt::format("{}: cannot be read: {}", path.string(), error.message()));
  const CifarKind kind = kind_of(path, size);
  require_countable(path, size / kind.record_bytes());

  Opened opened{.label_names = label_names_beside(path, kind)};
  const auto records = std::make_shared<const std::string>(read_text_file(path, kAnySize));
  if (records->size() != size)
    throw InvalidInput(path.string(), fmt::format("must stay at {} bytes while it is read", size),
                       std::to_string(records->size()));
  for (std::size_t at = 0; at < records->size(); at += kind.record_bytes()) {
    const char* const labels = records->data() + at;
    const std::size_t record = at / kind.record_bytes();
    if (kind.label_bytes == 2) require_label(path, record, "coarse label", kNumCoarseLabels, labels[0]);
    const char label = labels[kind.label_bytes - 1];
    require_label(path, record, "label", kind.num_labels, label);
    opened.labels.push_back(static_cast<unsigned char>(label));
  }
  opened.fingerprint = fingerprint(*records);
  opened.load = [records, kind](int i) {
    const char* const pixels = records->data() + static_cast<std::size_t>(i) * kind.record_bytes() + kind.label_bytes;
    return Image{.height = kSide, .width = kSide, .pixels = {pixels, pixels + kPixelBytes}};
  };
  opened.place = [path](int i) { return fmt::format("{}: record {}", path.string(), i); };
  return opened;
}

// ---- Folders and CIFAR files --------------------------------------------------------------------

Opened open_either(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::status_known(status) || status.type() == fs::file_type::not_found)
    throw InvalidInput(fmt::format("{}: cannot be read: {}", path.string(), error.message()));
  if (fs::is_directory(status)) return open_folder(path);
  if (fs::is_regular_file(status)) return open_cifar(path);
  throw InvalidInput(path.string(), "must be a folder of images or a binary file of CIFAR", "neither");
}

}  // namespace

ImageData::ImageData(std::vector<int> labels, std::vector<std::string> label_names, std::function<Image(int)> load,
                     std::function<std::string(int)> place, std::string fingerprint)
    : labels_(std::move(labels)),
      label_names_(std::move(label_names)),
      load_(std::move(load)),
      place_(std::move(place)),
      fingerprint_(std::move(fingerprint)) {}

Image ImageData::load(int i) const {
  FROSTPIPE_CHECK(i >= 0 && i < size(), "callers count images from zero");
  return load_(i);
}

ImageData open_images(const fs::path& path) {
  Opened opened = open_either(path);
  if (opened.label_names.size() < 2)
    throw InvalidInput(path.string(), "must have at least two different labels",
                       fmt::format("all \"{}\"", opened.label_names.front()));
  return {std::move(opened.labels), std::move(opened.label_names), std::move(opened.load), std::move(opened.place),
          std::move(opened.fingerprint)};
}

ImageData open_images(const fs::path& path, const std::vector<std::string>& label_names) {
  std::map<std::string_view, int> number_of;
  for (const std::string& name : label_names) number_of.emplace(name, static_cast<int>(number_of.size()));
  FROSTPIPE_CHECK(number_of.size() == label_names.size(), "label names differ from each other");
  Opened opened = open_either(path);
  for (std::size_t i = 0; i < opened.labels.size(); ++i) {
    const std::string& name = opened.label_names[static_cast<std::size_t>(opened.labels[i])];
    const auto found = number_of.find(name);
    if (found == number_of.end())
      throw InvalidInput(opened.place(static_cast<int>(i)),
                         fmt::format("the label must be one that the model knows ({})", in_quotes(label_names)),
                         fmt::format("\"{}\"", name));
    opened.labels[i] = found->second;
  }
  return {std::move(opened.labels), label_names, std::move(opened.load), std::move(opened.place),
          std::move(opened.fingerprint)};
}

}  // namespace frostpipe
