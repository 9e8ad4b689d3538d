#pragma once

namespace frostpipe {

/// Becomes the program that the command line is for. That is frostpipe-serving, frostpipe-nets or frostpipe-bench for a
/// command of that name. A command that computes (profile, train, evaluate, serving run, and profile, train, rehearse
/// and evaluate of nets) needs that program with LibTorch: frostpipe-executor, frostpipe-serving-executor or
/// frostpipe-nets-executor (find_executor). It does without LibTorch if it has --help, --like or --import, or is
/// `serving run --device emulated`. Returns for all other commands, in a program with LibTorch, and if the program has
/// not been built: the command will say so. Throws RuntimeFailure if the program cannot be started, or if this folder
/// was installed and there is no LibTorch for it; InvalidInput if a limit of this process is too low for it.
void hand_over(int argc, char** argv);

}  // namespace frostpipe
