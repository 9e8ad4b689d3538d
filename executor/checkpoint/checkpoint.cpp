#include "executor/checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <regex>
#include <utility>

#include "base/error.h"
#include "base/error_values.h"
#include "base/files.h"
#include "base/parse_json.h"
#include "executor/checkpoint/checkpoint_json.h"

namespace frostpipe {
namespace {

constexpr std::string_view kFormat = "frostpipe.checkpoint";
constexpr std::string_view kPlan = "plan.json", kRun = "run.json";

// Only this program gives such names. The expressions are compiled at their first use; as constants they would be
// compiled at every start of the program.

/// Matches the names of checkpoint_path().
const std::regex& whole_name() {
  static const std::regex name("step-[0-9]{8,10}");
  return name;
}

/// Matches the names of folders that become a checkpoint (checkpoint/checkpoint_writer.cpp).
const std::regex& unfinished_name() {
  static const std::regex name("step-[0-9]{8,10}\\.part-([0-9]+)-[0-9]+");
  return name;
}

/// The content of checkpoint.json.
struct Manifest {
  int step = 0;
  RunSettings settings;
  std::string plan_fingerprint, freeze_rule;
  std::vector<double> freeze_state;
  bool freeze_is_decided = false;
  int watched_step = -1;
  double watched_accuracy = 0;
  std::string attempt;
  std::vector<CheckpointFile> files;
  std::string hash;  // hash of this text with an empty hash
};

template <class Archive>
void fields(Archive& archive, json::Value<Archive, Manifest>& manifest) {
  archive("step", manifest.step, json::at_least(0));
  archive("settings", manifest.settings);
  archive("plan_fingerprint", manifest.plan_fingerprint);
  archive("freeze_rule", manifest.freeze_rule);
  archive("freeze_state", manifest.freeze_state);
  archive("freeze_is_decided", manifest.freeze_is_decided, json::MayBeMissing{});
  archive("watched_step", manifest.watched_step, json::at_least(-1));
  archive("watched_accuracy", manifest.watched_accuracy);
  archive("attempt", manifest.attempt, json::MayBeMissing{});
  archive("files", manifest.files);
  archive("hash", manifest.hash);
}

void remove_checkpoint(const std::filesystem::path& folder) {
  std::error_code ignored;
  if (std::filesystem::is_symlink(folder, ignored)) {
    std::filesystem::remove(folder, ignored);  // only the link, since its target may belong to another run
    return;
  }
  // The manifest goes first, so that an interrupted removal does not leave something that looks like a checkpoint.
  std::filesystem::remove(folder / kCheckpointManifest, ignored);
  std::filesystem::remove_all(folder, ignored);
}

}  // namespace

const CheckpointFile& entry_of(const Checkpoint& checkpoint, std::string_view name) {
  return entry_of(checkpoint.files, name, checkpoint.folder);
}

std::map<std::string, std::string> values_by_name(const RunSettings& settings) {
  json::Writer writer;
  fields(writer, settings);
  std::map<std::string, std::string> values;
  for (const auto& entry : writer.object.items()) values.emplace(entry.key(), entry.value().dump());
  return values;
}

std::optional<ValueDifference> first_difference(const std::map<std::string, std::string>& one,
                                                const std::map<std::string, std::string>& other) {
  // Files may omit default values, so a value that only one side has is a difference too.
  const auto value_of = [](const std::map<std::string, std::string>& values, const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() ? "none" : found->second;
  };
  std::map<std::string, std::string> names = one;
  names.insert(other.begin(), other.end());
  for (const auto& [name, value] : names) {
    ValueDifference difference{.name = name, .one = value_of(one, name), .other = value_of(other, name)};
    if (difference.one != difference.other) return difference;
  }
  return std::nullopt;
}

std::optional<std::string> first_difference(const RunSettings& saved, const RunSettings& now) {
  std::map<std::string, std::string> before = values_by_name(saved), after = values_by_name(now);
  auto difference = first_difference(before, after);
  // The fingerprint depends on other settings, such as the seed. Their difference explains more.
  constexpr const char* kFollows = "data_fingerprint";
  if (difference && difference->name == kFollows) {
    before.erase(kFollows);
    after.erase(kFollows);
    difference = first_difference(before, after).value_or(*difference);
  }
  if (!difference) return std::nullopt;
  const std::string hint =
      difference->name == "data_shards"
          ? fmt::format(" (one for each host; --nodes {} divides the data as before)", difference->one)
          : "";
  return fmt::format("{}: {} in the checkpoint, {} now{}", difference->name, difference->one, difference->other, hint);
}

std::filesystem::path checkpoint_path(const std::filesystem::path& root, int step) {
  return root / fmt::format("step-{:08}", step);
}

std::string layer_file_name(int layer) { return fmt::format("layer-{:03}.safetensors", layer); }

CheckpointTexts to_texts(const Checkpoint& checkpoint, const std::vector<CheckpointFile>& layers) {
  CheckpointTexts texts{.checkpoint = {}, .plan = to_json(checkpoint.plan), .run = to_json(checkpoint.run)};
  Manifest manifest{checkpoint.step,
                    checkpoint.settings,
                    checkpoint.plan_fingerprint,
                    checkpoint.freeze_rule,
                    checkpoint.freeze_state,
                    checkpoint.freeze_is_decided,
                    checkpoint.watched_step,
                    checkpoint.watched_accuracy,
                    checkpoint.attempt,
                    {file_of(kPlan, texts.plan), file_of(kRun, texts.run)},
                    {}};
  manifest.files.insert(manifest.files.end(), layers.begin(), layers.end());
  texts.checkpoint = write_sealed(kFormat, std::move(manifest));
  return texts;
}

namespace {

Checkpoint checkpoint_of(const std::string& text, const std::filesystem::path& path) {
  auto manifest = read_sealed<Manifest>(kFormat, text, path);
  return {.step = manifest.step,
          .settings = std::move(manifest.settings),
          .plan_fingerprint = std::move(manifest.plan_fingerprint),
          .freeze_rule = std::move(manifest.freeze_rule),
          .freeze_state = std::move(manifest.freeze_state),
          .freeze_is_decided = manifest.freeze_is_decided,
          .watched_step = manifest.watched_step,
          .watched_accuracy = manifest.watched_accuracy,
          .attempt = std::move(manifest.attempt),
          .files = std::move(manifest.files),
          .plan = {},
          .run = {},
          .folder = path.parent_path()};
}

}  // namespace

Checkpoint read_checkpoint(const std::filesystem::path& folder) {
  Checkpoint checkpoint = checkpoint_of(read_text_file(folder / kCheckpointManifest), folder / kCheckpointManifest);
  checkpoint.plan = plan_from_json(read_listed(checkpoint.files, kPlan, folder), (folder / kPlan).string());
  checkpoint.run = run_from_json(read_listed(checkpoint.files, kRun, folder), (folder / kRun).string());
  return checkpoint;
}

std::string to_text(const Checkpoint& checkpoint) {
  const CheckpointTexts texts = to_texts(checkpoint, {});
  return json::Json{texts.checkpoint, texts.plan, texts.run}.dump();
}

Checkpoint checkpoint_from_text(const std::string& text) {
  const auto texts = parse_json<json::Json>(text, "survivor");
  const auto is_text = [](const json::Json& one) { return one.is_string(); };
  if (!texts.is_array() || texts.size() != 3 || !std::ranges::all_of(texts, is_text))
    throw InvalidInput("survivor", "must be a list of 3 texts", shown(texts));
  Checkpoint checkpoint = checkpoint_of(texts[0], "survivor/checkpoint.json");
  checkpoint.plan = plan_from_json(texts[1].get_ref<const std::string&>(), "survivor/plan.json");
  checkpoint.run = run_from_json(texts[2].get_ref<const std::string&>(), "survivor/run.json");
  checkpoint.folder.clear();
  return checkpoint;
}

int num_layers(const Checkpoint& checkpoint) { return static_cast<int>(checkpoint.files.size()) - 2; }

SafetensorsFile open_layer(const Checkpoint& checkpoint, int layer) {
  const std::filesystem::path path = checkpoint.folder / layer_file_name(layer);
  const CheckpointFile& listed = entry_of(checkpoint, layer_file_name(layer));
  if (!listed.host.empty() && !std::filesystem::exists(path))
    throw InvalidInput(path.string(), fmt::format("must be here; host {} wrote it", listed.host), "missing");
  return open_listed(listed, checkpoint.folder);
}

std::vector<std::filesystem::path> checkpoints_in(const std::filesystem::path& root) {
  std::vector<std::filesystem::path> found;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(root, none)) {
    if (std::regex_match(entry.path().filename().string(), whole_name())) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end(), std::greater<>());
  return found;
}

