"""The verdicts on RT-HiSS and the influence paper on rows that are known."""

import unittest

from reproduction import influence
from reproduction import range_statements as say
from reproduction.rt_hiss import PARTS
from reproduction.statements import Figures
from test_statements import row as plain_row

PHASES = (
    "reorder kd_tree primitives rearrange index first_test count_pass fill_pass refine compact copy"
).split()


def row(place, algorithm, x, seconds, **facts):
    """`stopped` in place of a time; phases by their names, the rest of the facts as they are."""
    stopped = facts.pop("stopped", 0)
    phases = {f"{name}_s": facts.pop(name, 0.0) for name in PHASES}
    return plain_row(
        algorithm, "", x, seconds, facts.pop("evaluations", 0), ran=not stopped
    )._replace(
        place=place,
        stopped_s=stopped,
        counts=facts.pop("counts", (100, 100)),
        device_bytes=facts.pop("device_bytes", 0),
        facts={**facts, "phases": phases},
    )


PLACES = ["WEC s", "WEC l", "MSD s", "MSD l"]


def figures(of, **more):
    """{algorithm: [seconds at each place]}; `more`: of each row, by algorithm."""
    return Figures(
        [
            row(place, algorithm, x, seconds, **more.get(algorithm, [{}] * 4)[x])
            for algorithm, series in of.items()
            for x, (place, seconds) in enumerate(zip(PLACES, series))
        ]
    )


TIMES = figures({"slow": [20, 40, 8, 12], "fast": [2, 2, 2, 2]})


class Ratios(unittest.TestCase):
    def test_everywhere(self):
        measured, holds = say.faster_everywhere("slow", "fast")(TIMES)
        self.assertEqual(measured, "4.00 × (MSD s) to 20.00 × (WEC l)")
        self.assertTrue(holds)
        self.assertFalse(say.faster_everywhere("fast", "slow")(TIMES)[1])
        self.assertTrue(say.faster_everywhere("slow", "fast", 4)(TIMES)[1])
        self.assertFalse(say.faster_everywhere("slow", "fast", 4.1)(TIMES)[1])
        self.assertTrue(say.faster_everywhere("slow", "fast", 5.9, " l")(TIMES)[1])

    def test_most_and_average(self):
        self.assertTrue(say.reaches("slow", "fast", 20)(TIMES)[1])
        self.assertFalse(say.reaches("slow", "fast", 21)(TIMES)[1])
        self.assertTrue(say.averages("slow", "fast", 10)(TIMES)[1])
        self.assertFalse(say.averages("slow", "fast", 10.1)(TIMES)[1])

    def test_what_was_stopped_is_a_lower_bound(self):
        stopped = figures(
            {"slow": [20, 0, 8, 12], "fast": [2, 2, 2, 2]}, slow=[{}, {"stopped": 30}, {}, {}]
        )
        measured, holds = say.faster_everywhere("slow", "fast")(stopped)
        self.assertIn("over 15.00 × (WEC l)", measured)
        self.assertTrue(holds)
        self.assertTrue(say.reaches("slow", "fast", 15)(stopped)[1])
        self.assertIsNone(say.reaches("slow", "fast", 16)(stopped)[1])
        self.assertIsNone(say.averages("slow", "fast", 100)(stopped)[1])

    def test_what_was_not_measured_has_no_verdict(self):
        gap = figures(
            {"slow": [20, 40, 8, 12], "fast": [2, 2, 2, 2]}, fast=[{"stopped": 1}] + [{}] * 3
        )
        for judge in (
            say.faster_everywhere("slow", "fast"),
            say.reaches("slow", "fast", 1),
            say.averages("slow", "fast", 1),
            say.slower_somewhere("slow", "fast", ("WEC",)),
            say.same_batches("slow", "fast"),
            say.more_batches("slow", "fast"),
            say.evaluates_less("slow", "fast"),
            say.refinement_leads("fast", PARTS, "refinement", "kd-tree"),
        ):
            self.assertEqual(judge(gap), (None, None))
        self.assertIsNone(say.not_here("COSS")(TIMES)[1])

    def test_slower_on_some_sets(self):
        times = figures({"query": [2, 1, 3, 1], "none": [1, 2, 2, 2]})
        self.assertTrue(say.slower_somewhere("query", "none", ("WEC", "MSD"))(times)[1])
        times = figures({"query": [2, 1, 1, 1], "none": [1, 2, 2, 2]})
        self.assertFalse(say.slower_somewhere("query", "none", ("WEC", "MSD"))(times)[1])
        self.assertIsNone(say.slower_somewhere("query", "none", ("Sift",))(times)[1])


class Heights(unittest.TestCase):
    def heights(self, **series):
        return Figures(
            [
                row(place, place.replace("_", " "), x, seconds, counts=(150_000, 150_000))
                for place, times in series.items()
                for x, seconds in zip((10, 12, 14), times)
            ]
        )

    def test_the_rule(self):
        # ln 150,000 = 11.9: height 11 is as near to 10 as to 12, and the lower one is taken.
        self.assertTrue(say.rule_is_near_best(self.heights(MSD_s=[11, 10, 20]))[1])
        self.assertFalse(say.rule_is_near_best(self.heights(MSD_s=[13, 10, 20]))[1])

    def test_where_the_best_is(self):
        good = self.heights(WEC_s=[1, 2, 3], MSD_s=[3, 1, 2])
        self.assertTrue(say.lowest_is_best("WEC")(good)[1])
        self.assertTrue(say.best_is_inside_but_for("WEC")(good)[1])
        bad = self.heights(WEC_s=[2, 1, 3], MSD_s=[3, 2, 1])
        self.assertFalse(say.lowest_is_best("WEC")(bad)[1])
        self.assertFalse(say.best_is_inside_but_for("WEC")(bad)[1])
        self.assertIsNone(say.lowest_is_best("SuSy")(good)[1])


