#pragma once

namespace frostpipe {

/// Becomes the program with LibTorch, `frostpipe-executor` beside this one, where the command computes: profile, train, evaluate. Returns where it does not, where
/// this is that program, or where there is none (built without the executor).
void hand_over_to_executor(int argc, char** argv);

}  // namespace frostpipe
