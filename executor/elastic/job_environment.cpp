#include "executor/elastic/job_environment.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <span>
#include <string_view>

#include "base/error.h"
#include "base/hash.h"

namespace frostpipe {
namespace {

constexpr const char* kMasterAddress = "MASTER_ADDR";
constexpr const char* kMasterPort = "MASTER_PORT";
constexpr const char* kOfTorchrunsAgent = "TORCHELASTIC_RUN_ID";  // set in every process that torchrun starts

/// The environment variables by which a launcher numbers its ranks.
struct RankVariables {
  const char *rank, *world_size, *local_rank;
};
constexpr RankVariables kTorchrun{"RANK", "WORLD_SIZE", "LOCAL_RANK"};
constexpr RankVariables kOpenMpi{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"};
constexpr RankVariables kPmi{"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"};
constexpr RankVariables kSlurm{"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"};

InvalidInput wrong_variable(std::string_view name, std::string_view rule, std::string_view value) {
  return {fmt::format("environment variable {}", name), rule, value};
}

const std::string& text_of(const EnvironmentVariables& variables, const std::string& name, const std::string& when) {
  const auto found = variables.find(name);
  if (found == variables.end()) throw wrong_variable(name, "must be set " + when, "not set");
  return found->second;
}

/// Reads the variables of one launcher.
class LaunchersView {
 public:
  LaunchersView(const EnvironmentVariables& variables, const RankVariables& names)
      : variables_(variables), names_(names) {}

  bool is_given() const { return variables_.contains(names_.rank); }
  const std::string* find(const std::string& name) const {
    const auto found = variables_.find(name);
    return found == variables_.end() ? nullptr : &found->second;
  }
  const std::string& text(const std::string& name) const { return text_of(variables_, name, when()); }
  int number(const std::string& name) const { return number_of(variables_, name, when()); }
  int number_or(const std::string& name, int otherwise) const { return find(name) ? number(name) : otherwise; }

  int world_size() const { return number(names_.world_size); }
  /// Returns rank and world size, and the rendezvous address if the variables name it.
  RankEnvironment ranks() const {
    RankEnvironment self;
    self.rank = number(names_.rank);
    self.world_size = world_size();
    self.local_rank = number(names_.local_rank);
    if (self.rank >= self.world_size)
      throw wrong_variable(names_.rank, fmt::format("must be less than {} ({})", names_.world_size, self.world_size),
                           std::to_string(self.rank));
    if (const std::string* const interface = find("GLOO_SOCKET_IFNAME")) self.interface = *interface;
    if (const std::string* const address = find(kMasterAddress)) self.master_address = *address;
    self.master_port = number_or(kMasterPort, 0);
    if (self.master_port > std::numeric_limits<std::uint16_t>::max())
      throw wrong_variable(kMasterPort, "must be at most 65535", std::to_string(self.master_port));
    return self;
  }

 private:
  std::string when() const { return fmt::format("when {} is", names_.rank); }
  const EnvironmentVariables& variables_;
  RankVariables names_;
};

/// Derives a port for a job that names none: the same for all its ranks, probably another one for the next job, and
/// below the range from which systems choose ports by themselves.
int port_of_job(std::uint64_t job) { return 20000 + static_cast<int>(job % 12000); }

RankEnvironment by_torchrun(const LaunchersView& view) {
  RankEnvironment self = view.ranks();
  self.master_port = view.number(kMasterPort);
  self.is_on_one_host = view.number_or("LOCAL_WORLD_SIZE", 0) == self.world_size;
  const std::string* const agent = view.find("TORCHELASTIC_USE_AGENT_STORE");
  self.store_is_external = agent && *agent == "True";
  self.watched_by_agent = view.find(kOfTorchrunsAgent) != nullptr;
  return self;
}

/// Sets is_on_one_host. mpirun tells how many ranks are on this host, but not on which hosts the others are, so throws
/// InvalidInput if there are several hosts and MASTER_ADDR is not set.
void look_for_hosts(const LaunchersView& view, int local_size, RankEnvironment& self) {
  self.is_on_one_host = local_size == self.world_size;
  if (self.is_on_one_host || view.find(kMasterAddress)) return;
  throw wrong_variable(kMasterAddress,
                       "must name the host of rank 0 where mpirun starts ranks on several hosts (Open MPI: -x "
                       "MASTER_ADDR=HOST, MPICH: -genv MASTER_ADDR HOST)",
                       "not set");
}

RankEnvironment by_open_mpi(const LaunchersView& view) {
  RankEnvironment self = view.ranks();
  look_for_hosts(view, view.number("OMPI_COMM_WORLD_LOCAL_SIZE"), self);
  if (view.find(kMasterPort)) return self;
  const std::string& job = view.text("PMIX_NAMESPACE");
  self.master_port = port_of_job(hash_bytes(std::as_bytes(std::span(job))));
  return self;
}

RankEnvironment by_pmi(const LaunchersView& view) {
  RankEnvironment self = view.ranks();
  look_for_hosts(view, view.number("MPI_LOCALNRANKS"), self);
  if (!view.find(kMasterPort))
    throw wrong_variable(kMasterPort, "must be a port that is free on the host of rank 0 (mpiexec -genv MASTER_PORT N)",
                         "not set");
  return self;
}

RankEnvironment by_slurm(const LaunchersView& view) {
  constexpr int kStepsApart = 1009;  // keeps the ports of a job's steps apart from those of the next jobs
  RankEnvironment self = view.ranks();
  self.is_on_one_host = view.number("SLURM_STEP_NUM_NODES") == 1;
  if (!view.find(kMasterAddress) && !self.is_on_one_host)
    self.master_address = first_node_of(view.text("SLURM_STEP_NODELIST"));
  if (!view.find(kMasterPort))
    self.master_port = port_of_job(static_cast<std::uint64_t>(view.number("SLURM_JOB_ID")) +
                                   kStepsApart * static_cast<std::uint64_t>(view.number("SLURM_STEP_ID")));
  return self;
}

}  // namespace

EnvironmentVariables environment_variables() {
  EnvironmentVariables variables;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text = *entry;
    const std::size_t end_of_name = text.find('=');
    if (end_of_name != std::string_view::npos)
      variables.emplace(text.substr(0, end_of_name), text.substr(end_of_name + 1));
  }
  return variables;
}

int number_of(const EnvironmentVariables& variables, const std::string& name, const std::string& when) {
  const std::string& value = text_of(variables, name, when);
  int number = 0;
  const auto [stop, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || stop != value.data() + value.size() || number < 0)
    throw wrong_variable(name, "must be a whole number >= 0", value);
  return number;
}

std::string first_node_of(const std::string& node_list) {
  std::string node;
  bool in_brackets = false, number_is_over = false;
  for (const char letter : node_list) {
    if (letter == ',' && !in_brackets) break;
    if (letter == '[' || letter == ']') {
      in_brackets = letter == '[';
      number_is_over = false;
      continue;
    }
    if (in_brackets && (letter == ',' || letter == '-')) number_is_over = true;
    if (!number_is_over) node += letter;
  }
  return node;
}

std::optional<RankEnvironment> rank_environment(const EnvironmentVariables& variables) {
  const LaunchersView torchrun(variables, kTorchrun), open_mpi(variables, kOpenMpi), pmi(variables, kPmi),
      slurm(variables, kSlurm);
  if (torchrun.is_given()) return by_torchrun(torchrun);
  if (open_mpi.is_given() && open_mpi.world_size() > 1) return by_open_mpi(open_mpi);
  // A shell of salloc and a script of sbatch have SLURM_PROCID, but no step.
  const bool is_task = slurm.is_given() && variables.contains("SLURM_STEP_ID");
  // srun --mpi=pmi2 sets both for the same tasks; under mpirun the variables of srun are those of its helpers, one per
  // host.
  const bool is_task_with_pmi = is_task && pmi.is_given() && pmi.world_size() == slurm.world_size();
  if (pmi.is_given() && pmi.world_size() > 1 && !is_task_with_pmi) return by_pmi(pmi);
  if (is_task && slurm.world_size() > 1 && !open_mpi.is_given()) return by_slurm(slurm);
  return std::nullopt;
}

std::optional<RankEnvironment> rank_environment() { return rank_environment(environment_variables()); }

bool is_rank() {
  const EnvironmentVariables variables = environment_variables();
  return variables.contains(kControlVariable) || rank_environment(variables);
}

bool answers_for_job() {
  const EnvironmentVariables variables = environment_variables();
  if (variables.contains(kControlVariable)) return false;
  const std::optional<RankEnvironment> self = rank_environment(variables);
  return !self || self->rank == 0;
}

void end_with_torchruns_agent() {
  if (std::getenv(kOfTorchrunsAgent)) prctl(PR_SET_PDEATHSIG, SIGKILL);
}

}  // namespace frostpipe
