#include "cli/serving/served_folders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/shared/usage_error.h"

namespace frostpipe {
namespace {

using testing::HasSubstr;
using Values = std::vector<std::string>;
using NamesAndFolders = std::vector<std::vector<std::pair<std::string, std::string>>>;

ServedModel with_two_heads(const std::string& name) {
  return {.name = name, .shared_prefix = SharedPrefix{.layers = 1, .heads = 2}};
}

NamesAndFolders folders_of(const ServingPlan& plan, const Values& values) {
  NamesAndFolders all;
  for (const std::vector<HeadFolder>& folders : served_folders(plan, values)) {
    auto& of_model = all.emplace_back();
    for (const HeadFolder& head : folders) of_model.emplace_back(head.name, head.folder.string());
  }
  return all;
}

template <class Error>
std::string refusal_of(const ServingPlan& plan, const Values& values) {
  try {
    served_folders(plan, values);
  } catch (const Error& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another error: ") + error.what();
  }
  return "no error";
}

/// The models of a plan with two heads of "large" and one of "small".
template <class Error>
std::string refusal(const Values& values) {
  return refusal_of<Error>({.models = {with_two_heads("large"), {.name = "small"}}}, values);
}

TEST(ServedFolders, AreOfTheModelThatIsNamedOrOfAny) {
  const ServingPlan plan{.models = {{.name = "large"}, {.name = "small"}}};
  EXPECT_EQ(folders_of(plan, {"large=x", "small=y"}), (NamesAndFolders{{{"", "x"}}, {{"", "y"}}}));
  EXPECT_EQ(folders_of(plan, {"large=x", "y"}), (NamesAndFolders{{{"", "x"}}, {{"", "y"}}}));
  const ServingPlan with_heads{.models = {with_two_heads("large"), with_two_heads("small")}};
  EXPECT_EQ(folders_of(with_heads, {"b=x", "small=a=y", "large=a=z"}),
            (NamesAndFolders{{{"b", "x"}, {"a", "z"}}, {{"b", "x"}, {"a", "y"}}}));
  const ServingPlan mixed{.models = {with_two_heads("net"), {.name = "small"}}};
  EXPECT_EQ(folders_of(mixed, {"small=x", "net=a=y", "net=b=z"}),
            (NamesAndFolders{{{"a", "y"}, {"b", "z"}}, {{"", "x"}}}));
  EXPECT_EQ(folders_of(mixed, {"x", "a=y", "b=z"}), (NamesAndFolders{{{"a", "y"}, {"b", "z"}}, {{"", "x"}}}));
}

TEST(ServedFolders, MayHoldEqualsSigns) {
  const ServingPlan plan{.models = {with_two_heads("net")}};
  EXPECT_EQ(folders_of(plan, {"a=runs/lr=0.1/model", "net=b=runs/lr=0.2/model"}),
            (NamesAndFolders{{{"a", "runs/lr=0.1/model"}, {"b", "runs/lr=0.2/model"}}}));
  EXPECT_EQ(folders_of(plan, {"net=x", "tone=y=z"}), (NamesAndFolders{{{"net", "x"}, {"tone", "y=z"}}}));
  EXPECT_EQ(folders_of({.models = {{.name = "net"}}}, {"net=runs/lr=0.1/model"}),
            (NamesAndFolders{{{"", "runs/lr=0.1/model"}}}));
  EXPECT_EQ(folders_of({.models = {{.name = "runs/lr"}, {.name = "runs/lr=1"}}}, {"runs/lr=1=x", "runs/lr=y"}),
            (NamesAndFolders{{{"", "y"}}, {{"", "x"}}}));
}

TEST(ServedFolders, AreAsManyAsThePlanHas) {
  EXPECT_EQ(
      refusal<UsageError>({}),
      "--model NAME=FOLDER: must be given for each of the 2 heads of large (or --device emulated), is given for 0");
  EXPECT_THAT(refusal<UsageError>({"large=a=x"}), HasSubstr("is given for 1"));
  EXPECT_THAT(refusal<UsageError>({"large=x"}), HasSubstr("is given for 1")) << "a head that is called large";
  EXPECT_THAT(refusal<UsageError>({"large=a=x", "b=y", "c=z"}), HasSubstr("is given for 3"));
  EXPECT_EQ(refusal<UsageError>({"large=a=x", "large=b=y"}),
            "--model small=FOLDER: is required, for the plan serves it (or --device emulated)");
  EXPECT_EQ(refusal<UsageError>({"large=a=x", "large=a=y"}),
            "--model: must have another name for each head, and \"a\" is there twice");
}

TEST(ServedFolders, OfOneModelAreNotGivenTwice) {
  const ServingPlan plan{.models = {{.name = "large"}, {.name = "small"}}};
  EXPECT_EQ(refusal_of<UsageError>(plan, {"large=x", "y", "z"}),
            "--model: must be given once, or as MODEL=FOLDER once for each model");
  EXPECT_EQ(refusal_of<UsageError>(plan, {"large=x", "y", "large=z"}),
            "--model: must be given once for each model, is twice for large");
}

TEST(ServedFolders, AreRefusedWhereNameOrFolderIsMissingOrTheModelIsUnknown) {
  for (const std::string value : {"=a", "a=", "large==x", "large=a="})
    EXPECT_EQ(refusal<UsageError>({value}), "--model: must be [MODEL=]NAME=FOLDER for a head, is \"" + value + "\"");
  EXPECT_EQ(refusal_of<UsageError>({.models = {with_two_heads("large")}}, {"a=x", "b=y", "z"}),
            "--model: must be [MODEL=]NAME=FOLDER for each head of the plan, is \"z\"");
  EXPECT_EQ(refusal_of<InvalidInput>({.models = {{.name = "large"}, {.name = "small"}}}, {"other=x"}),
            "--model: must name a model of the plan: \"large\", \"small\", is \"other\"");
}

}  // namespace
}  // namespace frostpipe
