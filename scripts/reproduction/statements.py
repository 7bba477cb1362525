"""What the papers say in words, and what the rows of a run say to it.

A statement is the paper's sentence and a function that takes the figures of a run and returns what
was measured and whether the sentence holds. What "generally" or "small" is taken to mean stands in
the sentence of the measurement. A figure that was not measured is None, and so is the verdict."""

from typing import Callable, NamedTuple

LINEAR_SLACK = 1.25  # times as much as linear growth
SMALL_DIFFERENCE = 1.2


class Statement(NamedTuple):
    source: str  # where the paper says it
    text: str
    judge: Callable


class Figures:
    """The rows of an item, by variant and place."""

    def __init__(self, rows):
        self.rows = rows
        self.by_place = {(row.variant, row.x): row for row in rows if row.ran}
        self.variants = list(dict.fromkeys(row.variant for row in rows))
        self.places = sorted({row.x for row in rows})
        self.names = {row.x: row.place for row in rows}

    def place_name(self, x):
        """Its own name, else the number that varies."""
        return self.names[x] or f"{x:,.0f}"

    def time(self, variant, x):
        row = self.by_place.get((variant, x))
        return row.median_s if row and row.median_s > 0 else None

    def speedup(self, baseline, variant, x):
        """Over the baseline algorithm with the buffer of the variant."""
        buffer = variant.partition(" ")[2]
        before, after = self.time(f"{baseline} {buffer}".strip(), x), self.time(variant, x)
        return before / after if before and after else None

    def speedups(self, baseline, of=()):
        """(speed-up, variant, x) of the algorithms `of`, or of all but the baseline."""
        found = [
            (self.speedup(baseline, variant, x), variant, x)
            for variant in self.variants
            for x in self.places
            if (variant.partition(" ")[0] in of if of else variant.partition(" ")[0] != baseline)
        ]
        return [entry for entry in found if entry[0]]

    def fastest(self, x):
        """None unless every variant ran there: the fastest of some says nothing of the others."""
        times = [(self.time(variant, x), variant) for variant in self.variants]
        return min(times)[1] if times and all(time for time, _ in times) else None


def largest_speedup(baseline, stated, least, of=()):
    def judge(figures):
        speedups = figures.speedups(baseline, of)
        if not speedups:
            return None, None
        best, variant, x = max(speedups)
        return (
            f"largest {best:.2f} × ({variant} at {figures.place_name(x)}); {stated} or more counts",
            best >= least,
        )

    return judge


def largest_speedup_at(baseline, wanted_variant, wanted_x):
    def judge(figures):
        speedups = figures.speedups(baseline)
        if not speedups:
            return None, None
        best, variant, x = max(speedups)
        there = figures.speedup(baseline, wanted_variant, wanted_x)
        beside = f", {wanted_variant} at {wanted_x}: {there:.2f} ×" if there else ""
        measured = f"largest {best:.2f} × ({variant} at {figures.place_name(x)}){beside}"
        return measured, variant == wanted_variant and x == wanted_x

    return judge


def is_generally_fastest(algorithm, share=0.5, variant=None):
    """In more than `share` of the places."""

    def judge(figures):
        fastest = [figures.fastest(x) for x in figures.places]
        if not fastest or None in fastest:
            return None, None
        wins = sum(
            name == variant if variant else name.partition(" ")[0] == algorithm for name in fastest
        )
        measured = f"fastest in {wins} of {len(fastest)} ({', '.join(fastest)})"
        return measured, wins > share * len(fastest)

    return judge


def faster_everywhere(algorithm, slower, buffers=("list", "heap"), least=1.0):
    """`algorithm` beats `slower` with the same buffer at every place."""

    def judge(figures):
        ratios = [
            figures.speedup(slower, f"{algorithm} {buffer}", x)
            for buffer in buffers
            for x in figures.places
        ]
        if not ratios or None in ratios:
            return None, None
        return (
            f"{slower} / {algorithm}: {min(ratios):.2f} to {max(ratios):.2f}",
            min(ratios) > least,
        )

    return judge


def all_faster_than(baseline, least=1.0):
    def judge(figures):
        speedups = figures.speedups(baseline)
        if not speedups:
            return None, None
        worst, variant, x = min(speedups)
        return f"least {worst:.2f} × ({variant} at {figures.place_name(x)})", worst > least

    return judge


def about_equal(one, other, buffers=("list", "heap")):
    def judge(figures):
        ratios = [
            figures.speedup(one, f"{other} {buffer}", x)
            for buffer in buffers
            for x in figures.places
        ]
        if not ratios or None in ratios:
            return None, None
        within = max(max(ratios), 1 / min(ratios)) <= SMALL_DIFFERENCE
        return (
            f"{one} / {other}: {min(ratios):.2f} to {max(ratios):.2f} "
            f"(small: within {SMALL_DIFFERENCE:g} ×)",
            within,
        )

    return judge


