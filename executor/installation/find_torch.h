#pragma once
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace frostpipe {

/// A LibTorch on this machine, from a Python wheel or from PyTorch's archive.
struct Torch {
  std::filesystem::path folder;  // contains lib/libtorch_cpu.so: .../site-packages/torch
  std::string version;           // "2.11.0+cu130"; "" if unknown
  std::string named_by;          // the place that led to it: "TORCH_ROOT", "python3", or the path of PREFIX/lib
};

/// The places to look for LibTorch, in this order.
struct TorchPlaces {
  std::optional<std::string> torch_root;  // if given, the only place
  std::string python = "python3";         // the interpreter whose torch is used
  std::chrono::seconds python_limit{60};  // it may start slowly from a network file system
  std::filesystem::path prefix;           // installation prefix: PREFIX/lib/torch, else PREFIX/lib
};

/// Returns the places for an installation at `prefix`, and TORCH_ROOT of the environment.
TorchPlaces torch_places(const std::filesystem::path& prefix);

struct TorchSearch {
  std::optional<Torch> found;
  std::vector<std::string> looked_at;  // places without success, and why: "TORCH_ROOT is not set"
};

/// Returns the first LibTorch that fits programs built with `version`: it must have the same major and minor version,
/// since the C++ interface changes between these. A LibTorch of unknown version is accepted.
TorchSearch find_torch(const TorchPlaces& places, std::string_view version);

/// Returns the version that the folder states: "2.11.0+cu130"; "" if it states none.
std::string torch_version(const std::filesystem::path& folder);

/// Returns the version without the build suffix, as pip needs it: "2.11.0" of "2.11.0+cu130".
std::string_view torch_release(std::string_view version);

/// Returns a sentence that lists where an unsuccessful search has looked and what to try.
std::string not_found_text(const TorchSearch& search, const TorchPlaces& places, std::string_view version);

/// Returns advice for a missing or incomplete LibTorch: "install torch==2.11.0 for python3, ..."
std::string how_to_get_torch(const std::filesystem::path& prefix, std::string_view version);

}  // namespace frostpipe
