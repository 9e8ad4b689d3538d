#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/json_reader.h"
#include "executor/cache/store/activation_store.h"
#include "executor/checkpoint/checkpoint.h"
#include "executor/checkpoint/safetensors.h"
#include "executor/checkpoint/scattered_checkpoint.h"
#include "operators/checkpoint/net_checkpoint.h"
#include "tests/fuzz/mutations.h"
#include "tests/fuzz/small_run.h"

namespace frostpipe {
namespace {

using test::fuzz;
using test::num_cases;
using test::ScratchFolder;
using test::small_plan;
using test::small_run;

constexpr const char* kHeader =
    R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"b":{"dtype":"BF16",
     "shape":[4],"data_offsets":[24,32]}})";

std::string with_header(const std::string& header) {
  const std::uint64_t size = header.size();
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + header + std::string(32, 'x');
}

void read_tensors(const std::filesystem::path& path) {
  const SafetensorsFile file(path);
  std::size_t sum = 0;
  for (const auto& [name, tensor] : file.tensors()) {
    for (const std::byte value : tensor.data) sum += static_cast<std::size_t>(value);
  }
  if (sum > 255 * std::filesystem::file_size(path) * file.tensors().size())
    throw std::logic_error("tensors hold more than the file");
}

TEST(Fuzz, Safetensors) {
  const ScratchFolder folder;
  fuzz(with_header(kHeader), [&](const std::string& text) { read_tensors(folder.write("file.safetensors", text)); });
}

TEST(Fuzz, HeadersOfSafetensors) {
  const ScratchFolder folder;
  fuzz(kHeader, [&](const std::string& text) { read_tensors(folder.write("file.safetensors", with_header(text))); });
}

TEST(Fuzz, Checkpoints) {
  const ScratchFolder folder;
  const Checkpoint checkpoint{.step = 3,
                              .settings = {.num_steps = 20, .optimizer = Optimizer::kAdamW, .dtype = DType::kFloat32},
                              .freeze_rule = "paper",
                              .freeze_state = {1, 2},
                              .plan = small_plan(),
                              .run = small_run()};
  const CheckpointTexts texts = to_texts(checkpoint, {});
  for (const auto& [name, content] : {std::pair("checkpoint.json", texts.checkpoint),
                                      std::pair("plan.json", texts.plan), std::pair("run.json", texts.run)}) {
    folder.write("checkpoint.json", texts.checkpoint);
    folder.write("plan.json", texts.plan);
    folder.write("run.json", texts.run);
    fuzz(content, [&](const std::string& text) {
      folder.write(name, text);
      const Checkpoint read = read_checkpoint(folder.path());
      if (read.plan != checkpoint.plan || read.run != checkpoint.run || read.step != checkpoint.step)
        throw std::logic_error("a changed checkpoint was read as another one");
    });
  }
}

/// Sets the correct hash, if the file has one, as an attacker who knows the format would.
std::string sealed(const std::string& text) {
  json::Json manifest = json::Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!manifest.is_object() || !manifest.contains("hash")) return text;
  manifest["hash"] = "";
  manifest["hash"] = content_hash(json::pretty_text(manifest));
  return json::pretty_text(manifest);
}

TEST(Fuzz, ManifestsOfCheckpoints) {
  const ScratchFolder folder;
  const std::filesystem::path checkpoint_folder = checkpoint_path(folder.path(), 3);
  const Checkpoint checkpoint{.step = 3,
                              .settings = {.num_steps = 20},
                              .freeze_rule = "paper",
                              .freeze_state = {1, 2},
                              .attempt = "1-2",
                              .plan = small_plan(),
                              .run = small_run()};
  const std::string tensors = with_header(kHeader);
  const CheckpointTexts texts = to_texts(checkpoint, {file_of(layer_file_name(0), tensors)});
  std::filesystem::create_directories(checkpoint_folder);
  const std::string inside = checkpoint_folder.filename().string() + "/";
  folder.write(inside + "plan.json", texts.plan);
  folder.write(inside + "run.json", texts.run);
  folder.write(inside + layer_file_name(0), tensors);
  fuzz(texts.checkpoint, [&](const std::string& text) {
    folder.write(inside + "checkpoint.json", sealed(text));
    shares_in(folder.path());
    read_whole_checkpoint(checkpoint_folder);
    const Checkpoint read = read_checkpoint(checkpoint_folder);
    first_difference(read.settings, checkpoint.settings);
    checkpoint_from_text(to_text(read));
  });
}

TEST(Fuzz, NetCheckpoints) {
  const ScratchFolder folder;
  const NetCheckpoint checkpoint{
      .step = 3,
      .settings = {.num_steps = 20, .optimizer = Optimizer::kSgd},
      .frozen_layers = 1,
      .epoch_loss = 2.5,
      .run = {.name = "run", .net = "net", .batch = 4, .devices = {{.device_class = "cpu"}}}};
  write_net_manifest(checkpoint, file_of(kNetStateFile, "state"), folder.path());
  const std::string manifest = read_text_file(folder.path() / "checkpoint.json"),
                    run = read_text_file(folder.path() / "run.json");
  for (const auto& [name, content] : {std::pair("checkpoint.json", manifest), std::pair("run.json", run)}) {
    folder.write("checkpoint.json", manifest);
    folder.write("run.json", run);
    fuzz(content, [&](const std::string& text) {
      folder.write(name, text);
      const NetCheckpoint read = read_net_checkpoint(folder.path());
      if (read.run != checkpoint.run || read.step != checkpoint.step || read.epoch_loss != checkpoint.epoch_loss)
        throw std::logic_error("a changed checkpoint was read as another one");
    });
  }
}

TEST(Fuzz, CacheEntries) {
  const std::string name = "frostpipe_fuzz_store_" + std::to_string(getpid());
  const auto store = ActivationStore::create({.entry_bytes = {256, 256}, .memory_bytes = 4096}, name);
  const std::vector<std::byte> written(256, std::byte{3});
  std::vector<std::byte> read(256);
  const std::uint64_t key = 77;
  const std::string path = store->files().shared;
  ASSERT_TRUE(store->write(0, key, written));
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  std::mt19937_64 random(7);
  const auto size = static_cast<std::streamoff>(std::filesystem::file_size(path));
  int missed = 0;
  for (int i = 0; i < num_cases(); ++i) {
    for (int change = 0; change < 3; ++change) {  // anywhere after the header: tables and entries
      file.seekp(16 + static_cast<std::streamoff>(random() % static_cast<std::uint64_t>(size - 16)));
      file.put(static_cast<char>(random()));
    }
    file.flush();
    const std::uint64_t found = store->read(0, std::span(&key, 1), read);
    ASSERT_TRUE(found == 0 || (found == key && read == written)) << "case " << i << ": another entry than was written";
    if (found == 0) {
      ++missed;
      ASSERT_TRUE(store->write(0, key, written));
      ASSERT_EQ(store->read(0, std::span(&key, 1), read), key)
          << "case " << i << ": a damaged entry cannot be written again";
    }
  }
  EXPECT_GT(missed, 0);
}

}  // namespace
}  // namespace frostpipe