def evaluates_less(algorithm, baseline, share=0.5):
    def judge(figures):
        shares = []
        for (variant, x), row in figures.by_place.items():
            name, _, buffer = variant.partition(" ")
            whole = figures.by_place.get((f"{baseline} {buffer}".strip(), x))
            if name == algorithm and whole and whole.evaluations:
                shares.append(row.evaluations / whole.evaluations)
        if not shares:
            return None, None
        return (
            f"{algorithm} evaluates {min(shares):.2%} to {max(shares):.2%} of the distances of "
            f"{baseline} (substantially: at most {share:.0%})",
            max(shares) <= share,
        )

    return judge


def grows_linearly(figures):
    """Not faster than LINEAR_SLACK times the size."""
    if len(figures.places) < 2:
        return None, None
    first, last = figures.places[0], figures.places[-1]
    growth = {}
    for variant in figures.variants:
        before, after = figures.time(variant, first), figures.time(variant, last)
        if not before or not after:
            return None, None
        growth[variant] = after / before
    least, most = min(growth, key=growth.get), max(growth, key=growth.get)
    measured = (
        f"{last / first:.3g} times the points take {growth[least]:.2f} ({least}) to "
        f"{growth[most]:.2f} times ({most}) as long (superlinear: over "
        f"{LINEAR_SLACK * last / first:.3g})"
    )
    return measured, growth[most] <= LINEAR_SLACK * last / first


def heap_wins_for_large_k(figures):
    """With the largest k, for more than half of the algorithms."""
    if not figures.places:
        return None, None
    x = figures.places[-1]
    ratios = {}
    for algorithm in dict.fromkeys(variant.partition(" ")[0] for variant in figures.variants):
        by_list, by_heap = (
            figures.time(f"{algorithm} list", x),
            figures.time(f"{algorithm} heap", x),
        )
        if not by_list or not by_heap:
            return None, None
        ratios[algorithm] = by_list / by_heap
    measured = f"list / heap at k = {x:.0f}: " + ", ".join(
        f"{name} {ratio:.2f}" for name, ratio in ratios.items()
    )
    return measured, sum(ratio > 1 for ratio in ratios.values()) > len(ratios) / 2


def heap_gains_with_k(algorithm):
    def judge(figures):
        ratios = []
        for x in figures.places:
            by_list, by_heap = (
                figures.time(f"{algorithm} list", x),
                figures.time(f"{algorithm} heap", x),
            )
            if not by_list or not by_heap:
                return None, None
            ratios.append(by_list / by_heap)
        if len(ratios) < 2:
            return None, None
        return (
            f"list / heap of {algorithm}: {ratios[0]:.2f} at k = {figures.places[0]:.0f}, "
            f"{ratios[-1]:.2f} at k = {figures.places[-1]:.0f}",
            ratios[-1] > ratios[0],
        )

    return judge


def ranks_alike(figures):
    """Rank correlation of the variants' times between any two places (distributions)."""
    import numpy  # here, since measuring alone does without it

    times = [[figures.time(variant, x) for variant in figures.variants] for x in figures.places]
    if len(times) < 2 or any(None in row for row in times):
        return None, None
    ranks = [numpy.argsort(numpy.argsort(row)) for row in times]
    worst = min(
        float(numpy.corrcoef(ranks[i], ranks[j])[0, 1]) for i in range(len(ranks)) for j in range(i)
    )
    return f"rank correlation at least {worst:.2f} (consistent: at least 0.8)", worst >= 0.8


def nearly_constant(variant, slack=1.1):
    def judge(figures):
        times = [figures.time(variant, x) for x in figures.places]
        if not times or None in times:
            return None, None
        ratio = max(times) / min(times)
        return (
            f"{min(times) * 1e3:.3f} to {max(times) * 1e3:.3f} ms (nearly constant: within "
            f"{slack:g} ×)",
            ratio <= slack,
        )

    return judge


def largest_speedup_at_small_k(baseline, most_k, of=()):
    def judge(figures):
        speedups = figures.speedups(baseline, of)
        if not speedups:
            return None, None
        best, _, x = max(speedups)
        return (
            f"largest {best:.2f} × at k = {x:.0f} (small: at most {most_k})",
            best > 1 and x <= most_k,
        )

    return judge


def concentrates(name, where, inside):
    """More than half of the points of the set `name` are where `inside` says. These functions take
    {name: (x, y)} in place of figures."""

    def judge(points):
        x, y = points[name]
        share = float(inside(x, y).mean())
        return f"{share:.1%} are {where} (most: over 50%)", share > 0.5

    return judge


def is_even(name, cells=4, slack=1.2):
    def judge(points):
        import numpy

        counts = numpy.histogram2d(*points[name], bins=cells, range=[[0, 1], [0, 1]])[0]
        ratio = float(counts.max() / counts.min()) if counts.min() > 0 else float("inf")
        measured = f"fullest of {cells * cells} cells / emptiest: {ratio:.3f} (even: {slack:g})"
        return measured, ratio <= slack

    return judge
