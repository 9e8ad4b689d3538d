#pragma once
// A made-up folder in the form of PPipe's artifact, for tests of its readers.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/files.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe::test {

/// One model of two blocks: 1 ms and 3 ms on L4, half of it with 2 requests; 1 and 2 ms on a half of P4.
class PPipeArtifactFolder : public ScratchFolderTest {
 protected:
  const std::string kPlan = "plans/maf19/net_0.5_L4-P4_25-75_bw-gbps-6_sla-multiplier-5";

  PPipeArtifactFolder() { write_all(); }

  void write(const std::string& file, const std::string& content) { write_file_atomically(folder_ / file, content); }
  void remove(const std::string& file) { std::filesystem::remove_all(folder_ / file); }

  /// Writes the folder again, with nothing else in it.
  void write_all() {
    for (const char* const part : {"plans", "block-timing-tf32", "prepartition_mappings"}) remove(part);
    write("block-timing-tf32/net-L4-1.csv", "1000,1500\n3000,4500\n");
    write("block-timing-tf32/net-P4-2.csv", "1000,1800\n2000,3600\n");
    write("prepartition_mappings/net/contraction_trans-size_1.csv", "1500\n");
    write_plan("_bl.json", R"([{"layers": [0, 2], "gpu": "L4", "mps": 0, "num_gpu": 1.0, "bs": 2}])");
    write_plan("_dart-r.json", R"([{"layers": [0, 2], "gpu": "L4", "mps": 0, "num_gpu": 1.0, "bs": 1}])");
    write_plan("_v4.json", R"([{"layers": [0, 1], "gpu": "P4", "mps": 1, "num_gpu": 1.5, "bs": 1},
                               {"layers": [1, 2], "gpu": "L4", "mps": 0, "num_gpu": 2.0, "bs": 1}])");
  }

  void write_plan(const std::string& planner, std::string partitions) {
    for (std::size_t at = 0; (at = partitions.find("\"bs\"", at)) != std::string::npos; at += 40)
      partitions.insert(at, R"("dnn": "net", "xput": 100.0, )");
    write(kPlan + planner, R"([{"xput": 100.0, "sla": 40000.25, "runtime": 0.5, "config": {"dnn_name": "net",
                               "gpu_name_arr": ["L4", "P4"], "num_gpu_per_server_arr": [4, 1], "bw_gbps": 6,
                               "sla": 40000.25, "max_num_parts": 2, "est_xput": 90.0, "batch_build_factor": 1.3,
                               "hist_adjustment": 16000, "transmit_time_us_arr": [250.125]},
                               "pipelines": [{"xput": 100.0, "partitions": )" +
                               partitions + "}]}]");
  }
};

}  // namespace frostpipe::test
