// Oracle: commands by hand.
#include "cli/training/launch_text.h"

#include <gtest/gtest.h>

namespace frostpipe {
namespace {

JobOnHosts two_and_one() {
  return {.hosts = {"a", "b"}, .ranks_per_host = {2, 1}, .command = {"frostpipe", "train", "my plan.json"}};
}

TEST(LaunchText, WordsAreQuotedWhereTheShellWouldReadThemOtherwise) {
  EXPECT_EQ(shell_text({"a/b.json", "--x=1,2", "my data", "it's", "$HOME", "", "*"}),
            R"(a/b.json --x=1,2 'my data' 'it'\''s' '$HOME' '' '*')");
}

TEST(LaunchText, SlurmGetsCoresForThreads) {
  EXPECT_EQ(slurm_text({.ranks_per_host = {4, 4, 4}, .threads_per_rank = 2, .command = {"frostpipe", "train", "p"}}),
            "#!/bin/bash\n"
            "#SBATCH --nodes=3\n"
            "#SBATCH --ntasks-per-node=4\n"
            "#SBATCH --cpus-per-task=2\n"
            "#SBATCH --requeue\n"
            "#SBATCH --open-mode=append\n"
            "srun --kill-on-bad-exit=1 --cpus-per-task=2 frostpipe train p\n");
}

TEST(LaunchText, SlurmGetsAGpuForEachRank) {
  EXPECT_EQ(slurm_text({.ranks_per_host = {8, 8}, .on_gpus = true, .command = {"frostpipe", "train", "p"}}),
            "#!/bin/bash\n"
            "#SBATCH --nodes=2\n"
            "#SBATCH --ntasks-per-node=8\n"
            "#SBATCH --gpus-per-node=8\n"
            "#SBATCH --requeue\n"
            "#SBATCH --open-mode=append\n"
            "srun --kill-on-bad-exit=1 frostpipe train p\n");
}

TEST(LaunchText, SlurmLeavesRanksAloneThatOutliveLosses) {
  EXPECT_EQ(slurm_text({.ranks_per_host = {1, 1}, .outlives_losses = true, .command = {"frostpipe", "train", "p"}}),
            "#!/bin/bash\n"
            "#SBATCH --nodes=2\n"
            "#SBATCH --ntasks-per-node=1\n"
            "#SBATCH --cpus-per-task=1\n"
            "#SBATCH --requeue\n"
            "#SBATCH --open-mode=append\n"
            "#SBATCH --no-kill\n"
            "srun --no-kill --kill-on-bad-exit=0 --cpus-per-task=1 frostpipe train p\n");
}

TEST(LaunchText, TorchrunStartsTheRanksOfEachHost) {
  EXPECT_EQ(torchrun_text(two_and_one()),
            "# on a\n"
            "torchrun --no-python --nnodes 2 --node-rank 0 --nproc-per-node 2 --master-addr a --master-port 29500 "
            "frostpipe train 'my plan.json'\n"
            "# on b\n"
            "torchrun --no-python --nnodes 2 --node-rank 1 --nproc-per-node 1 --master-addr a --master-port 29500 "
            "frostpipe train 'my plan.json'\n");
}

TEST(LaunchText, TorchrunsAgentsGoOnAsOftenAsTheJobMay) {
  JobOnHosts job = two_and_one();
  job.min_hosts = 1;
  job.max_restarts = 7;
  EXPECT_EQ(torchrun_text(job),
            "# on a\n"
            "torchrun --no-python --nnodes 1:2 --nproc-per-node 2 --max-restarts 7 --rdzv-backend c10d "
            "--rdzv-endpoint a:29500 frostpipe train 'my plan.json'\n"
            "# on b\n"
            "torchrun --no-python --nnodes 1:2 --nproc-per-node 1 --max-restarts 7 --rdzv-backend c10d "
            "--rdzv-endpoint a:29500 frostpipe train 'my plan.json'\n");
}

TEST(LaunchText, MpirunStartsThemInTheOrderOfTheHosts) {
  EXPECT_EQ(mpirun_text(two_and_one()),
            "mpirun --host a:2,b:1 --map-by slot --bind-to none -x MASTER_ADDR=a frostpipe train 'my plan.json'\n");
}

TEST(LaunchText, ByHandTheFirstRankOfAHostFollowsThoseOfTheHostsBeforeIt) {
  EXPECT_EQ(by_hand_text(two_and_one()),
            "# on a\n"
            "(trap 'kill $(jobs -p)' INT TERM; for i in {0..1}; do RANK=$((0 + i)) LOCAL_RANK=$i WORLD_SIZE=3 "
            "MASTER_ADDR=a MASTER_PORT=29500 frostpipe train 'my plan.json' & done; wait $(jobs -p))\n"
            "# on b\n"
            "RANK=2 LOCAL_RANK=0 WORLD_SIZE=3 MASTER_ADDR=a MASTER_PORT=29500 frostpipe train 'my plan.json'\n");
}

}  // namespace
}  // namespace frostpipe
