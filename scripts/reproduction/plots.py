"""The plots: PNG and SVG of each item."""

import textwrap

import matplotlib
import numpy

matplotlib.use("Agg")
from matplotlib import pyplot, ticker  # noqa: E402 (the backend is chosen first)

COLOURS = {
    "dbf": "#555555",
    "dspp": "#0072B2",
    "dspp+": "#56B4E9",
    "dspp+p": "#E69F00",
    "dspp+pea": "#D55E00",
    "sort": "#555555",
    "bitonic": "#0072B2",
    "select": "#D55E00",
}
PALETTE = ["#0072B2", "#D55E00", "#009E73", "#E69F00", "#56B4E9", "#CC79A7", "#555555", "#F0E442"]
LINES = {"list": "--", "heap": "-", "": "-"}
MARKERS = {"list": "o", "heap": "s", "": "o"}


def read_points(path):
    """x and y of a .bin file."""
    records = numpy.fromfile(path, [("id", "<u8"), ("x", "<f8"), ("y", "<f8"), ("z", "<f8")])
    return records["x"], records["y"]


def save(figure, stem):
    for ending in ("png", "svg"):
        # No date in the file: the same figures give the same bytes.
        metadata = {"Date": None} if ending == "svg" else None
        figure.savefig(f"{stem}.{ending}", dpi=150, metadata=metadata)
    pyplot.close(figure)


def finish(figure, title, footer):
    wide = round(11 * figure.get_figwidth())  # characters of that size in a line
    figure.suptitle("\n".join(textwrap.wrap(title, wide)), fontsize=11)
    figure.text(0.01, 0.01, footer, fontsize=7, color="#444444", va="bottom")
    figure.tight_layout(rect=(0, 0.05, 1, 0.98))


def _plain_number(value, _):
    if value >= 1_000_000:
        return f"{value / 1_000_000:g}M"
    return f"{value / 1000:g}K" if value >= 1000 else f"{value:g}"


def _set_x(axes, item, figures):
    places = figures.places
    axes.set_xlabel(item.x_label)
    if item.is_named:
        tilt = {"rotation": 30, "ha": "right"} if len(places) > 4 else {}
        axes.set_xticks(places, [figures.place_name(x) for x in places], fontsize=8, **tilt)
        return
    if item.x == "k" and max(places) >= 10 * min(places):
        axes.set_xscale("log", base=2)
    axes.set_xticks(places)
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.xaxis.set_major_formatter(_plain_number if item.x in ("n1", "n2") else "{x:g}")


def _set_y(axes, label, values):
    """Logarithmic where the values are far apart, else from 0."""
    axes.set_ylabel(label, fontsize=9)
    above = [value for value in values if value > 0]
    if above and max(above) > 5 * min(above) and len(above) == len(values):
        axes.set_yscale("log")
        axes.set_ylim(min(above) / 1.5, max(above) * 1.5)
        axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5), numticks=20))
        axes.yaxis.set_minor_locator(ticker.NullLocator())
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.12g}")
    else:
        axes.set_ylim(0, max(values, default=1) * 1.1 or 1)
        if all(value == int(value) for value in values):
            axes.yaxis.set_major_locator(ticker.MaxNLocator(integer=True))
    axes.grid(True, axis="y" if axes.patches else "both", linewidth=0.3)


def _style(number, algorithm, buffer):
    colour = COLOURS.get(algorithm, PALETTE[number % len(PALETTE)])
    return {"color": colour, "label": f"{algorithm} {buffer}".strip()}


def _draw(axes, item, figures, measure):
    """Lines over numbers, bars over names. Returns the values, and how far up they were."""
    shown = []
    for number, variant in enumerate(figures.variants):
        rows = [figures.by_place.get((variant, x)) for x in figures.places]
        rows = [row for row in rows if row is not None and measure.value(row) is not None]
        if not rows:
            continue
        x, y = [row.x for row in rows], [measure.value(row) for row in rows]
        shown += y
        if measure.spread:
            shown += [value + measure.spread(row)[1] for value, row in zip(y, rows)]
        algorithm, buffer = rows[0].algorithm, rows[0].buffer
        style = _style(number, algorithm, buffer)
        errors = list(zip(*map(measure.spread, rows))) if measure.spread else None
        if item.is_named:
            width = 0.8 / len(figures.variants)
            x = [place + (number + 0.5) * width - 0.4 for place in x]
            hatch = {"hatch": "///", "edgecolor": "white"} if buffer == "list" else {}
            axes.bar(x, y, width * 0.95, yerr=errors, capsize=1.5, linewidth=0, **hatch, **style)
            continue
        style |= {"linestyle": LINES[buffer], "marker": MARKERS[buffer], "markersize": 4}
        axes.errorbar(x, y, yerr=errors, capsize=2, linewidth=1.3, **style)
    return shown


def draw_item(item, figures, measures, title, footer, stem):
    """A panel for each measure over what the item varies."""
    panels = len(measures) + bool(item.shares)
    figure, row = pyplot.subplots(1, panels, figsize=(5.2 * panels + 1.6, 5), squeeze=False)
    for axes, measure in zip(row[0], measures):
        _set_y(axes, measure.title, _draw(axes, item, figures, measure))
        _set_x(axes, item, figures)
    if item.shares:
        _draw_shares(row[0][-1], item, figures)
    last = row[0][-1]
    if item.shares or len(figures.variants) > 1:
        handles, labels = (last if item.shares else row[0][0]).get_legend_handles_labels()
        last.legend(handles, labels, fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5))
    finish(figure, title, footer)
    save(figure, stem)


def _draw_shares(axes, item, figures):
    rows = [row for row in figures.rows if row.ran]
    below = [0.0] * len(rows)
    for number, (name, value) in enumerate(item.shares):
        parts = [value(row) or 0 for row in rows]
        x = [row.x for row in rows]
        axes.bar(x, parts, 0.7, bottom=below, color=PALETTE[number % len(PALETTE)], label=name)
        below = [a + b for a, b in zip(below, parts)]
    axes.set_ylim(0, 1)
    axes.set_ylabel("share of the time (white: the rest)", fontsize=9)
    axes.grid(True, axis="y", linewidth=0.3)
    _set_x(axes, item, figures)


def draw_points(sets, title, footer, stem):
    """`sets`: (name, x, y)."""
    figure, row = pyplot.subplots(1, len(sets), figsize=(3.8 * len(sets), 4.6))
    for axes, (name, x, y) in zip(row, sets):
        axes.scatter(x, y, s=1.2, linewidths=0, color="#0072B2", rasterized=True)
        axes.set(title=f"{name}, {len(x):,} points", xlim=(0, 1), ylim=(0, 1), aspect="equal")
        axes.set(xlabel="x", ylabel="y")
    finish(figure, title, footer)
    save(figure, stem)
