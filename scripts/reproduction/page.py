"""Tables and the page that puts the paper's words beside what was measured."""

import csv

VERDICTS = {True: "holds", False: "does not hold", None: "not measured"}


def markdown(header, rows):
    cells = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in row) + " |" for row in cells)


def _pivot(item, figures, cell):
    header = [item.x_label, *(figures.place_name(x) for x in figures.places)]
    rows = []
    for variant in figures.variants:
        row = [cell(variant, x) for x in figures.places]
        rows.append([variant, *("-" if value is None else value for value in row)])
    return markdown(header, rows)


def tables(item, figures, measures):
    """A table for each measure; the speed-ups, as in the papers' tables, behind the times."""

    stopped = {(row.variant, row.x): row.stopped_s for row in figures.rows if row.stopped_s}

    def of(measure):
        def cell(variant, x):
            row = figures.by_place.get((variant, x))
            if not row and (variant, x) in stopped and measure is measures[0]:
                return f"over {measure.text(stopped[variant, x] * 1e3)}"
            value = measure.value(row) if row else None
            return None if value is None else measure.text(value)

        return f"{measure.title[0].upper()}{measure.title[1:]}:\n\n{_pivot(item, figures, cell)}"

    def speedup(variant, x):
        value = figures.speedup(item.baseline, variant, x)
        return value and f"{value:.2f}"

    times, *others = map(of, measures)
    parts = [times]
    if item.baseline:
        same = " with the same buffer" if any(row.buffer for row in figures.rows) else ""
        parts.append(f"Speed-up over {item.baseline}{same}:\n\n{_pivot(item, figures, speedup)}")
    if item.shares:
        parts.append(_shares(item, figures))
    return "\n\n".join(parts + others)


def _shares(item, figures):
    rows = []
    for name, value in item.shares:
        cells = [value(row) if row else None for row in figures.rows]
        rows.append([name, *("-" if cell is None else f"{cell:.1%}" for cell in cells)])
    header = ["share of the time", *(row.place for row in figures.rows)]
    return f"Shares of the time:\n\n{markdown(header, rows)}"


def reasons(figures):
    """Configurations that did not run, each with its reason."""
    lines = [
        f"- {row.variant}, {row.place or f'k {row.k}'}: {row.status}: {row.reason}"
        for row in figures.rows
        if row.status != "ok"
    ]
    return "Not run:\n\n" + "\n".join(lines) if lines else ""


NOISY = 1.5


def noise(figures):
    """A warning, when runs of one configuration differ much."""
    several = [row for row in figures.rows if row.samples > 1]
    noisy = [row for row in several if row.maximum_s > NOISY * row.median_s]
    if not noisy:
        return ""
    return (
        f"In {len(noisy)} of {len(several)} configurations the slowest run took over {NOISY:g} times "
        "the median: the machine had other work, or the runs are too short. Repeat before relying "
        "on close figures."
    )


def verdicts(statements, figures):
    rows = []
    for statement in statements:
        measured, holds = statement.judge(figures)
        rows.append([statement.text, statement.source, measured or "-", VERDICTS[holds]])
    table = ["| The paper says | where | this run | verdict |", "| --- | --- | --- | --- |"]
    return "\n".join(table + ["| " + " | ".join(row) + " |" for row in rows]), [
        row[-1] for row in rows
    ]


FACTS = "eps pairs selectivity batches primitives intersections rechecks read_s".split()


def write_csv(path, rows):
    facts = [name for name in FACTS if any(row.facts.get(name) is not None for row in rows)]
    phases = list(dict.fromkeys(name for row in rows for name in row.facts.get("phases", {})))
    header = (
        "place algorithm buffer k d1_points d2_points status reason samples median_s min_s max_s "
        "kernel_median_s distance_evaluations peak_host_bytes peak_device_bytes"
    ).split()
    header += [*facts, *(f"phase_{name}" for name in phases), "checksum", "checked"]
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        for row in rows:
            counts = [*row.counts, "", ""][:2]
            figures = [row.median_s, row.minimum_s, row.maximum_s, row.kernel_s, row.evaluations]
            figures += [row.host_bytes, row.device_bytes]
            if not row.ran:
                figures = [""] * len(figures)
            writer.writerow(
                [row.place, row.algorithm, row.buffer, row.k, *counts, row.status, row.reason]
                + [row.samples, *figures]
                + [row.facts.get(name, "") for name in facts]
                + [row.facts.get("phases", {}).get(name, "") for name in phases]
                + [row.checksum, row.checked]
            )