Checkpoint read_whole_checkpoint(const std::filesystem::path& folder) {
  Checkpoint checkpoint = read_checkpoint(folder);
  for (int layer = 0; layer < num_layers(checkpoint); ++layer) open_layer(checkpoint, layer);
  return checkpoint;
}

NewestCheckpoint newest_whole_checkpoint(const std::filesystem::path& root) {
  NewestCheckpoint newest;
  for (const std::filesystem::path& folder : checkpoints_in(root)) {
    try {
      newest.checkpoint = read_whole_checkpoint(folder);
      break;
    } catch (const InvalidInput& error) {
      newest.passed_over.push_back(error.what());
    }
  }
  return newest;
}

void keep_newest_checkpoints(const std::filesystem::path& root, int count, const std::set<int>& held) {
  const std::vector<std::filesystem::path> folders = checkpoints_in(root);
  const auto is_held = [&](const std::filesystem::path& folder) {
    return std::any_of(held.begin(), held.end(), [&](int step) { return folder == checkpoint_path(root, step); });
  };
  for (std::size_t i = static_cast<std::size_t>(count); i < folders.size(); ++i) {
    if (!is_held(folders[i])) remove_checkpoint(folders[i]);
  }
}

void remove_checkpoints_after(const std::filesystem::path& root, int step) {
  for (const std::filesystem::path& folder : checkpoints_in(root)) {
    if (folder.filename() > checkpoint_path(root, step).filename()) remove_checkpoint(folder);
  }
}

std::string attempt_name(int round, int number) { return fmt::format("{}-{}", round, number); }

void remove_attempts_before(const std::filesystem::path& root, int round) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(root, ignored)) {
    const std::string name = entry.path().filename();
    std::smatch parts;
    if (std::regex_match(name, parts, unfinished_name()) && std::atoi(parts.str(1).c_str()) < round)
      std::filesystem::remove_all(entry.path(), ignored);
  }
}

void remove_unfinished_checkpoints(const std::filesystem::path& root) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(root, ignored)) {
    if (std::regex_match(entry.path().filename().string(), unfinished_name()))
      std::filesystem::remove_all(entry.path(), ignored);
  }
}

}  // namespace frostpipe
