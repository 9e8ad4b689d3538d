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
  file("adapter_config.json", "{}");
  EXPECT_NO_THROW(require_model_folder(folder_)) << "there is a whole model beside the adapter";
  std::filesystem::remove(folder_ / "config.json");
  EXPECT_EQ(message_of([this] { require_model_folder(folder_); }),
            "FOLDER: must be the folder of a whole model (merge the adapter into its base model with peft's "
            "merge_and_unload, and save the result with save_pretrained), is that of an adapter");
}

}  // namespace
}  // namespace frostpipe
