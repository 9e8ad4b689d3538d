// Oracle: transformers' apply_chat_template (Jinja), recorded by scripts/record-reference; folders and errors made by
// hand.
#include "executor/data/chats/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/support/reference_data.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

const Json& recorded() { return test::reference_data("chats_reference.json"); }

const Json& named(const char* list, const std::string& name) {
  for (const Json& one : recorded().at(list))
    if (one.at("name") == name) return one;
  throw std::runtime_error("not recorded: " + name);
}

Conversation conversation_of(const Json& messages) {
  Conversation conversation;
  for (const Json& one : messages) conversation.messages.push_back({one.at("role"), one.at("content")});
  return conversation;
}

ChatTemplate template_named(const std::string& name) {
  const Json& one = named("templates", name);
  return {one.at("template"), "chat_template.jinja", one.at("special_tokens")};
}

std::string said_in(const RenderedText& rendered, const std::vector<TextRange>& ranges) {
  std::string said;
  for (const TextRange& range : ranges) said += "[" + rendered.text.substr(range.begin, range.end - range.begin) + "]";
  return said;
}

class ChatTemplates : public test::ScratchFolderTest {};

// 20 chats, with add_generation_prompt.
TEST_F(ChatTemplates, PromptAsTransformersDoes) {
  const ChatTemplate chats = template_named("SmolLM2");
  int count = 0;
  for (const Json& one : test::reference_data("smollm2_reference.json").at("prompts")) {
    if (!one.contains("messages")) continue;
    EXPECT_EQ(chats.prompt(conversation_of(one.at("messages")).messages), one.at("prompt").get<std::string>());
    ++count;
  }
  EXPECT_EQ(count, 20);
}

// 11 templates (ChatML, SmolLM2, Qwen2.5, Qwen3, Llama 3 and 3.1, Mistral v1 and v3, Gemma 1 and 3, Zephyr), 14 chats.
TEST_F(ChatTemplates, RenderAsTransformersDoesAndKnowWhatTheAssistantSays) {
  int count = 0;
  for (const Json& one : recorded().at("cases")) {
    const std::string name = one.at("template"), chat = one.at("chat");
    SCOPED_TRACE(name + ", " + chat);
    const ChatTemplate chats = template_named(name);
    const Conversation conversation = conversation_of(named("chats", chat).at("messages"));
    ++count;
    if (one.contains("refused")) {
      EXPECT_THAT(message_of([&] { chats.render(conversation); }),
                  HasSubstr("the template refuses it: " + one.at("refused").get<std::string>()));
      continue;
    }
    const RenderedText rendered = chats.render(conversation);
    EXPECT_EQ(rendered.text, one.at("text"));
    std::vector<TextRange> said;
    for (const Json& range : one.at("said")) said.push_back({range.at(0), range.at(1)});
    EXPECT_EQ(rendered.said, said) << said_in(rendered, rendered.said) << "\nmust be " << said_in(rendered, said);
  }
  EXPECT_EQ(count, 11 * 14);
}

// The ranges are those of the same chat with a loss on every turn, without those of the turns that have none.
TEST_F(ChatTemplates, TurnsWithoutALossAreNotLearned) {
  int count = 0;
  for (const Json& one : recorded().at("cases")) {
    const std::string name = one.at("template"), chat = one.at("chat");
    if (one.contains("refused") || name.starts_with("Qwen3") || (chat != "three turns" && chat != "two assistants"))
      continue;
    SCOPED_TRACE(name + ", " + chat);
    Conversation conversation = conversation_of(named("chats", chat).at("messages"));
    std::vector<ChatMessage*> answers;
    for (ChatMessage& message : conversation.messages)
      if (message.role == "assistant") answers.push_back(&message);
    const std::vector<TextRange> said = template_named(name).render(conversation).said;
    ASSERT_EQ(said.size(), answers.size());
    for (std::size_t left_out = 0; left_out < answers.size(); ++left_out) {
      answers[left_out]->has_loss = false;
      std::vector<TextRange> expected = said;
      expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(left_out));
      const RenderedText rendered = template_named(name).render(conversation);
      EXPECT_EQ(rendered.text, one.at("text"));
      EXPECT_EQ(rendered.said, expected) << said_in(rendered, rendered.said);
      answers[left_out]->has_loss = true;
    }
    ++count;
  }
  EXPECT_GE(count, 11);
}

