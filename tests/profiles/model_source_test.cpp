#include "profiles/model_source.h"

#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

class ModelSource : public test::ScratchFolderTest {};

TEST_F(ModelSource, AFolderIsWantedAndTheHubHasIt) {
  const std::string rule = ": must be the folder of a model, with its config.json, weights and tokenizer";
  EXPECT_EQ(message_of([] { require_model_folder("bert-base-uncased"); }),
            "bert-base-uncased" + rule +
                " (a model of the Hugging Face Hub is fetched with: hf download bert-base-uncased --local-dir "
                "bert-base-uncased), is not there");
  EXPECT_EQ(message_of([] { require_model_folder("google-bert/bert-base-uncased"); }),
            "google-bert/bert-base-uncased" + rule +
                " (a model of the Hugging Face Hub is fetched with: hf download google-bert/bert-base-uncased "
                "--local-dir bert-base-uncased), is not there");
  EXPECT_EQ(message_of([] { require_model_folder("/no/such/folder"); }), "/no/such/folder" + rule + ", is not there");
  EXPECT_EQ(message_of([this] { require_model_folder(file("config.json", "{}")); }),
            "config.json" + rule + ", is a file");
  EXPECT_NO_THROW(require_model_folder(folder_));
}

}  // namespace
}  // namespace frostpipe
