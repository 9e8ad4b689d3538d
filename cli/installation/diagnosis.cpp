#include "cli/installation/diagnosis.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"
#include "base/units.h"

namespace frostpipe {
namespace {

std::string_view last_line(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  return text.substr(text.rfind('\n') + 1);
}

/// Returns "2.28.9" for 22809. NCCL that cannot be loaded has version 0.
std::string nccl_version_text(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

std::string line(std::string_view name, std::string_view text) { return fmt::format("{:<12} {}\n", name, text); }

std::string torch_line(const Diagnosis& diagnosis) {
  if (!diagnosis.executor) return line("LibTorch", "this program was built without it");
  if (!diagnosis.torch) return line("LibTorch", diagnosis.executor->prefix.empty() ? "cannot be loaded" : "not found");
  const std::string version = diagnosis.torch->version.empty() ? "of unknown version" : diagnosis.torch->version;
  const std::string state = diagnosis.libtorch
                                ? fmt::format("; its kernels use {}", diagnosis.libtorch->cpu_instructions)
                                : "; it cannot be loaded";
  return line("LibTorch", fmt::format("{}, {} ({}){}", version, diagnosis.torch->folder.string(),
                                      diagnosis.torch->named_by, state));
}

std::string cuda_line(const Diagnosis& diagnosis) {
  if (!diagnosis.libtorch) return "";
  const LibTorchFacts& facts = *diagnosis.libtorch;
  if (!facts.has_cuda_module) return line("CUDA", "this program was built without it");
  if (facts.cuda_version == 0) return line("CUDA", "cannot be loaded: " + facts.cuda_fault);
  return line("CUDA", fmt::format("{}; NCCL {}", cuda_version_text(facts.cuda_version),
                                  facts.nccl_version ? nccl_version_text(facts.nccl_version) : "cannot be loaded"));
}

std::string onednn_line(const Diagnosis& diagnosis) {
  if (!diagnosis.libtorch || !diagnosis.libtorch->prefers_onednn) return "";
  if (diagnosis.libtorch->onednn.empty())
    return line("oneDNN",
                "not found; with its library (Debian: libdnnl2 or libdnnl3) --device cpu is faster on this processor");
  return line("oneDNN", diagnosis.libtorch->onednn + ", for products of float32 matrices");
}

std::string gpu_lines(const NvidiaDriver& driver) {
  if (driver.gpus.empty()) return line("GPUs", driver.fault.empty() ? "none" : fmt::format("none ({})", driver.fault));
  std::string text;
  for (std::size_t index = 0; index < driver.gpus.size(); ++index) {
    const Gpu& gpu = driver.gpus[index];
    text += line(fmt::format("GPU {}", index),
                 fmt::format("{}, {}, compute capability {}.{}", gpu.name, format_bytes(gpu.memory),
                             gpu.compute_capability / 10, gpu.compute_capability % 10));
  }
  return text + line("driver", "supports CUDA " + cuda_version_text(driver.cuda_version));
}

std::string interface_text(const NetworkInterface& interface) {
  const std::string speed =
      interface.megabits_per_second ? fmt::format(", {} Mbit/s", *interface.megabits_per_second) : "";
  return fmt::format("{}{}{}{}", interface.name, interface.addresses.empty() ? "" : " ",
                     fmt::join(interface.addresses, " "), speed);
}

std::string machine_lines(const Machine& machine) {
  std::vector<std::string> interfaces;
  for (const NetworkInterface& interface : machine.interfaces) interfaces.push_back(interface_text(interface));
  const std::string limit = machine.memory_limit
                                ? fmt::format("; this process's group may have {}", format_bytes(*machine.memory_limit))
                                : "";
  return line("processor", fmt::format("{}, {} of {} cores for this process", machine.processor, machine.usable_cores,
                                       machine.cores)) +
         line("memory", fmt::format("{}, {} of it available{}", format_bytes(machine.memory),
                                    format_bytes(machine.available_memory), limit)) +
         line("/dev/shm", machine.shared_memory ? format_bytes(*machine.shared_memory) + " free" : "is not there") +
         line("interfaces", interfaces.empty() ? "none" : fmt::format("{}", fmt::join(interfaces, "; "))) +
         line("C library", machine.c_library);
}

/// Says why the executor ended without its facts: a limit, the loader's message, or a signal.
Problem start_problem(const Diagnosis& diagnosis) {
  const ChildOutput& start = diagnosis.start;
  const std::string program = diagnosis.executor->file.string();
  if (start.timed_out)
    return {
        fmt::format("{} had not ended after {} s, and was killed", program, kStartLimit.count()),
        "try again: where its libraries come from a network's file system, the first start is slow; if later starts "
        "are slow too, put the libraries on a disk of this machine"};
  const std::string to_do = fmt::format(
      "install torch=={} with all its dependencies; a library that is named above and is none of LibTorch's belongs to "
      "the system",
      torch_release(diagnosis.libtorch_version));
  if (const std::string_view said = last_line(start.errors); !said.empty()) return {std::string(said), to_do};
  if (start.exit_code > 128) return {fmt::format("{} was ended by signal {}", program, start.exit_code - 128), to_do};
  return {fmt::format("{} cannot be started (exit code {})", program, start.exit_code), to_do};
}

/// Says why a GPU that the driver knows cannot be used.
std::optional<Problem> gpu_problem(const Diagnosis& diagnosis) {
  if (diagnosis.driver.gpus.empty() || !diagnosis.libtorch || diagnosis.libtorch->cuda_fault.empty())
    return std::nullopt;
  const LibTorchFacts& facts = *diagnosis.libtorch;
  if (!facts.has_cuda_module)
    return Problem{"there is a GPU, and this frostpipe was built without CUDA",
                   "build it where a CUDA toolkit with NCCL is installed, or train with --device cpu"};
  if (facts.cuda_version == 0)
    return Problem{facts.cuda_fault, fmt::format("install torch=={} with all its dependencies where LibTorch is ({})",
                                                 torch_release(diagnosis.libtorch_version), facts.folder)};
  const std::string versions =
      fmt::format("the driver supports CUDA {} and LibTorch needs {}", cuda_version_text(diagnosis.driver.cuda_version),
                  cuda_version_text(facts.cuda_version));
  if (diagnosis.driver.cuda_version < facts.cuda_version)
    return Problem{facts.cuda_fault, versions + ": have a newer driver installed, or train with --device cpu"};
  return Problem{facts.cuda_fault, versions +
                                       ", which suffices: see what nvidia-smi says of the GPU (its mode, what "
                                       "uses it, services that are missing), or train with --device cpu"};
}

std::string verdict(const Diagnosis& diagnosis, const std::vector<Problem>& problems) {
  std::string text;
  for (const Problem& problem : problems)
    text += fmt::format("\nMISSING  {}\nTO DO    {}\n", problem.missing, problem.to_do);
  if (!text.empty()) return text;
  return diagnosis.driver.gpus.empty() ? "\nNothing is missing for --device cpu.\n"
                                       : "\nNothing is missing for --device cpu and --device cuda.\n";
}

nlohmann::ordered_json machine_json(const Machine& machine) {
  nlohmann::ordered_json json{{"processor", machine.processor},
                              {"cores", machine.cores},
                              {"usable_cores", machine.usable_cores},
                              {"memory_bytes", machine.memory},
                              {"available_memory_bytes", machine.available_memory},
                              {"c_library", machine.c_library}};
  json["memory_limit_bytes"] = machine.memory_limit ? nlohmann::ordered_json(*machine.memory_limit) : nullptr;
  json["shared_memory_bytes"] = machine.shared_memory ? nlohmann::ordered_json(*machine.shared_memory) : nullptr;
  json["interfaces"] = nlohmann::ordered_json::array();
  for (const NetworkInterface& interface : machine.interfaces) {
    nlohmann::ordered_json entry{{"name", interface.name}, {"addresses", interface.addresses}};
    if (interface.megabits_per_second) entry["megabits_per_second"] = *interface.megabits_per_second;
    json["interfaces"].push_back(entry);
  }
  return json;
}

nlohmann::ordered_json facts_json(const LibTorchFacts& facts) {
  return {{"folder", facts.folder},
          {"cpu_instructions", facts.cpu_instructions},
          {"prefers_onednn", facts.prefers_onednn},
          {"onednn", facts.onednn},
          {"has_cuda_module", facts.has_cuda_module},
          {"cuda_fault", facts.cuda_fault},
          {"cuda_version", facts.cuda_version},
          {"nccl_version", facts.nccl_version},
          {"num_gpus", facts.num_gpus}};
}

}  // namespace

std::vector<Problem> problems_of(const Diagnosis& diagnosis) {
  std::vector<Problem> problems;
  if (!diagnosis.limits_fault.empty())
    problems.push_back({diagnosis.limits_fault, "raise the limit where this process is started"});
  if (!diagnosis.executor) {
    problems.push_back(
        {"the LibTorch executor, frostpipe-executor, is not here: this program plans and simulates, and "
         "cannot train",
         "build the preset 'default' (scripts/setup)"});
  } else if (diagnosis.executor->prefix.empty() ? !diagnosis.libtorch : diagnosis.torch && !diagnosis.libtorch) {
    problems.push_back(start_problem(diagnosis));
  } else if (!diagnosis.torch) {
    problems.push_back({fmt::format("LibTorch {} was not found: {}", torch_release(diagnosis.libtorch_version),
                                    fmt::join(diagnosis.looked_at, "; ")),
                        how_to_get_torch(diagnosis.executor->prefix, diagnosis.libtorch_version)});
  }
  if (const std::optional<Problem> problem = gpu_problem(diagnosis)) problems.push_back(*problem);
  return problems;
}

std::string diagnosis_text(const Diagnosis& diagnosis) {
  return line("frostpipe", diagnosis.version) + torch_line(diagnosis) + onednn_line(diagnosis) + cuda_line(diagnosis) +
         gpu_lines(diagnosis.driver) + machine_lines(diagnosis.machine) + verdict(diagnosis, problems_of(diagnosis));
}

std::string diagnosis_json(const Diagnosis& diagnosis) {
  nlohmann::ordered_json json{{"format", "frostpipe.diagnosis"},
                              {"version", 1},
                              {"frostpipe", diagnosis.version},
                              {"built_with_libtorch", diagnosis.libtorch_version}};
  json["libtorch"] = nullptr;
  if (diagnosis.torch) {
    json["libtorch"] = {{"version", diagnosis.torch->version},
                        {"folder", diagnosis.torch->folder.string()},
                        {"named_by", diagnosis.torch->named_by}};
  }
  json["executor"] = diagnosis.libtorch ? facts_json(*diagnosis.libtorch) : nlohmann::ordered_json(nullptr);
  json["driver"] = {{"cuda_version", diagnosis.driver.cuda_version}, {"fault", diagnosis.driver.fault}};
  json["gpus"] = nlohmann::ordered_json::array();
  for (const Gpu& gpu : diagnosis.driver.gpus)
    json["gpus"].push_back(
        {{"name", gpu.name}, {"memory_bytes", gpu.memory}, {"compute_capability", gpu.compute_capability}});
  json["machine"] = machine_json(diagnosis.machine);
  json["problems"] = nlohmann::ordered_json::array();
  for (const Problem& problem : problems_of(diagnosis))
    json["problems"].push_back({{"missing", problem.missing}, {"to_do", problem.to_do}});
  return json_text(json, 2) + "\n";
}

std::string libtorch_facts_json(const LibTorchFacts& facts) { return json_text(facts_json(facts)); }

LibTorchFacts parse_libtorch_facts(std::string_view text) {
  try {
    const nlohmann::json json = nlohmann::json::parse(last_line(text));
    return {.folder = json.at("folder"),
            .cpu_instructions = json.at("cpu_instructions"),
            .prefers_onednn = json.at("prefers_onednn"),
            .onednn = json.at("onednn"),
            .has_cuda_module = json.at("has_cuda_module"),
            .cuda_fault = json.at("cuda_fault"),
            .cuda_version = json.at("cuda_version"),
            .nccl_version = json.at("nccl_version"),
            .num_gpus = json.at("num_gpus")};
  } catch (const nlohmann::json::exception&) {
    throw InvalidInput("LibTorch's facts", "must be the executor's, a JSON object on the last line", last_line(text));
  }
}

}  // namespace frostpipe
