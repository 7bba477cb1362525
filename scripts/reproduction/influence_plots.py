"""The maps of the influence paper's figures: PNG and SVG."""

from matplotlib import colors, pyplot

from .plots import finish, save

REGION_COLOURS = ["#f4f4f4", "#9ecae1", "#fcae91", "#41ab5d"]  # none, of P, of Q, of both
P_COLOUR, Q_COLOUR, ANSWER_COLOUR = "#cb181d", "#2171b5", "#ff7f0e"
GREY, GREEN = "#9a9a9a", "#2ca02c"


def _scatter(axes, sites, ids, marker, colour, label, size=28):
    chosen = [sites[i] for i in ids]
    axes.scatter(
        [site[0] for site in chosen],
        [site[1] for site in chosen],
        s=size,
        marker=marker,
        color=colour,
        edgecolors="black",
        linewidths=0.4,
        label=label,
    )


def _unit_square(axes, title):
    axes.set(title=title, xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel="x", ylabel="y")
    axes.title.set_fontsize(9)


def draw_regions(kept, title, footer, stem):
    figure, row = pyplot.subplots(1, 3, figsize=(12, 4.8))
    p, q = kept["p"], kept["q"]
    panels = [
        ("five", f"a) 5-influence region of site {p} of P"),
        ("two", f"b) 2-influence region of site {q} of Q"),
        ("common", "c) both, and their (5,2)-common region (green)"),
    ]
    shades = colors.ListedColormap(REGION_COLOURS)
    for axes, (name, heading) in zip(row, panels):
        cells = [[int(cell) for cell in line] for line in kept[name]]
        axes.imshow(
            cells, shades, vmin=-0.5, vmax=3.5, extent=(0, 1, 0, 1), interpolation="nearest"
        )
        if name != "two":
            _scatter(axes, kept["sites"][0], range(len(kept["sites"][0])), "s", P_COLOUR, "P", 12)
            _scatter(axes, kept["sites"][0], [p], "s", "black", f"site {p} of P", 60)
        if name != "five":
            _scatter(axes, kept["sites"][1], range(len(kept["sites"][1])), "^", Q_COLOUR, "Q", 14)
            _scatter(axes, kept["sites"][1], [q], "^", "black", f"site {q} of Q", 70)
        _unit_square(axes, heading)
        axes.legend(fontsize=7, loc="upper right")
    finish(figure, title, footer)
    save(figure, stem)


def draw_density(kept, title, footer, stem):
    figure, axes = pyplot.subplots(figsize=(6.8, 5.6))
    image = axes.imshow(kept["cells"], "Purples_r", extent=(0, 1, 0, 1), interpolation="nearest")
    figure.colorbar(image, ax=axes, label="places in a cell (darker: fewer)")
    _unit_square(axes, "each cell a region with its own weight")
    axes.set(xlabel="x (9° W to 15° E)", ylabel="y (36° to 60° N)")
    finish(figure, title, footer)
    save(figure, stem)


def draw_partners(kept, title, footer, stem):
    figure, row = pyplot.subplots(1, 2, figsize=(10.5, 5.6))
    p_sites, q_sites = kept["sites"]
    p_chosen, q_chosen = kept["p_chosen"], kept["q_chosen"]
    for axes, heading in zip(row, ("a) the sites", "b) the solutions (orange)")):
        others = [i for i in range(len(p_sites)) if i not in p_chosen]
        _scatter(axes, p_sites, others, "s", P_COLOUR, "P, not in P'")
        others = [i for i in range(len(q_sites)) if i not in q_chosen]
        _scatter(axes, q_sites, others, "^", Q_COLOUR, "Q, not in Q'")
        _scatter(axes, p_sites, p_chosen, "s", GREY, "P'", 40)
        _scatter(axes, q_sites, q_chosen, "^", GREEN, "Q'", 46)
        _unit_square(axes, heading)
    _scatter(row[1], p_sites, kept["partners"], "s", ANSWER_COLOUR, "solutions", 52)
    row[1].legend(fontsize=7, loc="center left", bbox_to_anchor=(1.01, 0.5))
    finish(figure, title, footer)
    save(figure, stem)
