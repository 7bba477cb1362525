"""What is shown of the rows: a panel of the plot and a table of the page for each."""

from .item import Measure


def milliseconds(value):
    digits = 3 if value < 10 else 2 if value < 100 else 1 if value < 1000 else 0
    return f"{value:,.{digits}f}"


def time_of(phase):
    return Measure(
        f"{phase} time in ms (median; bars: fastest to slowest run)",
        lambda row: row.median_s * 1e3,
        milliseconds,
        lambda row: (
            max(0, row.median_s - row.minimum_s) * 1e3,
            max(0, row.maximum_s - row.median_s) * 1e3,
        ),
    )


def memory_of(rows):
    kind = "device" if any(row.device_bytes for row in rows) else "host"
    return Measure(
        f"peak {kind} memory in MB",
        lambda row: row.memory_bytes / 1e6,
        lambda value: f"{value:,.1f}",
    )


def time_and_memory(rows, phase):
    return [time_of(phase), memory_of(rows)]


def counted(title, name):
    """A whole number that a range join tells."""
    return Measure(title, lambda row: row.facts.get(name), lambda value: f"{value:,.0f}")


BATCHES = counted("batches", "batches")
DOWNLOADED = Measure(
    "bytes from the device in MB",
    lambda row: row.facts["downloaded_bytes"] / 1e6 if row.device_bytes else None,
    lambda value: f"{value:,.1f}",
)
NEIGHBOURS = Measure(
    "mean neighbours of a query (selectivity)",
    lambda row: row.facts.get("selectivity"),
    lambda value: f"{value:,.1f}",
)
INTERSECTIONS = counted("queries' intersections with primitives", "intersections")


def evaluated_share(row):
    possible = row.facts.get("possible")
    return row.evaluations / possible if possible else None


PRUNED = Measure(
    "distance calculations left out, in %",
    lambda row: None if evaluated_share(row) is None else 100 * (1 - evaluated_share(row)),
    lambda value: f"{value:.1f}",
)


def phase_of(row, *names):
    """Seconds of some phases of a range join."""
    phases = row.facts.get("phases")
    return sum(phases[f"{name}_s"] for name in names) if phases else None


REFINEMENT = Measure(
    "refinement in ms",
    lambda row: None if phase_of(row, "refine") is None else phase_of(row, "refine") * 1e3,
    milliseconds,
)


def comparisons_per_second(row):
    seconds = phase_of(row, "refine")
    return row.evaluations / seconds if seconds else None


THROUGHPUT = Measure(
    "distances a second in the refinement, in 10^9",
    lambda row: None if comparisons_per_second(row) is None else comparisons_per_second(row) / 1e9,
    lambda value: f"{value:,.2f}",
)


def with_time(*others):
    return lambda rows, phase: [time_of(phase), *others]
