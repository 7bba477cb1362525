"""The tables and figures of RT-HiSS.

Its peers are not in this program: its own baselines stand for what they show, brute force for
cuVS-Brute, one point a primitive for RTNN, the grid (CPU) for GDS-Join."""

import math

from . import range_statements as say
from .item import Item, Place
from .measures import (
    BATCHES,
    DOWNLOADED,
    INTERSECTIONS,
    NEIGHBOURS,
    PRUNED,
    REFINEMENT,
    THROUGHPUT,
    memory_of,
    phase_of,
    time_of,
    with_time,
)
from .rt_sets import DISTANCES, THREE_D, places
from .statements import Statement

PAPER = {"algo": "rt-hiss", "refine": "shared-both", "index": "bvh"}
OWN = {"algo": "rt-hiss"}  # this project's choice of everything
VARIANTS = ["shared-both", "shared-primitive", "shared-query", "shared-none"]
FORMS = ["mask", "mask-raw", "pairs"]
PAPERS_MEMORY = 16 << 30  # of its GPU
MOST_PAIRS = 5e11  # of brute force: seconds on a large GPU

PARTS = {
    "refinement": ("refine",),
    "kd-tree": ("kd_tree",),
    "intersection tests": ("first_test", "count_pass", "fill_pass"),
    "compression and copy": ("compact", "copy"),
    "other grouping and index": ("reorder", "primitives", "rearrange", "index"),
}


def labelled(key, names):
    """The label is that of an option's value; an option that is not given is this project's own
    choice."""
    return lambda options, place: (names.get(options.get(key), options.get(key, "default")), "")


def label_of_algorithm(options, place):
    if options["algo"] != "rt-hiss":
        return options["algo"], ""
    if options.get("kd-height") == "max":
        return "point-a-primitive", ""
    return ("rt-hiss" if "refine" in options else "default"), ""


def rt_item(name, title, where, sweeps, statements, **others):
    return Item(
        **{
            "names": name if isinstance(name, tuple) else (name,),
            "paper": "RT-HiSS",
            "title": title,
            "places": where,
            "sweeps": sweeps,
            "x": "place",
            "x_label": "set and search distance",
            "baseline": "",
            "measures": with_time(REFINEMENT),
            "phase": "response",
            "runs": 5,
            "label": label_of_algorithm,
            "statements": [Statement(*statement) for statement in statements],
            **others,
        }
    )


def heights(sets):
    return rt_item(
        "rt-figure-6",
        "heights of the kd-tree",
        places(sets),
        [{**PAPER, "kd-height": heights_at_scale}],
        [
            (
                "V-D",
                "Setting h = ⌊ln |D|⌋ yields a tree height that performs well across all datasets "
                "and is close to the optimal height",
                say.rule_is_near_best,
            ),
            (
                "V-D",
                "For the WEC dataset, the best performance is observed at h = 10 (the lowest), and "
                "performance deteriorates as h increases",
                say.lowest_is_best("WEC"),
            ),
            (
                "V-D",
                "For all other datasets, performance improves with an increase in tree height up "
                "to a certain tree height and then degrades",
                say.best_is_inside_but_for("WEC"),
            ),
        ],
        x="kd-height",
        x_label="height of the kd-tree",
        measures=with_time(INTERSECTIONS),
        label=lambda options, place: (place.name, ""),
    )


def heights_at_scale(scale):
    """Every second of 10 to 18; of fewer points lower ones, so that primitives are of like size."""
    return [max(1, height + round(math.log2(scale))) for height in range(10, 19, 2)]


def grouping(sets):
    point, grouped = "point-a-primitive", "rt-hiss"
    return rt_item(
        "rt-figure-7",
        "grouped points against one point a primitive",
        places(sets),
        [PAPER, {**PAPER, "kd-height": "max"}, OWN],
        [
            (
                "V-E",
                "Across all datasets and search distances, performance improves significantly",
                say.faster_everywhere(point, grouped),
            ),
            (
                "V-E",
                "A minimum speedup of 16.2× (WEC with ε_l)",
                say.faster_everywhere(point, grouped, 16.2),
            ),
            (
                "V-E",
                "A maximum speedup of 130.6× (SuSy with ε_l)",
                say.reaches(point, grouped, 130.6),
            ),
            (
                "V-E",
                "An average speedup of 42.4× across all datasets and search distances",
                say.averages(point, grouped, 42.4),
            ),
        ],
        baseline=point,
        measures=with_time(INTERSECTIONS),
    )


