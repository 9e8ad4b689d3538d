#include "executor/installation/find_torch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <sstream>
#include <system_error>

#include "base/files.h"
#include "base/process/child_output.h"

namespace frostpipe {
namespace {

namespace fs = std::filesystem;

/// Finds the folder without importing torch, which would take seconds. Ignores a torch in the current folder.
constexpr const char* kFindInPython =
    "import importlib.util, os, sys\n"
    "sys.path[:] = filter(None, sys.path)\n"
    "spec = importlib.util.find_spec('torch')\n"
    "print(os.path.dirname(spec.origin) if spec and spec.origin else '')\n";

fs::path library_in(const fs::path& folder) { return folder / "lib" / "libtorch_cpu.so"; }

/// Returns "2.11." of "2.11.0+cu130".
std::string_view major_and_minor(std::string_view version) {
  return version.substr(0, version.find('.', version.find('.') + 1) + 1);
}

bool is_there(const fs::path& file) {
  std::error_code unreadable;
  return fs::exists(file, unreadable);
}

/// Sets search.found to the folder if it fits; otherwise adds the reason why it does not to search.looked_at.
void consider(const fs::path& folder, const std::string& named_by, std::string_view wanted, TorchSearch& search) {
  const std::string place = named_by == folder.string() ? named_by : fmt::format("{}, {}", named_by, folder.string());
  if (!is_there(library_in(folder))) {
    search.looked_at.push_back(place + ": has no lib/libtorch_cpu.so");
    return;
  }
  const std::string version = torch_version(folder);
  if (!version.empty() && !version.starts_with(major_and_minor(wanted))) {
    search.looked_at.push_back(fmt::format("{}: is version {}, must be {}*", place, version, major_and_minor(wanted)));
    return;
  }
  std::error_code unreadable;
  const fs::path real = fs::canonical(folder, unreadable);
  search.found = Torch{.folder = unreadable ? folder : real, .version = version, .named_by = named_by};
}

void consider_python(const TorchPlaces& places, std::string_view wanted, TorchSearch& search) {
  const std::string& python = places.python;
  const ChildOutput child = output_of({python, "-c", kFindInPython}, {}, places.python_limit);
  std::string folder = child.output;  // the last line; Python may print other things at its start
  if (folder.ends_with('\n')) folder.pop_back();
  folder.erase(0, folder.rfind('\n') + 1);
  if (child.timed_out) {
    search.looked_at.push_back(
        fmt::format("{} had not ended after {} s, and was killed", python, places.python_limit.count()));
  } else if (child.exit_code == 127) {
    search.looked_at.push_back(python + " cannot be started");
  } else if (child.exit_code != 0) {
    search.looked_at.push_back(fmt::format("{} cannot look for its torch (exit code {})", python, child.exit_code));
  } else if (folder.empty()) {
    search.looked_at.push_back(python + " has no torch");
  } else {
    consider(folder, python, wanted, search);
  }
}

/// Considers PREFIX/lib/torch, where pip's --target puts torch with its libraries, and PREFIX/lib, where PyTorch's
/// archive puts them.
void consider_prefix(const fs::path& prefix, std::string_view wanted, TorchSearch& search) {
  const fs::path unpacked = prefix / "lib" / "torch";
  for (const fs::path& folder : {unpacked, prefix}) {
    if (search.found || !is_there(library_in(folder))) continue;
    consider(folder, (prefix / "lib").string(), wanted, search);
  }
  if (!is_there(library_in(unpacked)) && !is_there(library_in(prefix)))
    search.looked_at.push_back(
        fmt::format("{} has neither torch/lib/libtorch_cpu.so nor libtorch_cpu.so", (prefix / "lib").string()));
}

}  // namespace

TorchPlaces torch_places(const fs::path& prefix) {
  const char* const given = std::getenv("TORCH_ROOT");
  TorchPlaces places{.torch_root = std::nullopt, .prefix = prefix};
  if (given && *given) places.torch_root = given;
  return places;
}

TorchSearch find_torch(const TorchPlaces& places, std::string_view version) {
  TorchSearch search;
  if (places.torch_root) {
    consider(*places.torch_root, "TORCH_ROOT", version, search);
    return search;
  }
  search.looked_at.push_back("TORCH_ROOT is not set");
  consider_python(places, version, search);
  if (!search.found) consider_prefix(places.prefix, version, search);
  return search;
}

std::string_view torch_release(std::string_view version) { return version.substr(0, version.find('+')); }

std::string torch_version(const fs::path& folder) {
  std::istringstream version_file(read_text_if_any(folder / "version.py"));
  for (std::string line; std::getline(version_file, line);) {
    const std::size_t begin = line.find_first_of("'\"") + 1;
    if (line.starts_with("__version__") && begin != 0)
      return line.substr(begin, line.find_first_of("'\"", begin) - begin);
  }
  std::istringstream build_version(read_text_if_any(folder / "build-version"));  // of PyTorch's archive without Python
  std::string version;
  std::getline(build_version, version);
  return version;
}

std::string not_found_text(const TorchSearch& search, const TorchPlaces& places, std::string_view version) {
  return fmt::format("LibTorch {}* was not found: {}; {}", major_and_minor(version), fmt::join(search.looked_at, "; "),
                     how_to_get_torch(places.prefix, version));
}

std::string how_to_get_torch(const fs::path& prefix, std::string_view version) {
  return fmt::format(
      "install torch=={} for python3, or set TORCH_ROOT to a folder .../site-packages/torch that holds it, or unpack "
      "it "
      "with its dependencies into {}",
      torch_release(version), (prefix / "lib").string());
}

}  // namespace frostpipe
