#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include "base/error.h"

namespace frostpipe::test {

/// A separate folder for each test, which is empty at first and removed afterwards.
class ScratchFolderTest : public testing::Test {
 protected:
  ScratchFolderTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~ScratchFolderTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  /// Writes a file, and the folders in its name.
  std::filesystem::path file(const std::string& name, std::string_view content = "") const {
    const std::filesystem::path path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  /// The message of the InvalidInput that the function throws, without this folder, whose name differs from run to run;
  /// "FOLDER" stands for the folder itself.
  std::string message_of(auto function) const {
    try {
      function();
    } catch (const InvalidInput& error) {
      std::string message = error.what();
      const std::string place = folder_.string();
      if (message.starts_with(place + "/")) return message.substr(place.size() + 1);
      if (message.starts_with(place)) message.replace(0, place.size(), "FOLDER");
      return message;
    }
    return "no InvalidInput";
  }

  const std::filesystem::path folder_ = std::filesystem::temp_directory_path() / unique_name();

 private:
  static std::string unique_name() {
    const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
    std::string name = "frostpipe_" + std::to_string(getpid()) + "_" + test.test_suite_name() + "_" + test.name();
    std::replace(name.begin(), name.end(), '/', '_');  // of parametrized tests
    return name;
  }
};

}  // namespace frostpipe::test