def refinement(sets):
    both, none = "shared-both", "shared-none"
    return rt_item(
        ("rt-figure-8", "rt-table-7"),
        "points in shared or global memory in the refinement",
        places(sets),
        [{**PAPER, "refine": VARIANTS}, OWN],
        [
            (
                "V-F",
                "Shared-Primitive outperforms Shared-None in all experimental scenarios",
                say.faster_everywhere(none, "shared-primitive"),
            ),
            (
                "V-F",
                "… yielding an average speedup of 2.64×",
                say.averages(none, "shared-primitive", 2.64),
            ),
            (
                "V-F",
                "Shared-Query-Primitive (RT-HiSS) outperforms Shared-None across all datasets and "
                "search distances",
                say.faster_everywhere(none, both),
            ),
            ("V-F", "… with an average speedup of 2.12×", say.averages(none, both, 2.12)),
            (
                "V-F",
                "Reading only query points from shared memory yields a slowdown over the baseline "
                "on some datasets (WEC, MSD, BigCross, and Sift)",
                say.slower_somewhere("shared-query", none, ("WEC", "MSD", "BigCross", "Sift")),
            ),
            (
                "V-K, Table VII",
                "RT-HiSS achieves 2.06× to 4.34× compute throughput improvement compared to the "
                "baseline (ε_l)",
                say.throughput_grows(both, none, 2.06),
            ),
            (
                "V-K, Table VII",
                "Global memory loads: a reduction of 85.64% to 98.35%",
                say.not_here("a profiler (Nsight Compute)"),
            ),
        ],
        baseline=none,
        measures=with_time(REFINEMENT, THROUGHPUT),
        label=labelled("refine", {}),
    )


def result_forms(sets):
    """Answers are written, so that they come to the host; bench does not write them."""
    forms = [
        {**PAPER, "result": [form], "memory": memory_at_scale} for form in FORMS
    ]
    return rt_item(
        ("rt-table-3", "rt-figure-9"),
        "forms of the result in as much memory as the paper's GPU has, all pairs in host memory",
        places(sets, "sml"),
        [*forms, {**OWN, "result": ["mask"], "memory": memory_at_scale}],
        [
            (
                "V-G1, Table III",
                "The key-value copy requires significantly more batches",
                say.more_batches("pairs", "mask"),
            ),
            (
                "V-G1, Table III",
                "The compressed and uncompressed result mask variants use the same number of batches",
                say.same_batches("mask", "mask-raw"),
            ),
            (
                "V-G2",
                "RT-HiSS outperforms key-value copy across all evaluation scenarios",
                say.faster_everywhere("pairs", "mask"),
            ),
            ("V-G2", "… with an average speedup of 1.65×", say.averages("pairs", "mask", 1.65)),
            (
                "V-G2",
                "The compressed result mask outperforms the uncompressed with an average speedup "
                "of 1.24×",
                say.averages("mask-raw", "mask", 1.24),
            ),
        ],
        baseline="pairs",
        measures=with_time(BATCHES, DOWNLOADED),
        runs=1,
        label=lambda options, place: (
            options["result"] if "refine" in options else "default",
            "",
        ),
    )


def memory_at_scale(scale):
    return max(64 << 20, round(PAPERS_MEMORY * scale))


def against_others(sets):
    brute = "range-brute"
    return rt_item(
        "rt-table-4",
        "RT-HiSS against the baselines of this program",
        places(sets),
        [PAPER, OWN, {"algo": brute, "most-pairs": MOST_PAIRS}, {"algo": "range-grid"}],
        [
            (
                "V-H, Table IV",
                "RT-HiSS outperforms cuVS-Brute across all datasets and search distances (here: "
                "range-brute)",
                say.faster_everywhere(brute, "rt-hiss"),
            ),
            (
                "V-H, Table IV",
                "… with minimum speedup of 4.74×",
                say.faster_everywhere(brute, "rt-hiss", 4.74),
            ),
            (
                "V-H, Table IV",
                "… and maximum speedup of 2,368.26×",
                say.reaches(brute, "rt-hiss", 2368.26),
            ),
            (
                "V-H, Table IV",
                "RT-HiSS outperforms GDS-Join achieving a speedup up to 9.19× (here: range-grid, on "
                "the CPU alone)",
                say.reaches("range-grid", "rt-hiss", 9.19),
            ),
            (
                "V-H, Table IV",
                "RT-HiSS outperforms COSS, yielding a maximum speedup of 8.37×",
                say.not_here("COSS"),
            ),
            (
                "V-H, Table IV",
                "RT-HiSS outperforms PyTorch3D achieving speedup spanning 34.20× to 4,180.12×",
                say.not_here("PyTorch3D"),
            ),
            ("V-H, Table IV", "RT-HiSS outperforms GTS", say.not_here("GTS")),
        ],
        baseline=brute,
        measures=lambda rows, phase: [time_of(phase), NEIGHBOURS, memory_of(rows)],
    )


def three_dimensions(_):
    return rt_item(
        "rt-table-5",
        "3-D sets, uniform and exponential (λ = 40) among them",
        places(THREE_D, "s"),
        [PAPER, {**PAPER, "kd-height": "max"}, OWN, {"algo": "range-brute", "most-pairs": 2e12}],
        [
            (
                "V-I, Table V",
                "RT-HiSS outperforms RTNN across all datasets (here: one point a primitive, as RTNN "
                "has it)",
                say.faster_everywhere("point-a-primitive", "rt-hiss"),
            ),
            (
                "V-I, Table V",
                "… with speedups up to 1.88×",
                say.reaches("point-a-primitive", "rt-hiss", 1.88),
            ),
        ],
        baseline="point-a-primitive",
        measures=with_time(PRUNED),
    )


