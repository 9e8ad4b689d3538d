#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "base/error.h"
#include "executor/data/chats/chat_template.h"
#include "executor/data/chats/examples.h"
#include "tests/fuzz/mutations.h"
#include "tests/support/reference_data.h"

namespace frostpipe {
namespace {

using test::fuzz;
using test::ScratchFolder;

void require_ranges_of_text(const RenderedText& rendered) {
  std::size_t last_end = 0;
  for (const TextRange& range : rendered.said) {
    if (range.begin < last_end || range.end <= range.begin || range.end > rendered.text.size())
      throw std::logic_error("what is said must be pieces of the text, in their order");
    last_end = range.end;
  }
}

TEST(Fuzz, ChatTemplates) {
  const Conversation chat{{{"user", " a "},
                           {"assistant", "<think>\nhm\n</think>\n\nb"},
                           {"user", "c"},
                           {"assistant", "d", false},
                           {"user", "e"},
                           {"assistant", "f"}}};
  for (const nlohmann::json& one : test::reference_data("chats_reference.json").at("templates")) {
    fuzz(one.at("template").get<std::string>(), [&](const std::string& source) {
      require_ranges_of_text(ChatTemplate(source, "t.jinja", one.at("special_tokens")).render(chat));
    });
  }
}

TEST(Fuzz, Examples) {
  const ScratchFolder folder;
  fuzz(
      "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", \"content\": \"b\"}]}\n"
      "{\"prompt\": \"a\", \"completion\": \"b\"}\n{\"instruction\": \"a\", \"input\": \"\", \"output\": \"b\"}\n"
      "{\"text\": \"\\u00e4\\n\"}\n"
      "{\"prompt\": [{\"role\": \"user\", \"content\": \"a\"}],"
      " \"completion\": [{\"role\": \"assistant\", \"content\": \"b\"}]}\n"
      "{\"conversations\": [{\"from\": \"human\", \"value\": \"a\"}, {\"from\": \"gpt\", \"value\": \"b\"}],"
      " \"system\": \"s\"}\n"
      "{\"messages\": [{\"role\": \"developer\", \"content\": [{\"type\": \"text\", \"text\": \"a\"}]},"
      " {\"role\": \"assistant\", \"content\": \"b\", \"weight\": 1}],"
      " \"tools\": [{\"c\": \"d\"}]}\n",
      [&](const std::string& text) {
        const std::filesystem::path path = folder.write("data.jsonl", text);
        std::vector<std::string> notes;
        if (kind_of_records(path, {}) == RecordKind::examples &&
            read_examples(path, {}, Answers::required, notes).empty())
          throw std::logic_error("a file without examples must be refused");
      });
}

TEST(Fuzz, ExamplesInAnArray) {
  const ScratchFolder folder;
  fuzz("[{\"prompt\": \"a\", \"completion\": \"b\"},\n {\"text\": \"c\", \"label\": 1}]\n",
       [&](const std::string& text) {
         std::vector<std::string> notes;
         read_examples(folder.write("data.json", text), {}, Answers::optional, notes);
         if (notes.size() > 1) throw std::logic_error("a file has one note on its fields");
       });
}

}  // namespace
}  // namespace frostpipe
