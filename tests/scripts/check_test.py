"""scripts/check on made-up sources: which headers it compiles."""
import importlib.machinery
import importlib.util
import pathlib
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check"


def load():
    loader = importlib.machinery.SourceFileLoader("check", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("check", loader))
    loader.exec_module(module)
    return module


check = load()


class HeadersToCompileTest(unittest.TestCase):
    def test_a_header_with_libtorch_is_left_to_the_build_that_includes_it_first(self):
        core = {"plan/a.h": "#include <string>\n", "plan/a.cpp": '#include "plan/a.h"\n'}
        self.assertEqual(check.headers_to_compile(core), [(["plan/a.h"], False)])
        tensors = {"executor/a.h": "#include <torch/types.h>\n", "executor/b.h": ' # include "executor/a.h"\n',
                   "executor/a.cpp": '#include "executor/a.h"\n#include "executor/b.h"\n'}
        self.assertCountEqual(check.headers_to_compile({**core, **tensors}),
                              [(["plan/a.h"], False), (["executor/b.h"], True)])

    def test_headers_that_include_each_other_are_looked_at_once(self):
        circle = {"a.h": '#include "b.h"\n', "b.h": '#include "a.h"\n#include <ATen/core/Tensor.h>\n'}
        self.assertEqual(check.headers_to_compile(circle), [(["a.h", "b.h"], True)])

    def test_a_header_follows_one_that_it_includes(self):
        headers = {"a.h": "", "b.h": '#include "a.h"\n', "c.h": '#include "b.h"\n', "d.h": '#include "a.h"\n'}
        self.assertEqual(check.headers_to_compile(headers), [(["a.h", "b.h", "c.h"], False), (["d.h"], False)])

    def test_headers_under_the_names_of_other_libraries_are_left_out(self):
        self.assertEqual(check.headers_to_compile({"cmake/gloo_names/gloo/context.h": ""}), [])


if __name__ == "__main__":
    unittest.main()
