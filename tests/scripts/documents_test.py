"""The documents: the targets of links, the paths and the tests that they name exist, and the picture has the page's
figures."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "bench/README.md", *sorted(ROOT.glob("docs/**/*.md"))]
CHANGELOG = ROOT / "CHANGELOG.md"
FOLDERS = ("bench", "cli", "cmake", "docs", "executor", "plan", "planner", "profiles", "scripts", "simulator", "tests")
RUNS = ("one_process", "data_parallel", "static_pipeline", "elastic")


def without_code(text):
    """The text without indented and fenced blocks, which have no links."""
    return re.sub(r"^    .*$", "", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), flags=re.M)


def anchors(text):
    """The anchors of the headings."""
    headings = re.findall(r"^#+ (.*)$", without_code(text), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def tests_in_the_tree():
    """Patterns of the names of all tests: Suite.Name in C++, where a macro may put in numbers, test_name in Python."""
    names = {r"Suite\.Name"}  # how the page names them
    for path in ROOT.glob("tests/**/*_test.cpp"):
        for suite, name in re.findall(r"\b(?:RANK_)?TEST(?:_[FP])?\((\w+),\s*([\w#]+)[,)]", path.read_text()):
            names.add(rf"{suite}\." + re.sub(r"##\w##", r"\\d+", name))
    for path in ROOT.glob("tests/**/*_test.py"):
        names |= set(re.findall(r"\b(test_\w+)\(", path.read_text()))
    return names


def links(page):
    """The links within the tree, as (path, anchor)."""
    targets = re.findall(r"\]\(([^)]+)\)", without_code(page.read_text()))
    return [target.split("#") if "#" in target else (target, "") for target in targets
            if not target.startswith("https://")]


class DocumentsTest(unittest.TestCase):
    def test_links_lead_to_files_and_headings(self):
        for page in [*PAGES, CHANGELOG]:
            for name, anchor in links(page):
                target = f"{name}#{anchor}"
                with self.subTest(page=str(page.relative_to(ROOT)), link=target):
                    file = (page.parent / name).resolve() if name else page
                    self.assertTrue(file.exists())
                    if anchor:
                        self.assertIn(anchor, anchors(file.read_text()))

    def test_links_of_installed_pages_lead_to_installed_files(self):
        """All pages are installed in one folder with the same paths (cmake/Install.cmake)."""
        install = re.compile(r"^install\((?:FILES|DIRECTORY) ([^)]*) DESTINATION share/doc/frostpipe", re.M)
        found = install.findall((ROOT / "cmake/Install.cmake").read_text())
        installed = [ROOT / name for names in found for name in names.split()]
        for page in [*PAGES, CHANGELOG]:
            self.assertTrue(any(page.is_relative_to(one) for one in installed), page)
            for name, _ in links(page):
                with self.subTest(page=str(page.relative_to(ROOT)), link=name):
                    file = (page.parent / name).resolve() if name else page
                    self.assertTrue(any(file.is_relative_to(one) for one in installed))

    def test_every_page_is_linked(self):
        linked = {ROOT / "README.md"}
        for page in PAGES:
            for target in re.findall(r"\]\(([^)#:]+)", page.read_text()):
                linked.add((page.parent / target).resolve())
        self.assertEqual([str(page) for page in PAGES if page not in linked], [])

    def test_paths_of_the_tree_exist(self):
        """Words in code style that begin with a folder of the tree are paths, also with stars and placeholders in
        capitals."""
        for page in PAGES:
            for word in re.findall(r"`([^`\s]+)`", page.read_text()):
                if word.split("/")[0] not in FOLDERS or "/" not in word or re.search(r"[<>()]", word):
                    continue
                with self.subTest(page=str(page.relative_to(ROOT)), path=word):
                    self.assertTrue(any(ROOT.glob(re.sub(r"\b[A-Z]{2,}(?=[_.]|\b)", "*", word).rstrip("/"))))

    def test_the_tests_that_papers_names_exist(self):
        tests = re.compile("|".join(sorted(tests_in_the_tree())))
        for name in re.findall(r"`([A-Z]\w+\.[A-Z]\w+|test_\w+)`", (ROOT / "docs/papers.md").read_text()):
            with self.subTest(name):
                self.assertTrue(tests.fullmatch(name))

    def test_the_readme_is_short(self):
        self.assertLessEqual(len((ROOT / "README.md").read_text().splitlines()), 150)

    def test_the_picture_shows_the_figures_of_the_quickstart(self):
        picture = (ROOT / "docs/pictures/quickstart.svg").read_text()
        output = (ROOT / "docs/quickstart.md").read_text()
        iterations, _, runs = (
            [[cell.strip() for cell in line.split("|")[1:]] for line in part.splitlines() if line.startswith("|")]
            for part in output.split("\n### ")[1:])
        measured = [row[8] for row in iterations if row[0] in RUNS]
        self.assertEqual(len(measured), 8)  # elastic has five phases
        for milliseconds in measured:
            self.assertIn(f"{milliseconds}</text>", picture)
        shown = [f">{row[3]} s, {row[7]} %</text>" for row in runs if row[0] in RUNS]
        self.assertEqual(len(shown), 4)
        for text in shown:
            self.assertIn(text, picture)


if __name__ == "__main__":
    unittest.main()