class Counts(unittest.TestCase):
    def test_batches(self):
        few, many = [{"batches": 1}] * 4, [{"batches": n} for n in (2, 3, 2, 9)]
        times = {"mask": [1] * 4, "pairs": [1] * 4, "raw": [1] * 4}
        of = figures(times, mask=few, pairs=many, raw=few)
        self.assertTrue(say.more_batches("pairs", "mask")(of)[1])
        self.assertFalse(say.more_batches("raw", "mask")(of)[1])
        self.assertTrue(say.same_batches("raw", "mask")(of)[1])
        self.assertFalse(say.same_batches("pairs", "mask")(of)[1])

    def test_pruning(self):
        rows = [{"evaluations": n, "possible": 100} for n in (90, 30, 90, 40)]
        of = figures(
            {"rt-hiss": [1] * 4, "grid": [1] * 4},
            **{"rt-hiss": rows, "grid": [{"evaluations": 95}] * 4},
        )
        self.assertTrue(say.prunes("rt-hiss", ("WEC", "MSD"), lambda s: s >= 0.6, "")(of)[1])
        self.assertFalse(say.prunes("rt-hiss", ("WEC", "MSD"), lambda s: s >= 0.65, "")(of)[1])
        self.assertIsNone(say.prunes("rt-hiss", ("Sift",), lambda s: s < 0.01, "")(of)[1])
        self.assertTrue(say.evaluates_less("rt-hiss", "grid")(of)[1])
        self.assertFalse(say.evaluates_less("grid", "rt-hiss")(of)[1])

    def test_throughput(self):
        both = [{"evaluations": 100, "refine": 1.0}] * 4
        none = [{"evaluations": 100, "refine": 2.1}] * 4
        of = figures({"both": [2] * 4, "none": [3] * 4}, both=both, none=none)
        self.assertTrue(say.throughput_grows("both", "none", 2.06)(of)[1])
        self.assertFalse(say.throughput_grows("none", "both", 2.06)(of)[1])

    def test_shares(self):
        told = {"refine": 6.0, "kd_tree": 1.5, "first_test": 0.2, "fill_pass": 0.3}
        of = figures({"rt-hiss": [10] * 4}, **{"rt-hiss": [told] * 4})
        self.assertTrue(say.refinement_leads("rt-hiss", PARTS, "refinement", "kd-tree")(of)[1])
        self.assertFalse(say.refinement_leads("rt-hiss", PARTS, "kd-tree", "refinement")(of)[1])
        self.assertTrue(say.takes_at_most("rt-hiss", PARTS, "intersection tests", 0.05)(of)[1])
        self.assertFalse(say.takes_at_most("rt-hiss", PARTS, "intersection tests", 0.04)(of)[1])


class Influence(unittest.TestCase):
    def test_a_gpu_against_one_thread(self):
        def of(gpu_s, device_bytes):
            rows = [row("feasible pairs", "pairs", 0, gpu_s, device_bytes=device_bytes)]
            return Figures(rows + [row("feasible pairs", "sequential", 0, 0.3)])

        self.assertTrue(influence.gpu_gains(0, 12, 347)(of(0.01, 1))[1])
        self.assertFalse(influence.gpu_gains(0, 12, 347)(of(0.011, 1))[1])
        self.assertIsNone(influence.gpu_gains(0, 12, 347)(of(0.01, 0))[1])
        self.assertIsNone(influence.gpu_gains(1, 16, 351)(of(0.01, 1))[1])

    def test_regions(self):
        kept = {"five": ["110", "100"], "two": ["022", "000"], "common": ["130", "100"]}
        self.assertTrue(influence.common_is_shared(kept)[1])
        self.assertFalse(influence.common_is_shared({**kept, "common": ["110", "100"]})[1])
        nested = {"two of p": ["100", "000"], "five": ["110", "100"]}
        self.assertTrue(influence.regions_are_nested(nested)[1])
        self.assertFalse(influence.regions_are_nested({**nested, "two of p": ["001", "000"]})[1])
        self.assertEqual(influence.parts_of(["101", "011", "100"]), 3)
        self.assertTrue(influence.regions_come_apart({"p": 1, "parts": 2})[1])
        self.assertFalse(influence.regions_come_apart({"p": 1, "parts": 1})[1])

    def test_partners(self):
        kept = {"p_chosen": [1, 2], "q_chosen": [5, 6], "partners": [2]}
        good = {**kept, "pairs": [[1, 5], [2, 5], [2, 6]]}
        self.assertTrue(influence.partners_share_with_all(good)[1])
        self.assertFalse(influence.partners_share_with_all({**good, "partners": [1, 2]})[1])
        self.assertTrue(influence.weight_is_kept({"cells": [[1, 2]], "total_weight": 3.0})[1])
        self.assertFalse(influence.weight_is_kept({"cells": [[1, 2]], "total_weight": 3.1})[1])


if __name__ == "__main__":
    unittest.main()
