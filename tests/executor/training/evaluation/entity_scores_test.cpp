// Oracle: seqeval's definition of an entity (and CoNLL's script's, which it follows), worked out by hand.
#include "executor/training/evaluation/entity_scores.h"

#include <gtest/gtest.h>

namespace frostpipe {
namespace {

using Entities = std::vector<Entity>;

TEST(Entities, BeginAtABOrWhereTheKindChangesAndEndBeforeTheNext) {
  EXPECT_EQ(entities_of({"B-PER", "I-PER", "O", "B-LOC"}), (Entities{{"LOC", 3, 3}, {"PER", 0, 1}}));
  EXPECT_EQ(entities_of({"B-PER", "B-PER", "I-PER"}), (Entities{{"PER", 0, 0}, {"PER", 1, 2}}));
  EXPECT_EQ(entities_of({"B-PER", "I-LOC", "I-LOC"}), (Entities{{"LOC", 1, 2}, {"PER", 0, 0}})) << "another kind";
  EXPECT_EQ(entities_of({"O", "I-PER", "I-PER", "O", "I-PER"}), (Entities{{"PER", 1, 2}, {"PER", 4, 4}}))
      << "an I after an O begins one";
  EXPECT_EQ(entities_of({"B-PER", "I-PER"}), (Entities{{"PER", 0, 1}})) << "the sentence's end";
  EXPECT_EQ(entities_of({"S-PER", "B-PER", "I-PER", "E-PER", "I-PER"}),
            (Entities{{"PER", 0, 0}, {"PER", 1, 3}, {"PER", 4, 4}}));
  EXPECT_EQ(entities_of({"O", "O"}), Entities{});
  EXPECT_EQ(entities_of({}), Entities{});
}

TEST(Entities, HaveLabelsOfPlaceAndKind) {
  for (const char* label : {"O", "B-PER", "I-x-y", "E-1", "S-a"}) EXPECT_TRUE(is_entity_label(label)) << label;
  for (const char* label : {"NOUN", "B-", "B", "X-PER", "OO", "B_PER"}) EXPECT_FALSE(is_entity_label(label)) << label;
}

/// Three sentences of 3, 2 and 1 words; each word is a token but the second of the first, which has two, and the word
/// of the last, which is cut off. Tokens stand between [CLS] and [SEP].
struct Sentences {
  explicit Sentences(std::vector<std::string> names) {
    dataset.task = Task::token_classification;
    dataset.answer_shape = {.of_sample = 0, .of_token = 2};
    dataset.samples = std::make_unique<TokenSamples>(
        EncodedData{.token_ids = {{0, 1, 2, 3, 4, 9}, {0, 1, 2, 9}, {0, 9}}, .labels = {}});
    dataset.first_tokens = {{1, 2, 4}, {1, 2}, {-1}};
    dataset.words = {.sentences = {{{"Ada", "Lovelace", "slept"}, {0, 1, 2}}, {{"in", "Rome"}, {2, 0}}, {{"Bo"}, {0}}},
                     .label_names = std::move(names)};
  }
  /// The class and probability of each token of the samples 1, 0, 2; -7 for tokens that must not be read.
  static std::vector<double> answers() {
    return {-7, 0, 2,  .9, 1, .8, -7, 0,                // in: O, Rome: I
            -7, 0, 0,  .9, 1, .9, -7, 0, 0, .6, -7, 0,  // Ada: B, Lovelace: I, slept: B
            -7, 0, -7, 0};
  }
  Dataset dataset;
};

TEST(Entities, AreRightWhereKindAndWordsAre) {
  const Sentences given({"B-P", "I-P", "O"});
  const Score score = score_of(given.dataset, {1, 0, 2}, Sentences::answers());
  // There: Ada Lovelace, Rome, Bo. Said: Ada Lovelace, slept, Rome (an I alone begins one). Both: Ada Lovelace, Rome.
  EXPECT_EQ(score.metric, "entity F1");
  EXPECT_DOUBLE_EQ(score.value, 2.0 * 2 / (3 + 3));
  // Deviations of the sentences, 2 hits - F1 (there + said): 2 - 4/3, 2 - 2, 0 - 2/3.
  EXPECT_DOUBLE_EQ(score.standard_error, std::sqrt(2 * (2.0 / 3) * (2.0 / 3)) / 6);
  ASSERT_EQ(score.others.size(), 3u);
  EXPECT_EQ(score.others[0].name, "precision");
  EXPECT_DOUBLE_EQ(score.others[0].value, 2.0 / 3);
  EXPECT_DOUBLE_EQ(score.others[1].value, 2.0 / 3) << score.others[1].name;
  EXPECT_DOUBLE_EQ(score.others[2].value, 3.0 / 6) << "of words: in, Ada, Lovelace";
  ASSERT_EQ(score.of_labels.size(), 1u);
  EXPECT_EQ(score.of_labels[0].label, "P");
  EXPECT_EQ(score.of_labels[0].count, 3);
  EXPECT_EQ(score.of_labels[0].predicted, 3);
  EXPECT_EQ(score.of_labels[0].hits, 2);
}

TEST(Entities, OfLabelsThatAreNoPlacesCountAsWords) {
  const Sentences given({"NOUN", "NAME", "O"});
  const Score score = score_of(given.dataset, {1, 0, 2}, Sentences::answers());
  EXPECT_EQ(score.metric, "accuracy");
  EXPECT_DOUBLE_EQ(score.value, 3.0 / 6);
}

TEST(Entities, ArePredictedInTheColumnsOfCoNll) {
  Sentences given({"B-P", "I-P", "O"});
  std::vector<double> answers = Sentences::answers();
  std::rotate(answers.begin(), answers.begin() + 8, answers.begin() + 20);  // in the samples' order
  EXPECT_EQ(predictions_file(given.dataset, answers),
            "Ada\tB-P\tB-P\nLovelace\tI-P\tI-P\nslept\tO\tB-P\n\nin\tO\tO\nRome\tB-P\tI-P\n\nBo\tB-P\tO\n\n");
  for (TaggedSentence& sentence : given.dataset.words.sentences) sentence.labels.clear();
  EXPECT_EQ(predictions_file(given.dataset, answers),
            "Ada\tB-P\nLovelace\tI-P\nslept\tB-P\n\nin\tO\nRome\tI-P\n\nBo\tO\n\n");
  EXPECT_EQ(score_of(given.dataset, {0, 1, 2}, answers).metric, "") << "nothing to compare with";
}

}  // namespace
}  // namespace frostpipe
