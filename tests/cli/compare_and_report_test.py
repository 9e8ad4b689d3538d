import json
import re
import unittest
from html.parser import HTMLParser

from support import CliTest, measure_with_two_threads, synthetic_run

VOID = {"meta", "input", "br", "link", "img", "hr"}


class WellFormed(HTMLParser):
    """Fails on tags that do not match, and collects the page's references."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.references, self.text = [], set(), [], []

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.references += [value for key, value in attributes
                            if key in ("href", "src", "xlink:href", "data", "action")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]} at {self.getpos()}"
        self.open.pop()

    def handle_data(self, data):
        self.text.append(data)


class CompareAndReportTest(CliTest):
    METHODS = {"data_parallel": "data-parallel", "static_pipeline": "static", "elastic": "pipetransformer"}

    made = {}  # files by name: the runs are the same in every test

    def make_runs(self):
        """Arguments for compare."""
        for name, text in self.made.items():
            self.write(name, text)
        if not self.made:
            self.make_runs_once()
            for path in self.folder.rglob("*.json"):
                self.made[str(path.relative_to(self.folder))] = path.read_text()
        return [file for name in self.METHODS for file in (f"{name}.json", f"runs/{name}/summary.json")]

    def make_runs_once(self):
        for name, method in self.METHODS.items():
            self.plan(f"{name}.json", method, *(["--ignore-memory-limit"] if name == "data_parallel" else []))
            simulated = json.loads(self.run_tool("simulate", f"{name}.json", "--format", "json").stdout)
            plan = self.read(f"{name}.json")
            self.write(f"runs/{name}/executed_plan.json", plan)
            self.write(f"runs/{name}/summary.json", synthetic_run(plan, simulated))

    def test_a_run_is_also_named_by_its_folder(self):
        files = self.make_runs()
        folders = [file.removesuffix("/summary.json") for file in files]
        self.assertEqual(self.run_tool("compare", *files).stdout, self.run_tool("compare", *folders).stdout)
        for run in (files[-1], folders[-1]):
            self.run_tool("report", run, "-o", "report.html")

    def test_compare_predicts_each_phase_of_each_run(self):
        text = self.run_tool("compare", *self.make_runs(), "-o", "summary.json").stdout
        summary = self.read("summary.json")
        self.assertEqual(set(summary["runs"]), set(self.METHODS))
        for name, run in summary["runs"].items():
            for phase, planned in zip(run["phases"], self.read(f"{name}.json")["phases"]):
                self.assertEqual(phase["predicted_iteration_ns"], planned["predicted"]["iteration_ns"])
                self.assertTrue(phase["predicted_timeline"]["spans"])
                self.assertEqual(phase["predicted_peak_memory_bytes"], planned["predicted"]["peak_memory_bytes"])
        self.assertIn("-4.8", text)  # 1 / 1.05 - 1
        self.assertIn("elastic is ", text)
        self.assertIn("data_parallel ran without the memory limit (320 / 320 MiB per rank)", text)
        self.assertIn("forecast of elastic: as executed", text)
        self.assertEqual([what_if["name"] for what_if in summary["what_ifs"]],
                         [f"freezing the embedding alone, {name}" for name in ("data_parallel", "static_pipeline")])
        self.assertLess(summary["what_ifs"][0]["iteration_ns"], summary["what_ifs"][0]["baseline_iteration_ns"])

    def test_the_fastest_of_the_others_is_named(self):
        words = {"data_parallel": "data parallelism alone", "static_pipeline": "the best static pipeline"}
        for fastest, slowest in (tuple(words), tuple(words)[::-1]):
            pairs = self.make_runs()
            self.edit(f"runs/{fastest}/summary.json", lambda run: run.update(samples_per_second=2.0))
            self.edit(f"runs/{slowest}/summary.json", lambda run: run.update(samples_per_second=1.0))
            self.edit("runs/elastic/summary.json", lambda run: run.update(samples_per_second=3.0))
            text = self.run_tool("compare", *pairs, "-o", "summary.json").stdout
            self.assertEqual(text.count("the fastest of the others"), 1)
            self.assertIn(f"elastic is 1.50 times as fast as {fastest}, the fastest of the others (10-90 %", text)
            self.assertIn(f"elastic is 3.00 times as fast as {slowest} (10-90 %", text)
            self.run_tool("report", "summary.json", "-o", "report.html")
            page = self.check_page("report.html")
            self.assertIn(f"3.00× as fast as {words[slowest]} and 1.50× as fast as {words[fastest]}, the fastest of "
                          "the others; its", page)
            self.assertIn(f"1.50×elastic against {fastest}, the fastest of the others10–90 %", page)
            self.assertIn(f"3.00×elastic against {slowest}10–90 %", page)
        self.assertNotIn("the others", self.run_tool("compare", *pairs[2:]).stdout, "of one there is nothing to choose")

    def test_an_elastic_run_in_one_process_is_said_to_have_no_pipeline(self):
        speed = {"latency_ns": 1_000, "bandwidth_bytes_per_second": 5_000_000_000}
        self.edit("profile.json",
                  lambda profile: (measure_with_two_threads(profile, 0.5),
                                   profile.update(cache={"read": speed, "write": speed})))
        self.plan("elastic.json", "pipetransformer", "--epochs", 30)
        plan = self.read("elastic.json")
        self.assertEqual(plan["world_size"], 1)
        simulated = json.loads(self.run_tool("simulate", "elastic.json", "--format", "json").stdout)
        self.write("run/executed_plan.json", plan)
        for cached, words in ((True, "froze and cached"), (False, "froze")):
            run = synthetic_run(plan, simulated)
            for phase in run["phases"]:
                phase["cache"] = phase["cache"] and cached
            self.write("run/summary.json", run)
            sentence = f"One process with 2 threads: the elastic run {words}, without a pipeline."
            self.assertIn(f"\n{sentence}\n",
                          self.run_tool("compare", "elastic.json", "run/summary.json", "-o", "summary.json").stdout)
            self.run_tool("report", "summary.json", "-o", "report.html")
            self.assertIn(sentence, self.check_page("report.html"))
        self.edit("summary.json", lambda summary: [run.update(world_size=2) for run in summary["runs"].values()])
        self.run_tool("report", "summary.json", "-o", "report.html")
        self.assertNotIn("without a pipeline", self.check_page("report.html"))

    def test_compare_reports_the_forecasts_error_apart(self):
        pairs = self.make_runs()
        self.edit("elastic.json", lambda plan: plan["phases"].pop())  # as if the last freeze had not been planned
        text = self.run_tool("compare", *pairs).stdout
        planned, executed = [line for line in text.splitlines() if line.startswith(("  planned ", "  executed "))]
        self.assertNotIn("6 frozen", planned)
        self.assertIn("6 frozen on 2 x 1", executed)

    def test_a_what_if_is_of_its_run_whatever_the_plans_method(self):
        pairs = self.make_runs()
        self.edit("runs/data_parallel/summary.json", lambda run: run.update(name="one_process"))
        text = self.run_tool("compare", *pairs).stdout
        self.assertRegex(text, "what if: .* would take an iteration of one process on all cores from")
        self.assertNotIn("an iteration of data parallelism alone", text)

    def test_runs_of_one_name_are_named_by_their_folders(self):
        """Two runs are called elastic and lie in folders named static_pipeline and elastic; the third keeps its name,
        though its folder is called otherwise."""
        pairs = self.make_runs()
        self.edit("runs/static_pipeline/summary.json", lambda run: run.update(name="elastic"))
        self.edit("runs/data_parallel/summary.json", lambda run: run.update(name="first"))
        text = self.run_tool("compare", *pairs, "-o", "summary.json").stdout
        self.assertEqual(self.read("summary.json")["order"], ["first", "static_pipeline", "elastic"])
        self.assertRegex(text, r"elastic is [\d.]+ times as fast as static_pipeline")
        self.assertIn("an iteration of the best static pipeline from", text)  # the what-if has the new name too
        self.run_tool("report", "summary.json", "-o", "report.html")
        self.check_page("report.html")
        self.edit("runs/data_parallel/summary.json", lambda run: run.update(name="static_pipeline"))
        self.assert_refused("compare", *pairs, says=["runs/static_pipeline/summary.json: name", "--name"])

    def test_compare_refuses_runs_of_one_name_and_foreign_plans(self):
        pairs = self.make_runs()
        self.assert_refused("compare", *pairs[:2], *pairs[:2],
                            says=["name", "data_parallel in a folder data_parallel", "--name"])
        self.write("runs/elastic/executed_plan.json", self.read("static_pipeline.json"))
        self.assert_refused("compare", *pairs, "-o", "new.json", says=["executed_plan.json: method", "pipetransformer"])
        self.assertFalse((self.folder / "new.json").exists())

    def check_page(self, name):
        html = (self.folder / name).read_text()
        page = WellFormed()
        page.feed(html)
        page.close()
        self.assertEqual(page.open, [])
        self.assertEqual(page.references, [])
        self.assertNotRegex(html, r"https?://|url\(|@import")
        self.assertNotIn("script", page.tags)
        self.assertNotIn("nan", html.lower().replace("nanosecond", ""))
        self.assertIn("svg", page.tags)
        return " ".join("".join(page.text).split())

    def test_report_of_a_comparison(self):
        self.run_tool("compare", *self.make_runs(), "-o", "summary.json")
        done = self.run_tool("report", "summary.json", "-o", "report.html", "--trace", "trace.json",
                             "--cluster", "cluster.json")
        self.assertIn("report.html", done.stdout)
        text = self.check_page("report.html")
        self.assertRegex(text, r"The elastic run trained \d\.\d\d× as fast as")
        # All predictions are the same: by the rule of three, 3 of 100 could differ.
        self.assertRegex(text, r"its accuracy differs by 0\.0 points from data parallelism alone \(95 % interval 0\.0 "
                               r"to 0\.0\) and by")
        self.assertIn("At 95 % the smallest difference that they can show is 3.0 points from data parallelism alone",
                      text)
        self.assertIn("<script>alert('x')</script>", text)  # as text: it was escaped
        for part in ("Runs", "Prediction and measurement", "Over the run", "One iteration of each phase", "Peak memory",
                     "What if"):
            self.assertIn(part, text)
        events = self.read("trace.json")["traceEvents"]
        names = {event["args"]["name"] for event in events if event["name"] == "process_name"}
        self.assertIn("elastic, from step 0, 0 frozen, predicted: rank 1", names)
        self.assertIn("data_parallel, from step 0, 0 frozen, measured: rank 0", names)
        self.assertEqual(len(names), len({event["pid"] for event in events}))

    def test_a_rank_with_two_threads_has_the_memory_of_two_devices(self):
        self.run_tool("compare", *self.make_runs(), "-o", "summary.json")
        def limits():
            self.run_tool("report", "summary.json", "-o", "report.html", "--cluster", "cluster.json")
            units = {"MiB": 1, "GiB": 1024}
            return {float(value) * units[unit] for value, unit in
                    re.findall(r"<title>limit ([\d.]+) (\w+)</title>", (self.folder / "report.html").read_text())}
        (one,) = limits()
        self.edit("summary.json", lambda summary: [run.update(threads_per_rank=2) for run in summary["runs"].values()])
        (two,) = limits()
        self.assertAlmostEqual(two, 2 * one, delta=0.01 * two)  # three digits are shown

    def test_headline_gives_the_interval_and_what_could_be_seen(self):
        """4 of 100 items become wrong and 2 right: -2 points, variance 0.06 - 0.0004, and an interval of 1.96
        sqrt(0.0596 / 100) = 4.8 points to either side."""
        pairs = self.make_runs()
        def change(run):
            for item in (1, 2, 3, 4, 10, 20):  # every tenth is wrong
                run["test_predictions"][item] = 1 - run["test_predictions"][item]
        self.edit("runs/elastic/summary.json", change)
        self.run_tool("compare", *pairs, "-o", "summary.json")
        self.run_tool("report", "summary.json", "-o", "report.html")
        text = self.check_page("report.html")
        self.assertIn("−2.0 points from data parallelism alone (95 % interval −6.8 to +2.8)", text)
        self.assertIn("the smallest difference that they can show is 4.8 points from data parallelism alone", text)
        self.assertNotIn("no measurable", text)

    def test_largest_error_is_that_of_the_worst_phase_however_short(self):
        pairs = self.make_runs()
        def slow_down(run):
            run["phases"][-1].update(num_steps=3, measured_iteration_ns=2 * run["phases"][-1]["measured_iteration_ns"])
        self.edit("runs/elastic/summary.json", slow_down)
        from_step = self.read("runs/elastic/summary.json")["phases"][-1]["from_step"]
        self.run_tool("compare", *pairs, "-o", "summary.json")
        self.run_tool("report", "summary.json", "-o", "report.html")
        # 1 - 1 / (2 x 1.05)
        self.assertIn(f"52.4 %largest error of a predicted iteration time, of all phaseselastic from step {from_step}, "
                      "3 steps long", self.check_page("report.html"))

    def test_an_error_and_its_term_have_one_sign(self):
        """A run that took twice as long as predicted: both are negative, each output with its own minus sign."""
        pairs = self.make_runs()
        self.edit("runs/elastic/summary.json", lambda run: [
            phase.update(measured_iteration_ns=2 * phase["measured_iteration_ns"]) for phase in run["phases"]])
        text = self.run_tool("compare", *pairs, "-o", "summary.json").stdout
        self.assertRegex(text, r"-52\.4  +[a-z ]+ -[\d.]+ ms")  # 1 / (2 x 1.05) - 1
        self.run_tool("report", "summary.json", "-o", "report.html")
        self.assertRegex((self.folder / "report.html").read_text(),
                         "−52\\.4\N{NO-BREAK SPACE}%<br><small>[a-z ]+ −[\\d.]+\N{NO-BREAK SPACE}ms<")

    def test_timelines_are_as_wide_as_the_page(self):
        """Places and widths along the time axis are percentages, and nothing scales the text."""
        self.run_tool("compare", *self.make_runs(), "-o", "summary.json")
        self.run_tool("report", "summary.json", "-o", "report.html")
        pictures = re.findall(r'<div class="timeline">.*?</div>', (self.folder / "report.html").read_text(), re.DOTALL)
        self.assertGreater(len(pictures), 3)
        for picture in pictures:
            self.assertNotIn("viewBox", picture)
            self.assertNotRegex(picture, r'\b(x|x1|x2|width)="(?!0")[\d.]+"')
            widths = [float(width) for width in re.findall('<rect class="[fb]" x="[^"]*" y="[^"]*" '
                                                           r'width="([\d.]+)%"', picture)]
            self.assertTrue(widths and all(0 < width <= 100 for width in widths), widths)

    def test_every_cell_of_a_table_names_its_column(self):
        """On a narrow page the header is hidden."""
        self.run_tool("compare", *self.make_runs(), "-o", "summary.json")
        self.run_tool("report", "summary.json", "-o", "report.html")
        html = (self.folder / "report.html").read_text()
        self.assertEqual(len(re.findall(r"<td", html)), len(re.findall(r'<td class="[^"]*" data-label="[^"]+">', html)))
        self.assertIn('data-label="measured, ms, median"', html)

    def test_table_of_phases_fits_a_page_1400_pixels_wide(self):
        """A card has 1114 pixels for the table. Oracle: the width of unbreakable text, with 8.5 pixels for a character
        (7.5 in a header), 14 around a cell and 100 for a bar; a browser gives 1114."""
        self.run_tool("compare", *self.make_runs(), "-o", "summary.json")
        def change(summary):
            for phase in (phase for run in summary["runs"].values() for phase in run["phases"]):
                phase.update(predicted_transformation_ns=1_234_500_000, transformation_ns=1_678_900_000, cache=True,
                             cache_hit_fraction=0.55, cache_base_fraction=0.45, samples_per_second=12345,
                             measured_iteration_ns=1 + phase["predicted_iteration_ns"] * 13 // 10)
        self.edit("summary.json", change)
        self.run_tool("report", "summary.json", "-o", "report.html")
        html = (self.folder / "report.html").read_text()
        headers_wrap = "nowrap" not in re.search(r"\nth {(.*?)}", html, re.DOTALL)[1]
        table = html[html.index("Prediction and measurement"):].split("</table>")[0]

        def width(cell, wraps, of_a_character, at_least=0):
            parts = re.sub("<(?!br)[^>]*>", "", re.sub("<title>.*?</title>", "", cell)).split("<br>")
            words = [word for part in parts for word in (part.split(" ") if wraps else [part])]
            return 14 + max(of_a_character * max(map(len, words)), 100 * ("<svg" in cell), at_least)
        widths = [width(header, headers_wrap, 7.5) for header in re.findall("<th [^>]*>(.*?)</th>", table)]
        for row in re.findall("<tr>(<td.*?)</tr>", table):
            cells = re.findall('<td class="([^"]*)"[^>]*>(.*?)</td>', row)
            widths = [max(so_far, width(cell, "brief" in classes or "wrap" in classes, 8.5,
                                         18 * 8.5 if classes == "l brief" else 0))
                      for so_far, (classes, cell) in zip(widths, cells, strict=True)]
        self.assertLessEqual(sum(widths), 1114, widths)

    def test_chart_of_accuracies_fits_a_page_400_pixels_wide(self):
        """The margins leave 346 pixels: the line at zero is in the middle, and every label is complete."""
        self.run_tool("compare", *self.make_runs(), "-o", "summary.json")
        self.run_tool("report", "summary.json", "-o", "report.html")
        charts = re.findall(r'<svg class="chart interval" viewBox="0 0 (\d+) .*?</svg>',
                            (self.folder / "report.html").read_text(), re.DOTALL)
        self.assertEqual(set(charts), {"340"})
        html = (self.folder / "report.html").read_text()
        self.assertIn('<line class="axis" x1="170"', html)
        for x, label in re.findall(r'<text class="tick middle" x="([\d.]+)" y="12">([^<]*)</text>', html):
            self.assertTrue(4 * len(label) <= float(x) <= 340 - 4 * len(label), (x, label))

    def test_report_of_one_run(self):
        self.make_runs()
        self.run_tool("report", "runs/elastic/summary.json", "-o", "report.html")
        self.assertIn("The elastic run trained", self.check_page("report.html"))

    def test_report_of_a_run_of_version_1(self):
        self.make_runs()
        self.run_tool("report", "runs/elastic/summary.json", "-o", "new.html")

        def as_before(run):
            run["version"] = 1
            for counted in run["phases"] + run["decisions"]:
                counted["frozen_layers"] = counted.pop("frozen_blocks")
        self.edit("runs/elastic/summary.json", as_before)
        self.run_tool("report", "runs/elastic/summary.json", "-o", "old.html")
        self.assertEqual((self.folder / "old.html").read_text(), (self.folder / "new.html").read_text())

    def test_report_survives_a_run_that_diverged(self):
        self.make_runs()
        def diverge(run):
            for step in run["steps"][5:]:
                step["loss"] = "NaN"
        self.edit("runs/elastic/summary.json", diverge)
        self.run_tool("report", "runs/elastic/summary.json", "-o", "report.html")
        self.check_page("report.html")

    def test_bad_summary_keeps_the_old_report(self):
        self.make_runs()
        self.write("report.html", "keep me")
        self.edit("runs/elastic/summary.json", lambda run: run["phases"][0].update(measured_iteration_ns=-1))
        self.assert_refused("report", "runs/elastic/summary.json", "-o", "report.html",
                            says=["runs/elastic/summary.json: phases[0].measured_iteration_ns", ">= 0", "-1"])
        self.assertEqual((self.folder / "report.html").read_text(), "keep me")


if __name__ == "__main__":
    unittest.main()
