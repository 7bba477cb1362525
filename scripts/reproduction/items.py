"""What can be reproduced: one item for each table and figure."""

from typing import Callable, NamedTuple

from . import statements as say
from .data import Real, Synthetic, Values
from .statements import Statement

M, K = 1_000_000, 1_000
TEN = ["dbf", "dspp", "dspp+", "dspp+p", "dspp+pea"]  # each with two buffers: Table 4
THREE = ["dspp+", "dspp+p", "dspp+pea"]
TWO = ["dspp+p", "dspp+pea"]
BUFFERS = ["list", "heap"]

# Kind and size of the real sets (sections 2.6 and 3.1); see data.Real for the stand-ins.
PARKS = Real("parks", 11_500_000, "parcel", 101)
WATER = Real("water", 5_800_000, "sierpinski", 102)
BUILDINGS = Real("buildings", 114_700_000, "parcel", 103)
COORDINATES_1 = Real("coordinates-1", 2_091_602, "sierpinski", 104)
CENTROIDS_1 = Real("centroids-1", 562_302, "parcel", 105)
REAL_SETS = [PARKS, WATER, BUILDINGS, COORDINATES_1, CENTROIDS_1]


class Item(NamedTuple):
    names: tuple  # the first is that of the files
    paper: str
    title: str
    pairs: list  # tuples of data sets
    options: dict  # of kcp bench; lists are swept
    x: str  # what varies: "n1", "n2", "k" or "pair"
    x_label: str
    x_names: tuple  # of "pair"
    baseline: str  # of the speed-ups
    statements: list
    runs: int  # when the user does not say

    @property
    def name(self):
        return self.names[0]


class Picture(NamedTuple):
    """Points to look at instead of times."""

    names: tuple
    paper: str
    title: str
    sets: list  # (name, Synthetic)
    statements: list

    @property
    def name(self):
        return self.names[0]


def x_of(item: Item, pair: int) -> Callable:
    return {
        "n1": lambda options, counts: counts[0] if counts else 0,
        "n2": lambda options, counts: counts[1] if counts else 0,
        "k": lambda options, counts: int(options["k"]),
        "pair": lambda options, counts: pair,
    }[item.x]


def reference(millions, distribution, seed=10):
    return Synthetic(distribution, millions * M, seed + millions)


def query(hundreds, distribution, seed=20):
    return Synthetic(distribution, hundreds * 100 * K, seed + hundreds)


GENERALLY_FASTEST = "DSPP+PEA generally achieves the best overall performance"


def d1_scaling(distribution):
    return Item(
        names=("figure-4", "table-5"),
        paper="k-CP",
        title=f"D1 of 1 to 5 million points, D2 of 100 thousand, k 20, {distribution}",
        pairs=[(reference(n, distribution), query(1, distribution)) for n in (1, 2, 3, 4, 5)],
        options={"algo": TEN, "buffer": BUFFERS, "k": [20]},
        x="n1",
        x_label="points of D1",
        x_names=(),
        baseline="dbf",
        runs=10,
        statements=[
            Statement(
                "3.1.1, Table 5",
                "The largest speedup over DBF is approximately 4.8 ×",
                say.largest_speedup("dbf", "4.8 ×", 4.8),
            ),
            Statement("3.1.1", GENERALLY_FASTEST, say.is_generally_fastest("dspp+pea")),
            Statement(
                "3.1.1",
                "Spatial subdivision substantially reduces the number of distance computations",
                say.evaluates_less("dspp", "dbf"),
            ),
            Statement(
                "3.1.1",
                "The differences between DSPP and DSPP+ remain relatively small",
                say.about_equal("dspp", "dspp+"),
            ),
            Statement(
                "4.1.1",
                "Execution time increases approximately linearly with D1; no superlinear growth",
                say.grows_linearly,
            ),
        ],
    )


def d2_scaling(distribution):
    return Item(
        names=("figure-5", "table-6"),
        paper="k-CP",
        title=f"D1 of 1 million points, D2 of 100 to 500 thousand, k 20, {distribution}",
        pairs=[(reference(1, distribution), query(n, distribution)) for n in (1, 2, 3, 4, 5)],
        options={"algo": TEN, "buffer": BUFFERS, "k": [20]},
        x="n2",
        x_label="points of D2",
        x_names=(),
        baseline="dbf",
        runs=10,
        statements=[
            Statement(
                "3.1.1, Table 6",
                "The optimizations remain effective as the size of the query dataset increases",
                say.all_faster_than("dbf"),
            ),
            Statement("3.1.1", GENERALLY_FASTEST, say.is_generally_fastest("dspp+pea")),
            Statement(
                "4.1.1",
                "Execution time increases approximately linearly with D2; no superlinear growth",
                say.grows_linearly,
            ),
        ],
    )


def large(name, section, d1, d2, algorithms, statements):
    return Item(
        names=(name,),
        paper="k-CP",
        title=f"{d1.name} {d1.count / M:.1f}M × {d2.name} {d2.count / M:.1f}M",
        pairs=[(d1, d2)],
        options={"algo": algorithms, "buffer": BUFFERS, "k": [20, 80, 140]},
        x="k",
        x_label="k",
        x_names=(),
        baseline=algorithms[0],
        runs=3,
        statements=[Statement(section, *statement) for statement in statements],
    )


PEA_BEATS_P = (
    "DSPP+PEA consistently outperforms DSPP+P",
    say.faster_everywhere("dspp+pea", "dspp+p"),
)


