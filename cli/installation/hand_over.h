#pragma once

namespace frostpipe {

/// Becomes frostpipe-bench for `bench`, and the program with LibTorch (find_executor), where the command computes:
/// profile, train, evaluate, serve, without --help, --like, --import and --emulate. Returns where it does not, where
/// this is that program, or where there is none (built without the executor: the command will say so). Throws
/// RuntimeFailure if it cannot be started, or if this folder was installed and there is no LibTorch for it;
/// InvalidInput if this process may not have what it takes.
void hand_over(int argc, char** argv);

}  // namespace frostpipe
