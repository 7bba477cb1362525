"""The timings and Figures 1 to 3 of the influence paper.

Its density of Figure 2 is not given: places of datasets/places.bin, counted in cells, stand for
it. Sites and choices are random, as there."""

import csv
import io
import struct
import tempfile
from pathlib import Path

from .data import Choice, Nearest, Sites
from .item import Item, Picture, Place
from .measure import ask
from .measures import time_of
from .statements import Statement

PLACES = Path(__file__).resolve().parents[2] / "datasets" / "places.bin"
WEST, SOUTH, DEGREES, CELLS = -9, 36, 24, 20  # western Europe, as the unit square
LEAST_WEIGHT = 20  # W0 of Figure 3


def count_places():
    """Rows from the north of the places in each cell."""
    cells = [[0] * CELLS for _ in range(CELLS)]
    records = PLACES.read_bytes()
    for _, x, y, _ in struct.iter_unpack("<Qddd", records):
        column, row = (x - WEST) * CELLS / DEGREES, (y - SOUTH) * CELLS / DEGREES
        if 0 <= column < CELLS and 0 <= row < CELLS:
            cells[CELLS - 1 - int(row)][int(column)] += 1
    return cells


class Density:
    """An ESRI grid over the unit square."""

    count, is_scaled = CELLS * CELLS, False

    def describe(self):
        return "datasets/places.bin: places in cells of 1.2 degrees, 9° W to 15° E, 36° to 60° N"

    def file_name(self, _):
        return "density.asc"

    def make(self, _, path, __):
        head = f"ncols {CELLS}\nnrows {CELLS}\nxllcorner 0\nyllcorner 0\ncellsize {1 / CELLS}\n"
        rows = (" ".join(map(str, row)) for row in count_places())
        path.write_text(head + "\n".join(rows) + "\n")


DENSITY = {"density": Density(), "density-is": "count"}


def times():
    choice = {"p-select": Choice(50, 500, 303), "q-select": Choice(25, 200, 304)}
    asked = {"k": 20, "k2": 20, "grid": "400x400", "min-weight": LEAST_WEIGHT, **choice, **DENSITY}
    sites = (Sites(500, 301), Sites(200, 302))
    return Item(
        names=("influence-times",),
        paper="influence",
        title="feasible pairs and partners, 400 × 400 cells, 50 of 500 and 25 of 200 sites, k = k' = 20",
        places=[
            Place(sites, "feasible pairs", {"algo": "influence-pairs", **asked}),
            Place(sites, "feasible partners", {"algo": "influence-partners", **asked}),
        ],
        sweeps=[
            {"method": ["pairs"], "device": "cpu", "threads": 1},
            {"method": ["pairs", "sparse"]},
        ],
        x="place",
        x_label="query",
        baseline="sequential",
        measures=lambda rows, phase: [time_of(phase)],
        phase="response",
        label=lambda options, place: (
            "sequential" if options.get("threads") else options["method"],
            "",
        ),
        statements=[
            Statement(
                "4",
                "A feasible pairs query takes 12 ms on the GPU and 347 ms on the CPU, sequentially",
                gpu_gains(0, 12, 347),
            ),
            Statement(
                "4",
                "A feasible partners query takes 16 ms on the GPU and 351 ms on the CPU, sequentially",
                gpu_gains(1, 16, 351),
            ),
        ],
    )


def gpu_gains(place, gpu_ms, cpu_ms):
    """The paper's method on a GPU against one thread: as many times as fast as it says."""

    def judge(figures):
        row, sequential = figures.by_place.get(("pairs", place)), figures.time("sequential", place)
        if not row or not sequential:
            return None, None
        measured = f"{row.median_s * 1e3:.2f} and {sequential * 1e3:.0f} ms"
        if not row.device_bytes:
            return f"{measured}, no GPU in this run", None
        ratio = sequential / row.median_s
        return f"{measured}: {ratio:.1f} × ({cpu_ms / gpu_ms:.1f} × or more counts)", (
            ratio >= cpu_ms / gpu_ms
        )

    return judge


