"""How configurations are run, stopped and resumed, with a program in place of kcp that tells of itself
what it is asked to."""

import json
import os
import tempfile
import unittest
from pathlib import Path

from reproduction.failure import Failure
from reproduction.measure import Clock, collect, run_sweep

PROGRAM = """#!/usr/bin/env python3
import json, sys, time
words = sys.argv[2:]
options = dict(zip((word[2:] for word in words[:-1:2]), words[1:-1:2]))
path = options.pop("json", None) or options.pop("resume")
with open("calls", "a") as calls:
    calls.write(options["algo"] + chr(10))
if options["algo"] == "slow":
    time.sleep(60)
if options["algo"] == "bad":
    sys.exit("kcp: this cannot be")
try:
    report = json.load(open(path))
except FileNotFoundError:
    report = {"tool": {}, "context": {"host": "here"}, "results": []}
result = {"options": options, "argv": ["kcp", *words[-1:]], "status": "ok",
    "reason": None, "samples": [{}], "answer": {"checksum": "2" if options["algo"] == "wrong" else "1"}}
if options not in [one["options"] for one in report["results"]]:
    report["results"].append(result)
json.dump(report, open(path, "w"))
"""


class Measuring(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        self.kcp = self.folder / "kcp"
        self.kcp.write_text(PROGRAM)
        self.kcp.chmod(0o755)
        self.files = [self.folder / "d.bin"]
        self.report = self.folder / "report.json"
        # What the program prints belongs to no test.
        kept, nothing = os.dup(1), os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        self.addCleanup(lambda: (os.dup2(kept, 1), os.close(kept), os.close(nothing)))

    def run_all(self, algorithms, clock=None):
        sweeps = [{"algo": name, "k": 20} for name in algorithms]
        missing = []
        for sweep in sweeps:
            missing += run_sweep(
                str(self.kcp), sweep, self.files, self.report, clock or Clock(None, None)
            )
        return collect(self.report, sweeps, self.files, missing)

    def test_one_that_fails_is_a_row_with_its_reason(self):
        results = self.run_all(["one", "bad", "two"])["results"]
        self.assertEqual([r["status"] for r in results], ["ok", "error", "ok"])
        self.assertEqual(results[1]["reason"], "kcp: this cannot be")

    def test_one_that_takes_too_long_is_stopped(self):
        results = self.run_all(["one", "slow", "two"], Clock(3, None))["results"]
        self.assertEqual([r["status"] for r in results], ["ok", "stopped", "ok"])
        self.assertEqual(results[1]["stopped_s"], 3)

    def test_when_the_time_is_up_nothing_starts(self):
        results = self.run_all(["one", "two"], Clock(None, 1e-9))["results"]
        self.assertEqual([r["reason"] for r in results], ["no time was left"] * 2)
        self.assertFalse((self.folder / "calls").exists())

    def test_answers_are_compared_over_sweeps(self):
        results = self.run_all(["one", "two"])["results"]
        self.assertEqual([r["checked"] for r in results], ["first", "yes"])
        with self.assertRaises(Failure):
            self.run_all(["one", "wrong"])

    def test_results_of_other_runs_are_left_out(self):
        self.run_all(["one", "two"])
        results = self.run_all(["two"])["results"]
        self.assertEqual([r["options"]["algo"] for r in results], ["two"])
        self.assertNotIn("host", self.run_all(["two"])["context"])
        self.assertEqual(len(json.loads(self.report.read_text())["results"]), 2)


if __name__ == "__main__":
    unittest.main()
