// Oracle: Jinja 3.1.6, which renders these templates to these texts; the limits are ours.
#include "executor/data/chats/jinja_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/error.h"

namespace frostpipe::jinja {
namespace {

using testing::HasSubstr;

std::string rendered(const std::string& source) { return bytes_of(Template(source).render({})); }

std::string refusal(const std::string& source) {
  try {
    return "no InvalidInput: " + rendered(source);
  } catch (const InvalidInput& error) {
    return error.what();
  }
}

TEST(JinjaTemplates, ArgumentsMayBeNamed) {
  for (const auto& [source, text] : std::map<std::string, std::string>{
           {"{{ ''|default('x', boolean=true) }}", "x"},
           {"{{ 'a-b-c'.split('-', maxsplit=1)[1] }}", "b-c"},
           {"{{ 'a-b-c'.split(sep='-')|length }}", "3"},
           {"{{ 'aaa'|replace('a', 'b', 1) }}", "baa"},
           {"{{ 'aaa'|replace(old='a', new='b', count=2) }}", "bba"},
           {"{{ 'aaa'.replace('a', 'aa', -1) }}", "aaaaaa"},
           {"{{ ['1', '2']|join(d='+') }}", "1+2"},
           {"{{ 'xax'|trim(chars='x') }}", "a"},
           {"{{ namespace({'a': '1', 'b': '2'}, b='3').b }}", "3"},
           {"{% macro m(a, b='z') %}{{ a }}{{ b }}{% endmacro %}{{ m('1') }}{{ m('1', b='2') }}", "1z12"}})
    EXPECT_EQ(rendered(source), text) << source;
}

TEST(JinjaTemplates, OtherArgumentsAreRefusedByName) {
  for (const auto& [source, what] : std::map<std::string, std::string>{
           {"{{ ['a']|join('+', attribute='b') }}",
            "arguments of join: must be known here and given once, is \"attribute\""},
           {"{{ 'a'|default('b', default_value='c') }}", "given once, is \"default_value\""},
           {"{{ 'a'.startswith('a', 1) }}", "startswith: must have at most 1 arguments here, is 2"},
           {"{{ 'a'.replace(old='a', new='b') }}", "arguments of replace: must be known here"},
           {"{{ ['b', 'a']|list(reverse=true) }}", "arguments of list: must be known here"},
           {"{{ range(1, 2, 3) }}", "range: must have at most 2 arguments here, is 3"},
           {"{{ 'a'|indent(width=4) }}", "a filter: must be one that is known here"},
           {"{{ 4 is divisibleby(2) }}", "a test: must be one that is known here"},
           {"{% macro m(a) %}{% endmacro %}{{ m(b=1) }}", "arguments of the macro \"m\": must be known here"}})
    EXPECT_THAT(refusal(source), HasSubstr(what)) << source;
}

TEST(JinjaTemplates, ATextHasOnlyPythonsMethods) {
  EXPECT_EQ(rendered("{{ ''.parts is defined }} {{ ''.strip is defined }} {{ ''.title is defined }}"),
            "False True True");
}

TEST(JinjaTemplates, ANamespaceEqualsItself) {
  EXPECT_EQ(rendered("{% set n = namespace(a=1) %}{{ n == n }} {{ n == namespace(a=1) }} {{ n['a'] }}"),
            "True False 1");
}

TEST(JinjaTemplates, EveryLineEndIsANewline) { EXPECT_EQ(rendered("a\rb\r\nc\n\rd\r\n"), "a\nb\nc\n\nd"); }

// Each of these overflowed the stack, an integer or the memory, or never ended.
TEST(JinjaTemplates, LimitsHoldForEveryValue) {
  const auto repeated = [](int count, const std::string& statement) {
    return "{% set n = namespace(x=1, s='aaaa', l=[1]) %}{% for i in range(" + std::to_string(count) + ") %}" +
           statement + "{% endfor %}";
  };
  std::string chain = "{% macro m0() %}{% endmacro %}";
  for (int i = 1; i < 500; ++i) {
    const std::string number = std::to_string(i), before = std::to_string(i - 1);
    chain += "{% macro m" + number + "() %}{{ m" + before + "() }}{% endmacro %}";
  }
  for (const auto& [source, what] : std::map<std::string, std::string>{
           {"{% set n = namespace() %}{% set n.a = n %}{{ n == n }}",
            "an element of a list, an object or a namespace: must be none of these, is a namespace"},
           {"{% set n = namespace() %}{% set n.a = [n] %}", "must be none of these, is a namespace"},
           {"{% set n = namespace() %}{% set n.f = {'f': 1}.get %}", "must be none of these, is a function"},
           {repeated(100'000, "{% set n.l = [n.l] %}"), "a list or an object: must nest at most 100 deep"},
           {repeated(60, "{% set n.l = [n.l, n.l] %}{{ n.l == n.l }}"), "must have at most 2^20 elements"},
           {repeated(60, "{% set n.l = n.l + n.l %}"), "must have at most 2^20 elements"},
           {repeated(20, "{% set n.s = n.s.replace('a', n.s) %}"), "a text of a chat: must have at most 64 MiB"},
           {repeated(9, "{% set n.s = range(99)|join(n.s) %}"), "a text of a chat: must have at most 64 MiB"},
           {repeated(63, "{% set n.x = n.x + n.x %}"), "numbers around +: must be below 2^31"},
           {chain + "{{ m499() }}", "a macro: must be called from at most 7 others, is \"m"}})
    EXPECT_THAT(refusal(source), HasSubstr(what)) << source.substr(0, 120);
}

TEST(JinjaTemplates, OnlyMembersOfANamespaceCanBeSet) {
  EXPECT_THAT(refusal("{% set d = {'a': 1} %}{% set d.a = 2 %}"), HasSubstr("d: must be a namespace, is an object"));
}

}  // namespace
}  // namespace frostpipe::jinja