# --- pictures -------------------------------------------------------------------------------------


REGION_CELLS = 200
K1, K2 = 5, 2  # of Figure 1
LOOKED_AT = 6


def region_of(kcp, store, device, k, shown):
    """Rows from the north, a letter a cell: 1 in the region of P's site, 2 of Q's, 3 in both."""
    files = [store.path(Sites(30, seed)) for seed in (311, 312)]
    cells = f"{REGION_CELLS}x{REGION_CELLS}"
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "map.asc"
        words = ["--algo", "influence-pairs", "--k", k[0], "--k2", k[1], "--domain", "0,0,1,1"]
        words += ["--grid", cells, "--p-select", 0, "--q-select", 0, "--map", path]
        ask(kcp, files, device, *words, "--map-show", shown)
        lines = path.read_text().splitlines()[5:]
    return ["".join(line.split()) for line in lines]


def parts_of(region):
    """Connected parts of the cells that are not 0, by a flood over edges."""
    left = {(i, j) for i, row in enumerate(region) for j, cell in enumerate(row) if cell != "0"}
    count = 0
    while left:
        count += 1
        front = [left.pop()]
        while front:
            i, j = front.pop()
            for near in ((i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)):
                if near in left:
                    left.remove(near)
                    front.append(near)
    return count


def make_regions(kcp, store, device):
    """Of the first sites, the one whose 5-region is in most parts, with the site of Q that shares
    most with its region."""
    fives = [region_of(kcp, store, device, (K1, K2), f"p:{site}") for site in range(LOOKED_AT)]
    parts = [parts_of(region) for region in fives]
    p = max(range(LOOKED_AT), key=lambda site: (parts[site], area(fives[site])))
    commons = [region_of(kcp, store, device, (K1, K2), f"pair:{p},{q}") for q in range(LOOKED_AT)]
    q = max(range(LOOKED_AT), key=lambda site: sum(row.count("3") for row in commons[site]))
    return {
        "p": p,
        "q": q,
        "parts": parts[p],
        "sites": [Sites(30, seed).records() for seed in (311, 312)],
        "five": fives[p],
        "two": region_of(kcp, store, device, (K1, K2), f"q:{q}"),
        "common": commons[q],
        "two of p": region_of(kcp, store, device, (2, K2), f"p:{p}"),
    }


def area(region):
    return sum(cell != "0" for row in region for cell in row)


def is_within(inner, outer):
    return all(b != "0" for r, s in zip(inner, outer) for a, b in zip(r, s) if a != "0")


def common_is_shared(kept):
    pairs = [
        ((a != "0") and (b != "0"), c == "3")
        for rows in zip(kept["five"], kept["two"], kept["common"])
        for a, b, c in zip(*rows)
    ]
    shared = sum(both for both, _ in pairs)
    return f"{shared:,} cells are in both", all(both == told for both, told in pairs)


def regions_are_nested(kept):
    inner, outer = kept["two of p"], kept["five"]
    told = f"2-region {area(inner):,} cells, 5-region {area(outer):,} of {REGION_CELLS**2:,}"
    return told, is_within(inner, outer)


def regions_come_apart(kept):
    return f"the 5-region of site {kept['p']} is in {kept['parts']} parts", kept["parts"] > 1


def draw_regions(kept, title, footer, stem):
    from . import influence_plots

    influence_plots.draw_regions(kept, title, footer, stem)


def regions():
    return Picture(
        names=("influence-figure-1",),
        paper="influence",
        title="a 5-influence region, a 2-influence region, their (5,2)-common influence region",
        make=make_regions,
        load=lambda kept, store: kept,
        draw=draw_regions,
        statements=[
            Statement("2", "I_k(s, S) ⊂ I_{k+1}(s, S) (here: k = 2 in k = 5)", regions_are_nested),
            Statement(
                "2",
                "In general, k-influence regions need not to be convex, nor simply connected, nor "
                "even connected",
                regions_come_apart,
            ),
            Statement("2.1", "C_{k,k'}(p, q, P, Q) = I_k(p, P) ∩ I_k'(q, Q)", common_is_shared),
        ],
    )


