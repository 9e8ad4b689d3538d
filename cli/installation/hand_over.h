#pragma once

namespace frostpipe {

/// Becomes the program that the command line is for. That is frostpipe-serving, frostpipe-nets or frostpipe-bench for a
/// command of that name. If the command computes (profile, train, evaluate, serving run, and those of nets) and has
/// none of --help, --like and --import, nor is `serving run --device emulated`, it is that program with LibTorch:
/// frostpipe-executor, frostpipe-serving-executor or frostpipe-nets-executor (find_executor). Returns otherwise, and if
/// this is a program with LibTorch, or if the program has not been built: the command will say so. Throws
/// RuntimeFailure if the program cannot be started, or if this folder was installed and there is no LibTorch for it;
/// InvalidInput if a limit of this process is too low for it.
void hand_over(int argc, char** argv);

}  // namespace frostpipe