// The ends of turns of Llama 2's and DeepSeek Coder's templates: white space, then the token that ends a text.
TEST_F(ChatTemplates, TheEndOfATurnMayFollowWhiteSpace) {
  const auto said = [](const std::string& end_of_turn, const std::string& end_of_text) {
    const ChatTemplate chats(
        "{% for m in messages %}{% if m.role == 'user' %}<s>[INST] {{ m.content }} [/INST]{% else %}"
        " {{ m.content | trim }}" +
            end_of_turn + "{% endif %}{% endfor %}",
        "t.jinja", {{"eos_token", end_of_text}});
    const RenderedText rendered =
        chats.render({{{"user", "q"}, {"assistant", "a"}, {"user", "r"}, {"assistant", "b"}}});
    return said_in(rendered, rendered.said);
  };
  EXPECT_EQ(said(" {{ eos_token }}", "</s>"), "[a </s>][b </s>]");
  EXPECT_EQ(said("\n<|EOT|>\n", "<|EOT|>"), "[a\n<|EOT|>][b\n<|EOT|>]");
  EXPECT_EQ(said("\n", "</s>"), "[a][b]") << "the next turn's token is not the end of this one";
}

// A template that writes both of the assistant's messages in one turn, without anything between them.
TEST_F(ChatTemplates, ATurnMayHaveALossInPart) {
  const ChatTemplate chats(
      "{% for m in messages %}{% if m.role == 'user' %}<u>{% elif loop.previtem.role == 'user' %}<a>{% endif %}"
      "{{ m.content | upper }}{% endfor %}{% if add_generation_prompt %}<a>{% endif %}",
      "t.jinja", {});
  const auto said = [&](bool first, bool second) {
    const RenderedText rendered =
        chats.render({{{"user", "q"}, {"assistant", "b", first}, {"assistant", "<c>", second}}});
    EXPECT_EQ(rendered.text, "<u>Q<a>B<C>");
    return said_in(rendered, rendered.said);
  };
  EXPECT_EQ(said(true, true), "[B<C>]");
  EXPECT_EQ(said(true, false), "[B]");
  EXPECT_EQ(said(false, true), "[<C>]");
  EXPECT_EQ(said(false, false), "");
}

TEST_F(ChatTemplates, TheirLanguageIsJinjas) {
  const Conversation three_turns = conversation_of(named("chats", "three turns").at("messages"));
  for (const Json& one : recorded().at("language")) {
    const std::string source = one.at("template");
    SCOPED_TRACE(source);
    const std::string message = message_of([&] {
      const ChatTemplate chats(source, "chat_template.jinja", {});
      EXPECT_EQ(chats.render(three_turns).text, one.value("text", ""));
    });
    if (one.contains("refused"))
      EXPECT_THAT(message, HasSubstr(one.at("refused").get<std::string>()));
    else
      EXPECT_EQ(message, "no InvalidInput");
  }
}

