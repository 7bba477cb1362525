"""The tables and figures of the k-CP paper."""

from . import statements as say
from .data import Real, Synthetic
from .item import Item, Picture, Place
from .measures import time_and_memory
from .statements import Statement

M, K = 1_000_000, 1_000
TEN = ["dbf", "dspp", "dspp+", "dspp+p", "dspp+pea"]  # each with two buffers: Table 4
THREE = ["dspp+", "dspp+p", "dspp+pea"]
TWO = ["dspp+p", "dspp+pea"]
THREE_KINDS = ("bit", "gaussian", "uniform")
FIVE = (1, 2, 3, 4, 5)
BUFFERS = ["list", "heap"]
TO_140 = list(range(20, 141, 20))

# Kind and size of the real sets (sections 2.6 and 3.1); see data.Real for the stand-ins.
PARKS = Real("parks", 11_500_000, "parcel", 101)
WATER = Real("water", 5_800_000, "sierpinski", 102)
BUILDINGS = Real("buildings", 114_700_000, "parcel", 103)
COORDINATES_1 = Real("coordinates-1", 2_091_602, "sierpinski", 104)
CENTROIDS_1 = Real("centroids-1", 562_302, "parcel", 105)
REAL_SETS = [PARKS, WATER, BUILDINGS, COORDINATES_1, CENTROIDS_1]


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
        places=[Place((reference(n, distribution), query(1, distribution))) for n in FIVE],
        sweeps=[{"algo": TEN, "buffer": BUFFERS, "k": [20]}],
        x="n1",
        x_label="points of D1",
        baseline="dbf",
        measures=time_and_memory,
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
        places=[Place((reference(1, distribution), query(n, distribution))) for n in FIVE],
        sweeps=[{"algo": TEN, "buffer": BUFFERS, "k": [20]}],
        x="n2",
        x_label="points of D2",
        baseline="dbf",
        measures=time_and_memory,
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
        places=[Place((d1, d2))],
        sweeps=[{"algo": algorithms, "buffer": BUFFERS, "k": [20, 80, 140]}],
        x="k",
        x_label="k",
        baseline=algorithms[0],
        runs=3,
        measures=time_and_memory,
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
        places=[Place((reference(1, distribution), query(1, distribution)))],
        sweeps=[{"algo": TEN, "buffer": BUFFERS, "k": TO_140}],
        x="k",
        x_label="k",
        baseline="dbf",
        measures=time_and_memory,
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
        places=[Place((COORDINATES_1, CENTROIDS_1))],
        sweeps=[{"algo": THREE, "buffer": BUFFERS, "k": TO_140}],
        x="k",
        x_label="k",
        baseline="dspp+",
        runs=3,
        measures=time_and_memory,
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


def distributions():
    return Item(
        names=("distributions",),
        paper="k-CP",
        title="the three distributions, D1 of 1 million points, D2 of 100 thousand, k 20",
        places=[Place((reference(1, name), query(1, name)), name) for name in THREE_KINDS],
        sweeps=[{"algo": TEN, "buffer": BUFFERS, "k": [20]}],
        x="place",
        x_label="distribution",
        baseline="dbf",
        measures=time_and_memory,
        statements=[
            Statement(
                "4.1.2",
                "The relative ranking of the algorithms remains remarkably consistent across all "
                "distributions",
                say.ranks_alike,
            ),
        ],
    )


def points_of(_, store):
    """{name: (x, y)}: the same on every machine."""
    from . import plots

    return {
        name: plots.read_points(store.path(Synthetic(name, 20 * K, 30, 2))) for name in THREE_KINDS
    }


def draw_kinds(points, title, footer, stem):
    from . import plots

    plots.draw_points([(name, *points[name]) for name in THREE_KINDS], title, footer, stem)


def kinds_of_sets():
    return Picture(
        names=("figure-11",),
        paper="k-CP",
        title="the distributions: bit, normal, uniform",
        make=lambda kcp, store, device: {},
        load=points_of,
        draw=draw_kinds,
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


def items(distribution):
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
        distributions(),
        kinds_of_sets(),
    ]
