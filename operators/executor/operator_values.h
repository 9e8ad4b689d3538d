#pragma once
#include <ATen/core/Tensor.h>

#include <map>
#include <vector>

namespace frostpipe {

/// The outputs of operators on a device, each kept until every task there that reads it has run.
class OperatorValues {
 public:
  /// Output of `task`: the operator's samples [begin, end); [0, 0) of what is not made of samples.
  struct Piece {
    int task = 0, begin = 0, end = 0;
    at::Tensor tensor;
    int num_readers = 0;
  };

  /// Not kept without readers.
  void add(int op, Piece piece);

  /// The operator's samples [begin, end), of as many pieces as they are in.
  at::Tensor samples(int op, int begin, int end) const;
  /// The output of one task.
  const at::Tensor& of_task(int op, int task) const;

  /// One reader fewer; the last one drops it.
  void release(int op, int task);

  bool empty() const { return pieces_.empty(); }

 private:
  std::map<int, std::vector<Piece>> pieces_;  // by operator, ascending by samples
};

}  // namespace frostpipe
