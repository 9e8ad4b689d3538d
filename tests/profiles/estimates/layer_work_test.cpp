// Oracle: by hand, from what transformers' modules compute.
#include "profiles/estimates/layer_work.h"

#include <gtest/gtest.h>

#include "profiles/transformer/families.h"
#include "profiles/transformer/transformer_config.h"

namespace frostpipe {
namespace {

// DeiT has a distillation token beside the class token: of its 198 tokens 196 are patches, as of ViT's 197.
TEST(LayerWork, ProjectsThePatchesAlone) {
  const LayerWork vit = layer_work(described(Family::vit), 0, {197}),
                  deit = layer_work(described(Family::deit), 0, {198});
  EXPECT_EQ(deit.flops, vit.flops);
  EXPECT_EQ(deit.kept_values - deit.output_values, vit.kept_values - vit.output_values) << "the pixels";
}

// The factors of a layer scale keep what they multiply: a value per token and hidden value, and no mean or deviation.
TEST(LayerWork, OfALayerScaleKeepsItsInput) {
  TransformerConfig config = described(Family::dinov2);
  config.scales_layers = false;
  const LayerWork without = layer_work(config, 1, {257});
  config.scales_layers = true;
  EXPECT_EQ(layer_work(config, 1, {257}).kept_values - without.kept_values, 257.0 * config.hidden_size);
}

// Of a head with latent keys only these values have positions: a sine or cosine of each is kept for each token.
TEST(LayerWork, OfLatentAttentionTurnsTheValuesWithPositions) {
  TransformerConfig config = described(Family::deepseek_v3);
  config.rotaries = {{}};
  config.latent = {.query_rank = 32, .key_value_rank = 16, .rotary_size = 8, .value_size = 16};
  config.head_size = 24;
  config.patterns.assign(config.num_hidden_layers, {.window = 0, .rotary = 0});
  const LayerWork turned = layer_work(config, 1, {100});
  for (AttentionPattern& pattern : config.patterns) pattern.rotary = -1;
  EXPECT_EQ(turned.kept_values - layer_work(config, 1, {100}).kept_values, 100 * 8);
}

}  // namespace
}  // namespace frostpipe
