"""The plots: PNG and SVG of each item."""

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


def _finish(figure, title, footer):
    figure.suptitle(title, fontsize=11)
    figure.text(0.01, 0.01, footer, fontsize=7, color="#444444", va="bottom")
    figure.tight_layout(rect=(0, 0.05, 1, 0.98))


def _plain_number(value, _):
    if value >= 1_000_000:
        return f"{value / 1_000_000:g}M"
    return f"{value / 1000:g}K" if value >= 1000 else f"{value:g}"


def _set_x(axes, item, places):
    axes.set_xlabel(item.x_label)
    if item.x == "pair":
        axes.set_xticks(places, [item.x_names[int(place)] for place in places])
        return
    if item.x == "k" and max(places) >= 10 * min(places):
        axes.set_xscale("log", base=2)
    axes.set_xticks(places)
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.xaxis.set_major_formatter("{x:g}" if item.x == "k" else _plain_number)


def _set_y(axes, label):
    """Logarithmic where the values are far apart, else from 0."""
    axes.set_ylabel(label, fontsize=9)
    most = axes.get_ylim()[1]
    values = [value for line in axes.lines for value in line.get_ydata() if value > 0]
    if values and max(values) > 5 * min(values):
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_minor_locator(ticker.NullLocator())
        axes.yaxis.set_major_formatter("{x:g}")
    else:
        axes.set_ylim(0, most * 1.05)
    axes.grid(True, linewidth=0.3)


def _draw(axes, figures, value_of, error_of=None):
    for variant in figures.variants:
        rows = [figures.by_place.get((variant, x)) for x in figures.places]
        rows = [row for row in rows if row is not None]
        if not rows:
            continue
        algorithm, buffer = rows[0].algorithm, rows[0].buffer
        style = {
            "color": COLOURS.get(algorithm),
            "linestyle": LINES[buffer],
            "marker": MARKERS[buffer],
            "markersize": 4,
            "linewidth": 1.3,
            "label": variant,
        }
        x, y = [row.x for row in rows], [value_of(row) for row in rows]
        if error_of:
            axes.errorbar(x, y, yerr=list(zip(*map(error_of, rows))), capsize=2, **style)
        else:
            axes.plot(x, y, **style)


def draw_item(item, figures, title, footer, phase, stem):
    """Time with the spread of the runs, and peak memory, over what the item varies."""
    figure, (times, memory) = pyplot.subplots(1, 2, figsize=(11, 5))
    _draw(
        times,
        figures,
        lambda row: row.median_s * 1e3,
        lambda row: (
            max(0, row.median_s - row.minimum_s) * 1e3,
            max(0, row.maximum_s - row.median_s) * 1e3,
        ),
    )
    _draw(memory, figures, lambda row: row.memory_bytes / 1e6)
    on_device = any(row.device_bytes for row in figures.rows)
    _set_y(times, f"{phase} time in ms (median; bars: fastest to slowest run)")
    _set_y(memory, f"peak {'device' if on_device else 'host'} memory in MB")
    for axes in (times, memory):
        _set_x(axes, item, figures.places)
    handles, labels = times.get_legend_handles_labels()
    memory.legend(handles, labels, fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5))
    _finish(figure, title, footer)
    save(figure, stem)


def draw_points(sets, title, footer, stem):
    """`sets`: (name, x, y)."""
    figure, row = pyplot.subplots(1, len(sets), figsize=(3.8 * len(sets), 4.6))
    for axes, (name, x, y) in zip(row, sets):
        axes.scatter(x, y, s=1.2, linewidths=0, color="#0072B2", rasterized=True)
        axes.set(title=f"{name}, {len(x):,} points", xlim=(0, 1), ylim=(0, 1), aspect="equal")
        axes.set(xlabel="x", ylabel="y")
    _finish(figure, title, footer)
    save(figure, stem)
