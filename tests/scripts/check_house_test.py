"""scripts/check-house on made-up sources. Oracle: findings counted by hand."""
import importlib.machinery
import importlib.util
import pathlib
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check-house"


def load():
    loader = importlib.machinery.SourceFileLoader("check_house", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_house", loader))
    loader.exec_module(module)
    return module


house = load()


def texts_of(rule, texts):
    return [one.text for one in house.findings(texts) if one.rule == rule]


class CheckHouseTest(unittest.TestCase):
    def test_a_header_and_its_source_count_as_one_file(self):
        sixteen = {f"cli/f{i}.{end}": "" for i in range(16) for end in ("h", "cpp")}
        self.assertEqual(texts_of("full folders", sixteen), [])
        self.assertEqual(texts_of("full folders", {**sixteen, "cli/report/page.h": ""}), [])
        self.assertEqual(texts_of("full folders", {**sixteen, "cli/CMakeLists.txt": ""}),
                         ["cli/: has 17 files, must be at most 16"])

    def test_columns_are_characters_and_what_cannot_be_broken_may_be_long(self):
        self.assertEqual(texts_of("long lines", {"plan/a.h": "// " + 117 * "é"}), [])
        self.assertEqual(texts_of("long lines", {"plan/a.h": "\n// " + 118 * "é"}),
                         ["plan/a.h:2: has 121 columns, must be at most 120"])
        long = 60 * "| x "
        self.assertEqual(texts_of("long lines", {"a.md": long, "a.json": long, "b.md": 200 * "x"}), [])
        self.assertEqual(len(texts_of("long lines", {"a.py": "# " + long})), 1)

    def test_functions_are_found_by_their_braces(self):
        source = """\
namespace a {
struct S {
  S() : x{1}, y(2) {
    f();
  }
  int x{}, y = 0;
  auto g() const -> std::vector<int> {
    return {x, y};  // }
  }
};
const std::array<int, 2> kValues{{1, 2}};
const Registered test("name", [](int x) {
  if (x) {
    g("}");
  }
});
std::string
text() {
  return R"(})";
}
}  // namespace a
"""
        self.assertEqual(list(house.cpp_functions(source)), [(3, 5), (7, 9), (12, 16), (17, 20)])

    def test_long_files_and_functions_are_named(self):
        body = "void f() {\n" + 58 * "  g();\n" + "}\n"
        self.assertEqual(texts_of("long functions", {"plan/a.cpp": body}), [])
        self.assertEqual(texts_of("long functions", {"plan/a.cpp": "\n" + body.replace("{", "{\n")}),
                         ["plan/a.cpp:2: has a function of 61 lines, must be at most 60"])
        self.assertEqual(texts_of("long functions", {"a.py": "def f():\n" + 60 * "    g()\n"}),
                         ["a.py:1: has a function of 61 lines, must be at most 60"])
        self.assertEqual(texts_of("long files", {"plan/a.h": 350 * "\n"}), [])
        self.assertEqual(texts_of("long files", {"plan/a.h": 351 * "\n"}),
                         ["plan/a.h: has 351 lines, must be at most 350"])

    def test_circles_of_files_and_of_folders_are_found(self):
        chain = {"plan/a.h": '#include "plan/b.h"\n', "plan/b.h": '#include "plan/c.h"\n', "plan/c.h": ""}
        self.assertEqual(texts_of("file cycles", chain), [])
        self.assertEqual(texts_of("file cycles", {**chain, "plan/c.h": '#include "plan/a.h"\n'}),
                         ["plan/a.h, plan/b.h, plan/c.h: include each other"])
        folders = {"plan/a.cpp": '#include "cli/b.h"\n', "plan/b.h": "", "tests/t.cpp": '#include "plan/b.h"\n',
                   "cli/b.h": "", "cli/c.h": '\n#include "plan/b.h"\n'}
        self.assertEqual(texts_of("file cycles", folders), [])
        self.assertEqual(texts_of("folder cycles", folders),
                         ["cli, plan: include each other: plan/a.cpp:1 includes cli/, cli/c.h:2 includes plan/"])

    def test_arrows_are_those_of_the_libraries(self):
        texts = {"CMakeLists.txt": "frostpipe_library(profiles)\nfrostpipe_library(planner USES plan\n  LINKS fmt)\n",
                 "plan/CMakeLists.txt": "frostpipe_library(plan FOLDERS schedules USES profiles)\n",
                 "profiles/a.h": "", "plan/a.h": '#include "profiles/a.h"\n',
                 "plan/schedules/a.cpp": '#include "plan/a.h"\n#include "profiles/a.h"\n',
                 "planner/a.cpp": '#include "profiles/a.h"\n'}
        self.assertEqual(texts_of("forbidden includes", texts), [])
        texts["profiles/b.cpp"] = '\n#include "plan/a.h"\n'
        texts["plan/b.cpp"] = '#include "cli/a.h"\n'
        texts["cli/a.h"] = ""
        self.assertEqual(texts_of("forbidden includes", texts), [
            "profiles/b.cpp:2: must not include plan/a.h: profiles uses nothing (CMakeLists.txt)",
            "plan/b.cpp:1: must not include cli/a.h: plan uses profiles (CMakeLists.txt)"])

    def test_keys_of_a_type_stand_in_one_file(self):
        def keys_of(described):
            return f"template <class Archive>\nvoid fields(Archive& a, json::Value<Archive, {described}>& it) {{\n}}\n"
        texts = {"plan/a_json.h": keys_of("Link") + keys_of("Node"), "plan/b.cpp": keys_of("Plan")}
        self.assertEqual(texts_of("keys twice", texts), [])
        texts["profiles/c.cpp"] = keys_of("Link")
        self.assertEqual(texts_of("keys twice", texts), ["profiles/c.cpp: has fields of Link, as plan/a_json.h has"])


if __name__ == "__main__":
    unittest.main()
