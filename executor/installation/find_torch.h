#pragma once
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace frostpipe {

/// A LibTorch on this machine, as Python's wheel or PyTorch's archive unpacks it.
struct Torch {
  std::filesystem::path folder;  // with lib/libtorch_cpu.so: .../site-packages/torch
  std::string version;           // "2.11.0+cu130"; empty if the folder does not say
  std::string named_by;          // "TORCH_ROOT", "python3", or the installed folder's lib
};

/// Where LibTorch is looked for, in this order.
struct TorchPlaces {
  std::optional<std::string> torch_root;  // nothing else is looked at where it is given
  std::string python = "python3";         // the torch that it imports
  std::chrono::seconds python_limit{60};  // a network's file system may take long to start it from
  std::filesystem::path prefix;           // of the installed folder: PREFIX/lib/torch, else PREFIX/lib
};

/// Those of a folder installed at `prefix`, and of the environment's TORCH_ROOT.
TorchPlaces torch_places(const std::filesystem::path& prefix);

struct TorchSearch {
  std::optional<Torch> found;
  std::vector<std::string> looked_at;  // where it was not, and why: "TORCH_ROOT is not set"
};

/// The first LibTorch that fits programs built with `version`: it has the same major and minor version, the interface
/// in C++ being another in any other. A LibTorch that does not say its version is taken.
TorchSearch find_torch(const TorchPlaces& places, std::string_view version);

/// As the folder says it: "2.11.0+cu130"; empty if it does not.
std::string torch_version(const std::filesystem::path& folder);

/// Without what it was built for, as pip wants it: "2.11.0" of "2.11.0+cu130".
std::string_view torch_release(std::string_view version);

/// What was looked at and what to try, in a sentence, of a search without success.
std::string not_found_text(const TorchSearch& search, const TorchPlaces& places, std::string_view version);

/// What to do about a LibTorch that is missing or incomplete: "install torch==2.11.0 for python3, ..."
std::string how_to_get_torch(const std::filesystem::path& prefix, std::string_view version);

}  // namespace frostpipe
