"""Tables and the page that puts the paper's words beside what was measured."""

import csv

VERDICTS = {True: "holds", False: "does not hold", None: "not measured"}


def milliseconds(seconds):
    scaled = seconds * 1e3
    digits = 3 if scaled < 10 else 2 if scaled < 100 else 1 if scaled < 1000 else 0
    return f"{scaled:,.{digits}f}"


def megabytes(count):
    return f"{count / 1e6:,.1f}"


def markdown(header, rows):
    cells = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in row) + " |" for row in cells)


def place_name(item, x):
    return item.x_names[int(x)] if item.x == "pair" else f"{x:,.0f}"


def _pivot(item, figures, cell):
    header = [item.x_label, *(place_name(item, x) for x in figures.places)]
    rows = []
    for variant in figures.variants:
        row = [cell(variant, x) for x in figures.places]
        rows.append([variant, *("-" if value is None else value for value in row)])
    return markdown(header, rows)


def tables(item, figures, phase):
    """Times, speed-ups as in the paper's tables, and memory."""

    def time(variant, x):
        value = figures.time(variant, x)
        return value and milliseconds(value)

    def speedup(variant, x):
        value = figures.speedup(item.baseline, variant, x)
        return value and f"{value:.2f}"

    def memory(variant, x):
        row = figures.by_place.get((variant, x))
        return row and megabytes(row.memory_bytes)

    kind = "device" if any(row.device_bytes for row in figures.rows) else "host"
    return "\n\n".join(
        [
            f"Median {phase} time in ms:\n\n{_pivot(item, figures, time)}",
            f"Speed-up over {item.baseline} with the same buffer:\n\n"
            f"{_pivot(item, figures, speedup)}",
            f"Peak {kind} memory in MB:\n\n{_pivot(item, figures, memory)}",
        ]
    )


def reasons(figures):
    """Configurations that did not run, each with its reason."""
    lines = [
        f"- {row.variant}, k {row.k}: {row.status}: {row.reason}"
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


def write_csv(path, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            "algorithm buffer k d1_points d2_points status reason samples median_s min_s max_s "
            "kernel_median_s distance_evaluations peak_host_bytes peak_device_bytes checksum "
            "checked".split()
        )
        for row in rows:
            counts = [*row.counts, "", ""][:2]
            figures = [row.median_s, row.minimum_s, row.maximum_s, row.kernel_s, row.evaluations]
            if not row.ran:
                figures = [""] * len(figures)
            memory = [row.host_bytes, row.device_bytes] if row.ran else ["", ""]
            writer.writerow(
                [row.algorithm, row.buffer, row.k, *counts, row.status, row.reason, row.samples]
                + [*figures, *memory, row.checksum, row.checked]
            )