def pruning(sets):
    return rt_item(
        "rt-table-6",
        "distance calculations that the index leaves out",
        places(sets, "l"),
        [PAPER, OWN, {"algo": "range-grid"}],
        [
            (
                "V-J, Table VI",
                "A high degree of pruning for WEC, MSD, SuSy, and BigCross (≥ 64.7%)",
                say.prunes(
                    "rt-hiss",
                    ("WEC", "MSD", "SuSy", "BigCross"),
                    lambda share: share >= 0.647,
                    "at least 64.7% counts",
                ),
            ),
            (
                "V-J, Table VI",
                "Low pruning is observed on Higgs (37.9%)",
                say.prunes("rt-hiss", ("Higgs",), lambda s: s <= 0.379, "at most 37.9% counts"),
            ),
            (
                "V-J, Table VI",
                "No pruning occurs on Sift",
                say.prunes("rt-hiss", ("Sift",), lambda share: share < 0.01, "under 1% counts"),
            ),
            (
                "V-J, Table VI",
                "RT-HiSS in 3 dimensions performs fewer distance calculations relative to GDS-Join "
                "in 6 dimensions, except for SuSy (here: range-grid, on the CPU alone)",
                say.evaluates_less("rt-hiss", "range-grid"),
            ),
        ],
        measures=with_time(PRUNED),
    )


def shares(sets):
    first, second, third = list(PARTS)[:3]
    parts = tuple((part, share_of(*phases)) for part, phases in PARTS.items())
    return rt_item(
        "rt-figure-10",
        "where the time goes",
        places(sets),
        [PAPER],
        [
            (
                "V-L",
                "CUDA core time accounts for the majority of the total execution time (average of "
                "59.54%) followed by the kd-tree construction time (average of 15.71%)",
                say.refinement_leads("rt-hiss", PARTS, first, second),
            ),
            (
                "V-L",
                "The FIT and two-pass RT-core approach together account for only an average of "
                "6.58% of the total time (here without RT cores)",
                say.takes_at_most("rt-hiss", PARTS, third, 0.0658),
            ),
        ],
        shares=parts,
        measures=with_time(),
    )


def share_of(*phases):
    def share(row):
        seconds = phase_of(row, *phases)
        return seconds / row.median_s if seconds is not None and row.median_s > 0 else None

    return share


def dimensions_order(sets):
    return rt_item(
        "rt-reorder",
        "dimensions of the highest variance first, of the lowest, at random",
        places(sets),
        [{**PAPER, "reorder": ["highest", "lowest", "random"]}],
        [
            (
                "IV-A",
                "Dimensions with higher variance prune the data space more efficiently than those "
                "with relatively lower variance",
                say.evaluates_less("highest", "lowest"),
            ),
            (
                "IV-A",
                "Reordering also helps in the early termination of the distance computations",
                say.faster_everywhere("lowest", "highest"),
            ),
        ],
        baseline="lowest",
        measures=with_time(PRUNED),
        label=labelled("reorder", {}),
    )


def label_of_work(options, place):
    sorts, fixes = options["sort-work"] == "on", options["fixed-work"] == "on"
    return {(True, True): "both", (True, False): "sorted", (False, True): "fixed"}.get(
        (sorts, fixes), "neither"
    ), ""


def work(sets):
    return rt_item(
        "rt-work",
        "heavy primitives first (sort-work), equal work for each block (fixed-work)",
        places(sets),
        [{**PAPER, "sort-work": ["on", "off"], "fixed-work": ["on", "off"]}],
        [
            (
                "IV-D",
                "Primitives with more intersections are processed first, which mitigates load "
                "imbalance towards the end of the execution",
                say.faster_everywhere("fixed", "both"),
            ),
        ],
        baseline="neither",
        label=label_of_work,
    )


def semi_joins(sets):
    where = [
        Place(
            (data, data.queries(10)),
            f"{data.name} {distance}",
            {"selectivity": DISTANCES[distance]},
        )
        for data in sets
        for distance in "sl"
    ]
    return rt_item(
        "rt-semi-join",
        "semi-joins: a tenth as many queries as points, of the same clusters",
        where,
        [PAPER, {**PAPER, "refine": "shared-none"}, {**PAPER, "kd-height": "max"}, OWN],
        [
            (
                "II-A",
                "The algorithm and optimizations are directly applicable to the semi-join as well: "
                "grouping",
                say.faster_everywhere("point-a-primitive", "rt-hiss"),
            ),
            ("II-A", "… and shared memory", say.faster_everywhere("shared-none", "rt-hiss")),
        ],
        baseline="point-a-primitive",
        label=lambda options, place: (
            ("shared-none", "")
            if options.get("refine") == "shared-none"
            else label_of_algorithm(options, place)
        ),
    )


def items(sets):
    """In the order of the paper."""
    makers = [result_forms, against_others, three_dimensions, pruning, heights, grouping]
    makers += [refinement, shares, dimensions_order, work, semi_joins]
    return [make(sets) for make in makers]
