// Oracle: the expected text for made-up facts.
#include "cli/installation/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"

namespace frostpipe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// An installed folder on a machine without a GPU; nothing is missing.
Diagnosis whole() {
  return {.version = "0.1.0, commit 0123456789ab",
          .libtorch_version = "2.11.0+cu130",
          .executor = ExecutorProgram{.file = "/opt/fp/lib/frostpipe/frostpipe-executor", .prefix = "/opt/fp"},
          .looked_at = {},
          .torch = Torch{.folder = "/opt/torch", .version = "2.11.0+cpu", .named_by = "TORCH_ROOT"},
          .libtorch = LibTorchFacts{.folder = "/opt/torch",
                                    .cpu_instructions = "AVX512",
                                    .prefers_onednn = true,
                                    .onednn = "/usr/lib/libdnnl.so.2",
                                    .has_cuda_module = true,
                                    .cuda_fault = "device cuda: no GPU",
                                    .cuda_version = 13000,
                                    .nccl_version = 22809,
                                    .num_gpus = 0},
          .start = {},
          .limits_fault = "",
          .machine = {.processor = "AMD EPYC",
                      .cores = 8,
                      .usable_cores = 2,
                      .memory = Bytes{16} << 30,
                      .available_memory = Bytes{9} << 30,
                      .memory_limit = Bytes{4} << 30,
                      .shared_memory = Bytes{64} << 20,
                      .interfaces = {{.name = "eth0", .addresses = {"10.0.0.5"}, .megabits_per_second = 10'000},
                                     {.name = "lo", .addresses = {"127.0.0.1", "::1"}, .megabits_per_second = {}}},
                      .c_library = "glibc 2.36"},
          .driver = {.fault = "libcuda.so.1 cannot be loaded: no such file", .cuda_version = 0, .gpus = {}}};
}

Diagnosis with_gpu() {
  Diagnosis diagnosis = whole();
  diagnosis.driver = {.fault = "",
                      .cuda_version = 12080,
                      .gpus = {{.name = "NVIDIA H200", .memory = Bytes{140} << 30, .compute_capability = 90}}};
  return diagnosis;
}

TEST(DiagnosisTest, AMachineWithoutAGpuIsWhole) {
  EXPECT_THAT(problems_of(whole()), IsEmpty());
  EXPECT_EQ(diagnosis_text(whole()),
            "frostpipe    0.1.0, commit 0123456789ab\n"
            "LibTorch     2.11.0+cpu, /opt/torch (TORCH_ROOT); its kernels use AVX512\n"
            "oneDNN       /usr/lib/libdnnl.so.2, for products of float32 matrices\n"
            "CUDA         13.0; NCCL 2.28.9\n"
            "GPUs         none (libcuda.so.1 cannot be loaded: no such file)\n"
            "processor    AMD EPYC, 2 of 8 cores for this process\n"
            "memory       16.0 GiB, 9.00 GiB of it available; this process's group may have 4.00 GiB\n"
            "/dev/shm     64.0 MiB free\n"
            "interfaces   eth0 10.0.0.5, 10000 Mbit/s; lo 127.0.0.1 ::1\n"
            "C library    glibc 2.36\n"
            "\n"
            "Nothing is missing for --device cpu.\n");
}

TEST(DiagnosisTest, OneDnnIsSaidWhereItIsPreferredAndNothingMissingWhereItIsNot) {
  Diagnosis diagnosis = whole();
  diagnosis.libtorch->onednn = "";
  EXPECT_THAT(problems_of(diagnosis), IsEmpty());
  EXPECT_THAT(diagnosis_text(diagnosis), HasSubstr("oneDNN       not found; with its library (Debian: libdnnl2 or "
                                                   "libdnnl3) --device cpu is faster on this processor\n"));
  diagnosis.libtorch->prefers_onednn = false;
  EXPECT_THAT(diagnosis_text(diagnosis), Not(HasSubstr("oneDNN")));
}

TEST(DiagnosisTest, AGpuThatCudaUsesIsNothingMissing) {
  Diagnosis diagnosis = with_gpu();
  diagnosis.libtorch->cuda_fault = "";
  diagnosis.libtorch->num_gpus = 1;
  EXPECT_THAT(problems_of(diagnosis), IsEmpty());
  EXPECT_THAT(diagnosis_text(diagnosis), HasSubstr("GPU 0        NVIDIA H200, 140 GiB, compute capability 9.0\n"
                                                   "driver       supports CUDA 12.8\n"));
  EXPECT_THAT(diagnosis_text(diagnosis), HasSubstr("\nNothing is missing for --device cpu and --device cuda.\n"));
}

TEST(DiagnosisTest, AGpuThatCannotBeUsedIsSaidWithWhatToDo) {
  Diagnosis diagnosis = with_gpu();
  diagnosis.libtorch->cuda_fault = "device cuda: CUDA's runtime says: the driver is too old";
  EXPECT_THAT(
      problems_of(diagnosis),
      ElementsAre(Problem{"device cuda: CUDA's runtime says: the driver is too old",
                          "the driver supports CUDA 12.8 and LibTorch needs 13.0: have a newer driver installed, "
                          "or train with --device cpu"}));
  diagnosis.driver.cuda_version = 13000;
  diagnosis.libtorch->cuda_fault = "device cuda: CUDA's runtime says: system not yet initialized";
  EXPECT_THAT(problems_of(diagnosis),
              ElementsAre(Problem{"device cuda: CUDA's runtime says: system not yet initialized",
                                  "the driver supports CUDA 13.0 and LibTorch needs 13.0, which suffices: see what "
                                  "nvidia-smi says of the GPU (its mode, what uses it, services that are missing), or "
                                  "train with --device cpu"}));
  diagnosis.libtorch->cuda_version = 0;
  diagnosis.libtorch->cuda_fault = "device cuda: libcudnn.so.9: cannot open shared object file";
  EXPECT_THAT(problems_of(diagnosis),
              ElementsAre(Problem{"device cuda: libcudnn.so.9: cannot open shared object file",
                                  "install torch==2.11.0 with all its dependencies where LibTorch is (/opt/torch)"}));
  diagnosis.libtorch->has_cuda_module = false;
  EXPECT_THAT(problems_of(diagnosis),
              ElementsAre(Problem{"there is a GPU, and this frostpipe was built without CUDA",
                                  "build it where a CUDA toolkit with NCCL is installed, or train with --device cpu"}));
}

TEST(DiagnosisTest, AMissingLibTorchIsSaidWithWhereItWasLookedFor) {
  Diagnosis diagnosis = whole();
  diagnosis.torch.reset();
  diagnosis.libtorch.reset();
  diagnosis.looked_at = {"TORCH_ROOT is not set", "python3 has no torch"};
  const std::vector<Problem> problems = problems_of(diagnosis);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].missing, "LibTorch 2.11.0 was not found: TORCH_ROOT is not set; python3 has no torch");
  EXPECT_THAT(problems[0].to_do, HasSubstr("install torch==2.11.0 for python3, or set TORCH_ROOT"));
  EXPECT_THAT(diagnosis_text(diagnosis), HasSubstr("LibTorch     not found\n"));
  EXPECT_THAT(diagnosis_text(diagnosis), HasSubstr("\nMISSING  LibTorch 2.11.0 was not found"));
  EXPECT_THAT(diagnosis_text(diagnosis), Not(HasSubstr("Nothing is missing")));
}

