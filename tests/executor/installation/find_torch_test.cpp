// Oracle: folders that the tests lay out like wheels, and a script in place of Python with a given output.
#include "executor/installation/find_torch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

constexpr const char* kWanted = "2.11.0+cu130";

class FindTorch : public test::ScratchFolderTest {
 protected:
  /// A folder like a wheel unpacked by pip.
  fs::path torch_in(const std::string& name, const std::string& version) const {
    file(name + "/lib/libtorch_cpu.so");
    file(name + "/version.py", "from typing import Optional\n\n__all__ = ['__version__', 'cuda']\n__version__ = '" +
                                   version + "'\ncuda: Optional[str] = '13.0'\n");
    return folder_ / name;
  }
  /// A script in place of python3, which prints this text and ends with this code.
  std::string python(const std::string& prints, int exit_code = 0) const {
    const fs::path script = file("python", "#!/bin/sh\necho " + prints + "\nexit " + std::to_string(exit_code) + "\n");
    fs::permissions(script, fs::perms::owner_all);
    return script.string();
  }
  TorchPlaces places(const std::string& python) const {
    return {.torch_root = std::nullopt, .python = python, .prefix = folder_ / "prefix"};
  }
  std::string found(const TorchPlaces& places) const {
    const TorchSearch search = find_torch(places, kWanted);
    if (!search.found) return "none";
    return fs::relative(search.found->folder, fs::canonical(folder_)).string() + " by " + search.found->named_by;
  }
};

TEST_F(FindTorch, TorchRootIsTakenBeforeEverythingElse) {
  const fs::path given = torch_in("given", "2.11.0+cu130"), of_python = torch_in("of_python", "2.11.0+cpu");
  torch_in("prefix/lib/torch", "2.11.0");
  TorchPlaces all = places(python(of_python.string()));
  all.torch_root = given.string();
  EXPECT_EQ(found(all), "given by TORCH_ROOT");
}

TEST_F(FindTorch, ATorchRootThatDoesNotFitIsNotPassedOver) {
  TorchPlaces all = places(python(torch_in("of_python", "2.11.0").string()));
  all.torch_root = torch_in("given", "2.5.1+cu121").string();
  EXPECT_THAT(find_torch(all, kWanted).looked_at,
              ElementsAre("TORCH_ROOT, " + *all.torch_root + ": is version 2.5.1+cu121, must be 2.11.*"));
  all.torch_root = (folder_ / "nowhere").string();
  EXPECT_THAT(find_torch(all, kWanted).looked_at,
              ElementsAre("TORCH_ROOT, " + *all.torch_root + ": has no lib/libtorch_cpu.so"));
  EXPECT_EQ(found(all), "none");
}

TEST_F(FindTorch, ThenTheTorchThatPythonImports) {
  torch_in("prefix/lib/torch", "2.11.0");
  const std::string name = python(torch_in("of_python", "2.11.1+cpu").string());
  EXPECT_EQ(found(places(name)), "of_python by " + name);
  EXPECT_EQ(find_torch(places(name), kWanted).found->version, "2.11.1+cpu");
}

TEST_F(FindTorch, ThenTheFolderItself) {
  const std::string lib = (folder_ / "prefix/lib").string();
  file("prefix/lib/libtorch_cpu.so");
  EXPECT_EQ(found(places(python(""))), "prefix by " + lib) << "PyTorch's archive, unpacked over the installed folder";
  EXPECT_EQ(find_torch(places(python("")), kWanted).found->version, "");
  file("prefix/build-version", "2.11.0+cpu\n");
  EXPECT_EQ(find_torch(places(python("")), kWanted).found->version, "2.11.0+cpu");
  torch_in("prefix/lib/torch", "2.11.0");
  EXPECT_EQ(found(places(python(""))), "prefix/lib/torch by " + lib) << "pip --target";
}

TEST_F(FindTorch, OtherOutputOfPythonIsIgnored) {
  const std::string chatty = python("welcome; echo " + torch_in("of_python", "2.11.0").string());
  EXPECT_EQ(found(places(chatty)), "of_python by " + chatty);
  const std::string chatty_without = python("welcome; echo");
  EXPECT_EQ(find_torch(places(chatty_without), kWanted).looked_at[1], chatty_without + " has no torch");
}

TEST_F(FindTorch, AnotherVersionOfPythonsIsPassedOver) {
  torch_in("prefix/lib/torch", "2.11.0");
  const std::string other = python(torch_in("of_python", "2.1.1").string());
  EXPECT_EQ(found(places(other)), "prefix/lib/torch by " + (folder_ / "prefix/lib").string())
      << "2.1 is not 2.11, though the names begin alike";
}

TEST_F(FindTorch, APythonThatHangsIsKilledAndTheLimitSaid) {
  TorchPlaces hanging = places(python("; exec sleep 1000"));
  hanging.python_limit = std::chrono::seconds(1);
  EXPECT_EQ(find_torch(hanging, kWanted).looked_at[1], hanging.python + " had not ended after 1 s, and was killed");
}

TEST_F(FindTorch, SaysWhereItLookedAndWhatToTry) {
  const std::string lib = (folder_ / "prefix/lib").string();
  const auto last = lib + " has neither torch/lib/libtorch_cpu.so nor libtorch_cpu.so";
  const std::string without = python("");
  EXPECT_THAT(find_torch(places(without), kWanted).looked_at,
              ElementsAre("TORCH_ROOT is not set", without + " has no torch", last));
  EXPECT_EQ(find_torch(places("/nowhere/python3"), kWanted).looked_at[1], "/nowhere/python3 cannot be started");
  const std::string broken = python("", 3);
  const TorchSearch search = find_torch(places(broken), kWanted);
  EXPECT_EQ(search.looked_at[1], broken + " cannot look for its torch (exit code 3)");
  EXPECT_EQ(not_found_text(search, places(broken), kWanted),
            "LibTorch 2.11.* was not found: TORCH_ROOT is not set; " + search.looked_at[1] + "; " + last +
                "; install torch==2.11.0 for python3, or set TORCH_ROOT to a folder .../site-packages/torch that holds "
                "it, or unpack it with its dependencies into " +
                lib);
}

TEST_F(FindTorch, PythonIsAskedWithoutImportingTorch) {
  TorchPlaces real = places("python3");
  const fs::path torch = torch_in("packages/torch", "2.11.0");
  file("packages/torch/__init__.py", "raise SystemExit('imported')\n");
  setenv("PYTHONPATH", (folder_ / "packages").c_str(), 1);
  EXPECT_EQ(found(real), "packages/torch by python3");
  unsetenv("PYTHONPATH");
}

}  // namespace
}  // namespace frostpipe
