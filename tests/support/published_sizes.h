#pragma once
#include <vector>

namespace frostpipe::test {

/// Parameters in millions of PipeTransformer's units (He et al. 2021): embedding, (attention, MLP) per block, rest.
inline std::vector<double> units(double embedding, int blocks, double attention, double mlp,
                                 const std::vector<double>& rest) {
  std::vector<double> sizes{embedding};
  for (int block = 0; block < blocks; ++block) {
    sizes.push_back(attention);
    sizes.push_back(mlp);
  }
  sizes.insert(sizes.end(), rest.begin(), rest.end());
  return sizes;
}

inline std::vector<double> vit_base_sizes() { return units(0.743, 12, 2.364, 4.724, {0.0015, 0.769}); }
inline std::vector<double> bert_large_sizes() { return units(31.78, 24, 4.200, 8.400, {0.002}); }
inline std::vector<double> bert_base_sizes() { return units(23.84, 12, 2.364, 4.724, {0.0015}); }

}  // namespace frostpipe::test