// An error names its line, the supported values, and what to do; and nothing runs for ever.
TEST_F(ChatTemplates, UnknownFeaturesAreRefusedByName) {
  const Conversation chat{{{"user", "a"}, {"assistant", "b"}}};
  const auto refusal = [&](const std::string& source) {
    return message_of([&] { ChatTemplate(source, "t.jinja", {}).render(chat); });
  };
  EXPECT_EQ(
      refusal("a\n{{ messages | tojson }}"),
      "t.jinja: line 2: a filter: must be one that is known here (trim, length, count, string, upper, lower, join, "
      "list, selectattr, rejectattr, replace, first, last, items, default), is \"tojson\" (to replace this template, "
      "put another chat_template.jinja into the model's folder; data with \"prompt\" and \"completion\" need no "
      "template)");
  for (const auto& [source, what] : std::map<std::string, std::string>{
           {"{% include 'x' %}",
            "line 1: a statement: must be one that is known here (if, for, set, macro, generation)"},
           {"\n\n{{ now('%d') }}", "line 3: what is called: must be a function that is known here"},
           {"{{ strftime_now('') }}", "the form of a date: must give 1 to 255 bytes"},
           {"{{ strftime_now('%999d') }}", "the form of a date: must give 1 to 255 bytes"},
           {"{{ messages[0].content.title() }}", "a method of a text: must be one that is known here"},
           {"{{ messages is callable }}", "a test: must be one that is known here"},
           {"{{ 'a", "line 1: a text must end in the quote that it begins with"},
           {"{% if true %}a", "must have \"endif\" before it"},
           {"{{ (1 }}", "a tag must end in }}"},
           {"{{ (1 2) }}", "must have ) here"},
           {"{{ 1 +", "line 1: a tag must end in }}"},
           {"{{ 'a' + 1 }}", "what is added to a text: must be a text, is a number"},
           {"{{ nobody + 'a' }}", "what something is added to: must be a text, is not there: nobody"},
           {"{{ nobody.content }}", ".content: must be of an object or a text, is not there: nobody"},
           {"{{ messages }}", "what is written: must be a text, is a list"},
           {"{{ 1 // 0 }}", "must be below 2^31, a divisor not 0"},
           {"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "a macro: must be called from at most 7 others"},
           {"{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
            "must end within 400,000 steps"},
           {"{% set n = namespace(s='x') %}{% for i in range(99) %}{% set n.s = n.s + n.s %}{% endfor %}",
            "must have at most 64 MiB"},
           {"{{ " + std::string(900, '(') + "1" + std::string(900, ')') + " }}", "must nest at most 100 deep"},
           {"{{ x" + std::string(30'000, '.') + " }}", "a tag must have at most 2,000 words"}}) {
    EXPECT_THAT(refusal(source), HasSubstr(what)) << source.substr(0, 80);
  }
}

TEST_F(ChatTemplates, HasItInAFileOfItsOwnOrInTheTokenizersSettings) {
  const Conversation chat{{{"user", "a"}, {"assistant", "b"}}};
  EXPECT_FALSE(chat_template_in(folder_));
  file("tokenizer_config.json", R"({"bos_token": {"content": "<s>"}, "chat_template": [
    {"name": "tool_use", "template": "x"}, {"name": "default", "template": "{{ bos_token }}1{{ eos_token }}"}]})");
  file("special_tokens_map.json", R"({"bos_token": "<other>", "eos_token": "</s>"})");
  EXPECT_EQ(chat_template_in(folder_)->render(chat).text, "<s>1</s>");
  file("tokenizer_config.json", R"({"chat_template": "{{ messages[1].content }}</s>"})");
  EXPECT_EQ(chat_template_in(folder_)->render(chat), (RenderedText{.text = "b</s>", .said = {{0, 5}}}));
  file("chat_template.jinja", "{{ messages[0].content }}{{ bos_token }}\n");
  EXPECT_EQ(chat_template_in(folder_)->render(chat), (RenderedText{.text = "a<other>", .said = {}}));
  std::filesystem::remove(folder_ / "chat_template.jinja");
  file("tokenizer_config.json", R"({"chat_template": [{"name": "rag", "template": "x"}]})");
  EXPECT_THAT(
      message_of([&] { chat_template_in(folder_); }),
      HasSubstr("tokenizer_config.json: chat_template: must be a template, or a list of templates with one named "
                "\"default\", is a list without it"));
}

}  // namespace
}  // namespace frostpipe