TEST(DiagnosisTest, AnExecutorThatDoesNotStartIsSaidInTheLoadersWords) {
  Diagnosis diagnosis = whole();
  diagnosis.libtorch.reset();
  const std::string words = "frostpipe-executor: libcupti.so.13: cannot open shared object file";
  diagnosis.start = {.exit_code = 127, .output = "", .errors = "a warning\n" + words + "\n"};
  for (const char* const prefix : {"/opt/fp", ""}) {  // installed, and a build folder
    diagnosis.executor->prefix = prefix;
    const std::vector<Problem> problems = problems_of(diagnosis);
    ASSERT_EQ(problems.size(), 1u);
    EXPECT_EQ(problems[0].missing, words);
    EXPECT_THAT(problems[0].to_do, HasSubstr("install torch==2.11.0 with all its dependencies"));
    diagnosis.torch.reset();
  }
}

TEST(DiagnosisTest, AnExecutorThatHangsIsSaidWithItsLimit) {
  Diagnosis diagnosis = whole();
  diagnosis.libtorch.reset();
  diagnosis.start = {.exit_code = 128 + 9, .timed_out = true, .output = "", .errors = "a warning\n"};
  EXPECT_THAT(
      problems_of(diagnosis),
      ElementsAre(Problem{"/opt/fp/lib/frostpipe/frostpipe-executor had not ended after 300 s, and was killed",
                          "try again: where its libraries come from a network's file system, the first start "
                          "is slow; if later starts are slow too, put the libraries on a disk of this machine"}));
}

TEST(DiagnosisTest, EverythingThatIsMissingIsSaidAtOnce) {
  Diagnosis diagnosis = whole();
  diagnosis.executor.reset();
  diagnosis.torch.reset();
  diagnosis.libtorch.reset();
  diagnosis.limits_fault = "limit of open files (ulimit -n): must be at least 32, is 20";
  EXPECT_EQ(problems_of(diagnosis).size(), 2u);
  EXPECT_EQ(nlohmann::json::parse(diagnosis_json(diagnosis)).at("problems").size(), 2u);
}

TEST(DiagnosisTest, JsonHoldsWhatTheTextSays) {
  const nlohmann::json json = nlohmann::json::parse(diagnosis_json(with_gpu()));
  EXPECT_EQ(json.at("format"), "frostpipe.diagnosis");
  EXPECT_EQ(json.at("libtorch").at("folder"), "/opt/torch");
  EXPECT_EQ(json.at("executor").at("nccl_version"), 22809);
  EXPECT_EQ(json.at("gpus").at(0).at("memory_bytes"), Bytes{140} << 30);
  EXPECT_EQ(json.at("machine").at("usable_cores"), 2);
  EXPECT_EQ(json.at("machine").at("memory_limit_bytes"), Bytes{4} << 30);
  EXPECT_EQ(json.at("machine").at("interfaces").at(0).at("megabits_per_second"), 10'000);
  EXPECT_EQ(json.at("problems").at(0).at("missing"), "device cuda: no GPU");
}

TEST(DiagnosisTest, FactsComeBackAsTheyWereSent) {
  const LibTorchFacts facts = *whole().libtorch;
  EXPECT_EQ(parse_libtorch_facts("noise\n" + libtorch_facts_json(facts) + "\n"), facts);
  EXPECT_EQ(parse_libtorch_facts(libtorch_facts_json(facts)), facts);
  EXPECT_THROW(parse_libtorch_facts("error while loading shared libraries"), InvalidInput);
  EXPECT_THROW(parse_libtorch_facts("{\"folder\": 3}"), InvalidInput);
  EXPECT_THROW(parse_libtorch_facts(""), InvalidInput);
}

}  // namespace
}  // namespace frostpipe