def make_density(kcp, store, device):
    """The domain, and the weight that kcp finds in it."""
    files = [store.path(Sites(count, seed)) for count, seed in ((100, 321), (100, 322))]
    density = store.path(Density())
    words = ["--algo", "influence-pairs", "--k", 15, "--k2", 15, "--density", density.name]
    report = ask(kcp, files, device, *words, "--density-is", "count")[1]
    total = report["results"][0]["parameters"]["total_weight"]
    return {"cells": count_places(), "total_weight": total}


def weight_is_kept(kept):
    places = sum(map(sum, kept["cells"]))
    return (
        f"{kept['total_weight']:,.6f} in all, of {places:,} places",
        abs(kept["total_weight"] - places) <= 1e-6 * places,
    )


def draw_density(kept, title, footer, stem):
    from . import influence_plots

    influence_plots.draw_density(kept, title, footer, stem)


def density():
    return Picture(
        names=("influence-figure-2",),
        paper="influence",
        title="the weighted partition of the domain: places of western Europe",
        make=make_density,
        load=lambda kept, store: kept,
        draw=draw_density,
        statements=[
            Statement("1.1", "w(R) = Σ w_j μ(R ∩ R_j) (here: of the whole domain)", weight_is_kept)
        ],
    )


# Q' lies together, as facilities of which one site may serve all.
P_CHOSEN, Q_CHOSEN = Choice(25, 100, 327), Nearest(10, Sites(100, 322))


def make_partners(kcp, store, device):
    files = [store.path(Sites(100, seed)) for seed in (321, 322)]
    words = ["--k", 15, "--k2", 15]
    words += ["--density", store.path(Density()).name, "--density-is", "count"]
    words += ["--p-select", store.path(P_CHOSEN).name, "--q-select", store.path(Q_CHOSEN).name]

    def answer(*more):
        return list(csv.DictReader(io.StringIO(ask(kcp, files, device, *words, *more)[0])))

    partners = answer("--algo", "influence-partners", "--min-weight", LEAST_WEIGHT)
    areas = answer("--algo", "influence-pairs", "--min-weight", LEAST_WEIGHT)
    return {
        "sites": [Sites(100, seed).records() for seed in (321, 322)],
        "p_chosen": P_CHOSEN.ids(),
        "q_chosen": Q_CHOSEN.ids(),
        "partners": [int(row["id"]) for row in partners],
        "pairs": [[int(row["id1"]), int(row["id2"])] for row in areas],
    }


def partners_share_with_all(kept):
    shared = dict.fromkeys(kept["p_chosen"], 0)
    for p, _ in kept["pairs"]:
        shared[p] += 1
    expected = [p for p, count in shared.items() if count == len(kept["q_chosen"])]
    return (
        f"{len(kept['partners'])} of {len(shared)} are solutions; {len(expected)} are in a feasible "
        f"pair with each of the {len(kept['q_chosen'])}",
        sorted(expected) == sorted(kept["partners"]),
    )


def draw_partners(kept, title, footer, stem):
    from . import influence_plots

    influence_plots.draw_partners(kept, title, footer, stem)


def partners():
    return Picture(
        names=("influence-figure-3",),
        paper="influence",
        title=f"a feasible partners query, k = k' = 15, least weight {LEAST_WEIGHT}",
        make=make_partners,
        load=lambda kept, store: kept,
        draw=draw_partners,
        statements=[
            Statement(
                "2.2, Figure 3",
                "Feasible partners: all points p ∈ P' such that for each q ∈ Q' the weighted area "
                "w(C_{k,k'}(p, q, P, Q)) ≥ W0",
                partners_share_with_all,
            )
        ],
    )


def items():
    return [times(), regions(), density(), partners()]
