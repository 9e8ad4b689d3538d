#pragma once
#include <ATen/core/Tensor.h>

#include <map>
#include <vector>

namespace frostpipe {

/// The outputs of operators that a device has computed or received, each kept until every task of the device that reads
/// it has run.
class OperatorValues {
 public:
  /// The output of `task`: the operator's samples [begin, end), or [0, 0) if the output does not consist of samples.
  struct Piece {
    int task = 0, begin = 0, end = 0;
    at::Tensor tensor;
    int num_readers = 0;
  };

  /// Adds an output; does nothing if it has no readers.
  void add(int op, Piece piece);

  /// Returns the operator's samples [begin, end), concatenated if several pieces hold them.
  at::Tensor samples(int op, int begin, int end) const;
  /// Returns the output of one task.
  const at::Tensor& of_task(int op, int task) const;

  /// Records that a reader of the task's output has run; the output is freed after the last one.
  void release(int op, int task);

  bool empty() const { return pieces_.empty(); }

 private:
  std::map<int, std::vector<Piece>> pieces_;  // by operator, ascending by samples
};

}  // namespace frostpipe
