#include "profiles/operators/net_shape.h"

#include <gtest/gtest.h>

#include "profiles/error.h"

namespace frostpipe {
namespace {

// Parameters as torchvision counts them, and MobileNet's as its authors' 4.2 million; multiply-adds as published.
TEST(NetShape, HasThePublishedNumbersOfParameters) {
  EXPECT_EQ(num_parameters(find_net("resnet-18")), 11'689'512);
  EXPECT_EQ(num_parameters(find_net("resnet-50")), 25'557'032);
  EXPECT_EQ(num_parameters(find_net("vgg-16-bn")), 138'365'992);
  EXPECT_EQ(num_parameters(find_net("mobilenet")), 4'231'976);
}

TEST(NetShape, HasThePublishedNumbersOfMultiplyAdds) {
  const auto billions = [](const char* net) { return 1e-9 * static_cast<double>(multiply_adds(find_net(net))); };
  EXPECT_NEAR(billions("resnet-18"), 1.82, 0.01);
  EXPECT_NEAR(billions("resnet-50"), 4.1, 0.02);
  EXPECT_NEAR(billions("vgg-16-bn"), 15.5, 0.05);
  EXPECT_NEAR(billions("mobilenet"), 0.57, 0.005);
}

TEST(NetShape, NamesTheNetsItKnows) {
  try {
    find_net("alexnet");
    FAIL();
  } catch (const InvalidInput& error) {
    EXPECT_STREQ(error.what(), "net: must be one of resnet-18, resnet-50, vgg-16-bn, mobilenet, is \"alexnet\"");
  }
}

}  // namespace
}  // namespace frostpipe
