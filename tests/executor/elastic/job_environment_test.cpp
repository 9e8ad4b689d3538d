// Oracle: the documented variables of torchrun, srun, Open MPI and MPICH, and node lists in Slurm's documentation;
// ranks, by hand.
#include "executor/elastic/job_environment.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/support/child_process.h"

namespace frostpipe {
namespace {

using Variables = EnvironmentVariables;

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables.insert_or_assign(name, value);
  return variables;
}

Variables without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

const Variables kTorchrun{{"RANK", "1"}, {"WORLD_SIZE", "3"}, {"LOCAL_RANK", "1"}, {"MASTER_PORT", "29500"}};
/// Task 3 of 4, the second on the second of two hosts.
const Variables kSlurm{
    {"SLURM_PROCID", "3"},      {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_LOCALID", "1"},           {"SLURM_STEP_ID", "2"},
    {"SLURM_JOB_ID", "123456"}, {"SLURM_STEP_NUM_NODES", "2"}, {"SLURM_STEP_NODELIST", "n[7-8]"}};
const Variables kOpenMpi{{"OMPI_COMM_WORLD_RANK", "3"},
                         {"OMPI_COMM_WORLD_SIZE", "4"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                         {"PMIX_NAMESPACE", "2684420097"}};
const Variables kMpich{
    {"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "4"}, {"MASTER_PORT", "30000"}};
constexpr int kPortOfStep = 20000 + (123456 + 2 * 1009) % 12000;
constexpr int kPortOfNamespace = 20000 + 15314737030908626870u % 12000;  // XXH3 of "2684420097" in Python, by its text

/// "rank/size (number on its host) address:port", and any unusual facts.
std::string text_of(const Variables& variables) {
  const std::optional<RankEnvironment> self = rank_environment(variables);
  if (!self) return "no rank";
  return std::to_string(self->rank) + "/" + std::to_string(self->world_size) + " (" + std::to_string(self->local_rank) +
         ") " + self->master_address + ":" + std::to_string(self->master_port) +
         (self->store_is_external ? " agent" : "") + (self->is_on_one_host ? " on one host" : "") +
         (self->interface.empty() ? "" : " by " + self->interface);
}

std::string refusal_of(const Variables& variables) {
  try {
    return text_of(variables);
  } catch (const InvalidInput& error) {
    return error.what();
  }
}

TEST(JobEnvironment, GivesRankSizeAndAddress) {
  struct Row {
    std::string what;
    Variables variables;
    std::string expected;
  };
  const std::string first_of_step = "3/4 (1) n7:" + std::to_string(kPortOfStep);
  for (const Row& row : std::vector<Row>{
           {"a shell", {{"HOME", "/root"}}, "no rank"},
           {"torchrun", kTorchrun, "1/3 (1) 127.0.0.1:29500"},
           {"torchrun, several hosts", with(kTorchrun, {{"MASTER_ADDR", "10.0.0.7"}}), "1/3 (1) 10.0.0.7:29500"},
           {"torchrun with an agent's store", with(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}}),
            "1/3 (1) 127.0.0.1:29500 agent"},
           {"torchrun, one host", with(kTorchrun, {{"LOCAL_WORLD_SIZE", "3"}}), "1/3 (1) 127.0.0.1:29500 on one host"},
           {"torchrun, an interface", with(kTorchrun, {{"LOCAL_WORLD_SIZE", "2"}, {"GLOO_SOCKET_IFNAME", "ib0"}}),
            "1/3 (1) 127.0.0.1:29500 by ib0"},
           {"torchrun in a step", with(kSlurm, kTorchrun), "1/3 (1) 127.0.0.1:29500"},
           {"srun", kSlurm, first_of_step},
           {"srun, one host", with(kSlurm, {{"SLURM_STEP_NUM_NODES", "1"}, {"SLURM_STEP_NODELIST", "n7"}}),
            "3/4 (1) 127.0.0.1:" + std::to_string(kPortOfStep) + " on one host"},
           {"srun, as told", with(kSlurm, {{"MASTER_ADDR", "fd00::1"}, {"MASTER_PORT", "1234"}}),
            "3/4 (1) fd00::1:1234"},
           {"srun --mpi=pmi2", with(kSlurm, {{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}}), first_of_step},
           {"srun of one task", with(kSlurm, {{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}), "no rank"},
           {"sbatch's script", without(kSlurm, "SLURM_STEP_ID"), "no rank"},
           {"mpirun", kOpenMpi, "3/4 (3) 127.0.0.1:" + std::to_string(kPortOfNamespace) + " on one host"},
           {"mpirun, several hosts",
            with(kOpenMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}, {"MASTER_ADDR", "10.0.0.7"}, {"MASTER_PORT", "1234"}}),
            "3/4 (3) 10.0.0.7:1234"},
           {"mpirun in an allocation, whose helpers srun starts",
            with(with(kSlurm, {{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}}),
                 with(kOpenMpi, {{"MASTER_ADDR", "n7"}, {"MASTER_PORT", "1234"}})),
            "3/4 (3) n7:1234 on one host"},
           {"mpirun of one rank", with(kOpenMpi, {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}),
            "no rank"},
           {"mpiexec", kMpich, "3/4 (1) 127.0.0.1:30000 on one host"},
           {"mpiexec in an allocation, whose helpers srun starts",
            with(with(kSlurm, {{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}}), kMpich),
            "3/4 (1) 127.0.0.1:30000 on one host"},
       })
    EXPECT_EQ(refusal_of(row.variables), row.expected) << row.what;
}

TEST(JobEnvironment, NamesTheVariableThatIsWrong) {
  struct Row {
    Variables variables;
    std::string refusal;
  };
  for (const Row& row : std::vector<Row>{
           {without(kTorchrun, "WORLD_SIZE"), "WORLD_SIZE: must be set when RANK is, is not set"},
           {without(kTorchrun, "MASTER_PORT"), "MASTER_PORT: must be set when RANK is, is not set"},
           {with(kTorchrun, {{"LOCAL_RANK", "one"}}), "LOCAL_RANK: must be a whole number >= 0, is one"},
           {with(kTorchrun, {{"RANK", "-1"}}), "RANK: must be a whole number >= 0, is -1"},
           {with(kTorchrun, {{"RANK", "3"}}), "RANK: must be less than WORLD_SIZE (3), is 3"},
           {with(kTorchrun, {{"MASTER_PORT", "65536"}}), "MASTER_PORT: must be at most 65535, is 65536"},
           {without(kSlurm, "SLURM_LOCALID"), "SLURM_LOCALID: must be set when SLURM_PROCID is, is not set"},
           {with(kSlurm, {{"SLURM_PROCID", "4"}}), "SLURM_PROCID: must be less than SLURM_STEP_NUM_TASKS (4), is 4"},
           {with(kOpenMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}),
            "MASTER_ADDR: must name the host of rank 0 where mpirun starts ranks on several hosts (Open MPI: -x "
            "MASTER_ADDR=HOST, MPICH: -genv MASTER_ADDR HOST), is not set"},
           {without(kMpich, "MASTER_PORT"),
            "MASTER_PORT: must be a port that is free on the host of rank 0 (mpiexec -genv MASTER_PORT N), is not set"},
       })
    EXPECT_EQ(refusal_of(row.variables), "environment variable " + row.refusal);
}

TEST(JobEnvironment, PortsOfJobs) {
  const auto port_of = [](const Variables& variables) {
    const int port = rank_environment(variables)->master_port;
    EXPECT_GE(port, 20000);
    EXPECT_LT(port, 32000) << "where Linux begins to give out ports by itself";
    return port;
  };
  for (int job = 1; job < 30000; job += 37) {
    const Variables one = with(kSlurm, {{"SLURM_JOB_ID", std::to_string(job)}});
    const Variables next = with(kSlurm, {{"SLURM_JOB_ID", std::to_string(job + 1)}});
    EXPECT_NE(port_of(one), port_of(next)) << job;
    EXPECT_NE(port_of(one), port_of(with(one, {{"SLURM_STEP_ID", "3"}}))) << job;
    port_of(with(kOpenMpi, {{"PMIX_NAMESPACE", "prterun-n7-" + std::to_string(job) + "@1"}}));
  }
  EXPECT_EQ(port_of(kOpenMpi), port_of(with(kOpenMpi, {{"OMPI_COMM_WORLD_RANK", "0"}}))) << "all ranks meet";
  EXPECT_NE(port_of(kOpenMpi), port_of(with(kOpenMpi, {{"PMIX_NAMESPACE", "2684485633"}}))) << "two jobs do not";
}

TEST(JobEnvironment, FirstNodeOfASlurmList) {
  for (const auto& [list, first] :
       std::vector<std::pair<std::string, std::string>>{{"lx15", "lx15"},
                                                        {"lx15,lx18", "lx15"},
                                                        {"lx[15,18,32-33]", "lx15"},
                                                        {"linux[00-17]", "linux00"},
                                                        {"n[7-9,12],gpu[1-2]", "n7"},
                                                        {"rack[0-63]_blade[0-41]", "rack0_blade0"},
                                                        {"node-a[2-3]-ib,x", "node-a2-ib"}})
    EXPECT_EQ(first_node_of(list), first) << list;
}

/// The results of is_rank() and answers_for_job() in a process with these variables.
bool is_said(const Variables& variables, bool rank, bool answers) {
  return test::holds_in_a_child([&] {
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    return is_rank() == rank && answers_for_job() == answers;
  });
}

TEST(JobEnvironment, OneProcessAnswersForTheJob) {
  EXPECT_TRUE(is_said({}, false, true)) << "it launches its ranks";
  EXPECT_TRUE(is_said(with(kTorchrun, {{"RANK", "0"}}), true, true));
  EXPECT_TRUE(is_said(kTorchrun, true, false));
  EXPECT_TRUE(is_said(with(kSlurm, {{"SLURM_PROCID", "0"}}), true, true));
  EXPECT_TRUE(is_said({{kControlVariable, "5"}, {"RANK", "0"}}, true, false)) << "our launcher answers";
}

}  // namespace
}  // namespace frostpipe
