"""The verdicts of scripts/reproduction on rows that are known."""

import unittest

from reproduction import statements as say
from reproduction.measure import Row
from reproduction.statements import Figures


def row(algorithm, buffer, x, seconds, evaluations=0, ran=True):
    return Row(
        x=x,
        place="",
        algorithm=algorithm,
        buffer=buffer,
        k=20,
        counts=(100, 10),
        status="ok" if ran else "skipped",
        reason="" if ran else "no memory",
        samples=3 if ran else 0,
        median_s=seconds,
        minimum_s=seconds,
        maximum_s=seconds,
        kernel_s=seconds,
        evaluations=evaluations,
        host_bytes=1,
        device_bytes=0,
        checksum="1",
        checked="yes",
        facts={},
        stopped_s=0,
    )


def figures(times, missing=()):
    """{(algorithm, buffer): [seconds at x = 1, 2, ...]}."""
    return Figures(
        [
            row(algorithm, buffer, x, seconds, ran=(algorithm, buffer, x) not in missing)
            for (algorithm, buffer), series in times.items()
            for x, seconds in enumerate(series, start=1)
        ]
    )


TIMES = {
    ("dbf", "list"): [10, 20],
    ("dbf", "heap"): [8, 16],
    ("dspp", "list"): [5, 4],
    ("dspp", "heap"): [4, 2],
}


class Verdicts(unittest.TestCase):
    def test_speedups_are_over_the_same_buffer(self):
        measured, holds = say.largest_speedup("dbf", "8 ×", 8)(figures(TIMES))
        self.assertIn("8.00 × (dspp heap at 2)", measured)
        self.assertTrue(holds)
        self.assertFalse(say.largest_speedup("dbf", "8.1 ×", 8.1)(figures(TIMES))[1])

    def test_the_place_of_the_largest_speedup(self):
        self.assertTrue(say.largest_speedup_at("dbf", "dspp heap", 2)(figures(TIMES))[1])
        self.assertFalse(say.largest_speedup_at("dbf", "dspp list", 2)(figures(TIMES))[1])

    def test_fastest(self):
        self.assertTrue(say.is_generally_fastest("dspp")(figures(TIMES))[1])
        self.assertFalse(say.is_generally_fastest("dbf")(figures(TIMES))[1])
        self.assertFalse(say.is_generally_fastest("dspp", 0.8, "dspp list")(figures(TIMES))[1])

    def test_what_was_not_measured_has_no_verdict(self):
        gap = figures(TIMES, missing={("dspp", "heap", 2)})
        for judge in (
            say.is_generally_fastest("dspp"),
            say.faster_everywhere("dspp", "dbf"),
            say.about_equal("dbf", "dspp"),
            say.grows_linearly,
            say.heap_wins_for_large_k,
            say.heap_gains_with_k("dspp"),
            say.ranks_alike,
            say.nearly_constant("dspp heap"),
        ):
            self.assertEqual(judge(gap), (None, None))
        nothing = figures(TIMES, missing={(a, b, x) for a, b in TIMES for x in (1, 2)})
        for judge in (say.largest_speedup("dbf", "", 1), say.all_faster_than("dbf")):
            self.assertEqual(judge(nothing), (None, None))

    def test_order(self):
        self.assertTrue(say.faster_everywhere("dspp", "dbf")(figures(TIMES))[1])
        self.assertFalse(say.faster_everywhere("dbf", "dspp")(figures(TIMES))[1])
        self.assertTrue(say.all_faster_than("dbf")(figures(TIMES))[1])
        slower = {**TIMES, ("dspp", "list"): [5, 21]}
        self.assertFalse(say.all_faster_than("dbf")(figures(slower))[1])

    def test_growth(self):
        self.assertTrue(say.grows_linearly(figures(TIMES))[1])
        self.assertFalse(say.grows_linearly(figures({("dbf", "list"): [10, 26]}))[1])

    def test_small_differences(self):
        alike = {("dspp", "list"): [10], ("dspp+", "list"): [9]}
        self.assertTrue(say.about_equal("dspp", "dspp+", ("list",))(figures(alike))[1])
        apart = {("dspp", "list"): [10], ("dspp+", "list"): [13]}
        self.assertFalse(say.about_equal("dspp", "dspp+", ("list",))(figures(apart))[1])

    def test_buffers(self):
        self.assertTrue(say.heap_wins_for_large_k(figures(TIMES))[1])
        self.assertTrue(say.heap_gains_with_k("dspp")(figures(TIMES))[1])
        self.assertFalse(say.heap_gains_with_k("dbf")(figures(TIMES))[1])

    def test_distances(self):
        rows = [row("dbf", "list", 1, 1, 100), row("dspp", "list", 1, 1, 40)]
        self.assertTrue(say.evaluates_less("dspp", "dbf")(Figures(rows))[1])
        rows[1] = row("dspp", "list", 1, 1, 60)
        self.assertFalse(say.evaluates_less("dspp", "dbf")(Figures(rows))[1])

    def test_ranks(self):
        self.assertTrue(say.ranks_alike(figures(TIMES))[1])
        turned = {("a", ""): [1, 3], ("b", ""): [2, 2], ("c", ""): [3, 1]}
        self.assertFalse(say.ranks_alike(figures(turned))[1])

    def test_top_k(self):
        times = {("sort", ""): [1.0, 1.05], ("bitonic", ""): [0.1, 0.5]}
        self.assertTrue(say.nearly_constant("sort")(figures(times))[1])
        self.assertFalse(say.nearly_constant("bitonic")(figures(times))[1])
        self.assertTrue(say.largest_speedup_at_small_k("sort", 1)(figures(times))[1])
        slow = {("sort", ""): [1.0, 1.05], ("bitonic", ""): [2, 3]}
        self.assertFalse(say.largest_speedup_at_small_k("sort", 1)(figures(slow))[1])


if __name__ == "__main__":
    unittest.main()