def k_scaling(distribution):
    return Item(
        names=("figure-9", "table-7"),
        paper="k-CP",
        title=f"k of 20 to 140, D1 of 1 million points, D2 of 100 thousand, {distribution}",
        pairs=[(reference(1, distribution), query(1, distribution))],
        options={"algo": TEN, "buffer": BUFFERS, "k": ["20:140:20"]},
        x="k",
        x_label="k",
        x_names=(),
        baseline="dbf",
        runs=10,
        statements=[
            Statement(
                "3.2.1, Table 7",
                "DSPP+PEA with the heap is approximately 6.98 × as fast as DBF at k = 140, the "
                "largest improvement of all",
                say.largest_speedup_at("dbf", "dspp+pea heap", 140),
            ),
            Statement(
                "3.2.1, Table 7",
                "The largest improvement is approximately 6.98 ×",
                say.largest_speedup("dbf", "6.98 ×", 6.98),
            ),
            Statement("3.2.1", GENERALLY_FASTEST, say.is_generally_fastest("dspp+pea")),
            Statement(
                "3.2.1",
                "All DSPP-based variants outperform the corresponding brute force",
                say.all_faster_than("dbf"),
            ),
            Statement(
                "3.2.1",
                "For larger values of k the heap generally outperforms the list",
                say.heap_wins_for_large_k,
            ),
        ],
    )


def real_k_scaling():
    return Item(
        names=("figure-10", "table-8"),
        paper="k-CP",
        title="k of 20 to 140, coordinates #1 × centroids #1",
        pairs=[(COORDINATES_1, CENTROIDS_1)],
        options={"algo": THREE, "buffer": BUFFERS, "k": ["20:140:20"]},
        x="k",
        x_label="k",
        x_names=(),
        baseline="dspp+",
        runs=3,
        statements=[
            Statement(
                "3.2.2, Table 8",
                "DSPP+PEA with the heap achieves the highest speedups in nearly all configurations",
                say.is_generally_fastest("dspp+pea", 0.8, "dspp+pea heap"),
            ),
            Statement(
                "3.2.2",
                "The proposed algorithms consistently outperform the DSPP+ baseline",
                say.all_faster_than("dspp+"),
            ),
            Statement(
                "3.2.2",
                "The benefit of the heap increases with larger values of k",
                say.heap_gains_with_k("dspp+pea"),
            ),
        ],
    )


def distributions(_):
    names = ("bit", "gaussian", "uniform")
    return Item(
        names=("distributions",),
        paper="k-CP",
        title="the three distributions, D1 of 1 million points, D2 of 100 thousand, k 20",
        pairs=[(reference(1, name), query(1, name)) for name in names],
        options={"algo": TEN, "buffer": BUFFERS, "k": [20]},
        x="pair",
        x_label="distribution",
        x_names=names,
        baseline="dbf",
        runs=10,
        statements=[
            Statement(
                "4.1.2",
                "The relative ranking of the algorithms remains remarkably consistent across all "
                "distributions",
                say.ranks_alike,
            ),
        ],
    )


def pictures():
    return Picture(
        names=("figure-11",),
        paper="k-CP",
        title="the distributions: bit, normal, uniform",
        sets=[(name, Synthetic(name, 20 * K, 30, 2)) for name in ("bit", "gaussian", "uniform")],
        statements=[
            Statement(
                "4.1.2",
                "The Bit distribution concentrates most points near the origin",
                say.concentrates("bit", "below 0.5 in x and y", lambda x, y: (x < 0.5) & (y < 0.5)),
            ),
            Statement(
                "4.1.2",
                "The Normal distribution generates points around the centre of the domain",
                say.concentrates(
                    "gaussian",
                    "within 0.25 of the centre in x and y",
                    lambda x, y: (abs(x - 0.5) < 0.25) & (abs(y - 0.5) < 0.25),
                ),
            ),
            Statement(
                "4.1.2",
                "The Uniform distribution distributes points approximately evenly",
                say.is_even("uniform"),
            ),
        ],
    )


def top_k():
    return Item(
        names=("top-k",),
        paper="top-k slides",
        title="first k of 2^20 values (the slides do not say how many): sort against bitonic",
        pairs=[(Values(1 << 20, 40),)],
        options={"algo": ["sort", "bitonic", "select"], "k": [32, 64, 128, 256, 512, 1024]},
        x="k",
        x_label="k",
        x_names=(),
        baseline="sort",
        runs=10,
        statements=[
            Statement(
                "slide 9",
                "Sorting-based top-k takes a nearly constant time (around 0.79 ms)",
                say.nearly_constant("sort"),
            ),
            Statement(
                "slide 9",
                "Bitonic top-k is up to 17 times as fast",
                say.largest_speedup("sort", "17 ×", 17, ("bitonic",)),
            ),
            Statement(
                "slide 9",
                "The largest speedup is at small k (such as 64)",
                say.largest_speedup_at_small_k("sort", 128, ("bitonic",)),
            ),
        ],
    )


def all_items(distribution):
    """In the order of the papers. `distribution` is that of the synthetic sets."""
    return [
        d1_scaling(distribution),
        d2_scaling(distribution),
        large(
            "figure-6",
            "3.1.2",
            PARKS,
            WATER,
            THREE,
            [
                ("DSPP+PEA is fastest, followed by DSPP+P", PEA_BEATS_P[1]),
                ("DSPP+P is faster than DSPP+", say.faster_everywhere("dspp+p", "dspp+")),
            ],
        ),
        large("figure-7", "3.1.3", BUILDINGS, WATER, TWO, [PEA_BEATS_P]),
        large("figure-8", "3.1.4", BUILDINGS, PARKS, TWO, [PEA_BEATS_P]),
        k_scaling(distribution),
        real_k_scaling(),
        distributions(distribution),
        pictures(),
        top_k(),
    ]
