#pragma once

namespace frostpipe {

/// Becomes frostpipe-bench for `bench`. Becomes the program with LibTorch (find_executor) if the command computes
/// (profile, train, evaluate, serving run, and those of nets) and has none of --help, --like, --import and --emulate.
/// Returns otherwise, and if this is that program, or if there is none (built without the executor: the command will
/// say so). Throws RuntimeFailure if the program cannot be started, or if this folder was installed and there is no
/// LibTorch for it; InvalidInput if a limit of this process is too low for it.
void hand_over(int argc, char** argv);

}  // namespace frostpipe
