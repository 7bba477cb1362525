"""The page: a section for each OUT/NAME.json, and a summary of the verdicts."""

import json

from . import page, plots
from .failure import Failure
from .item import Picture
from .items import all_items
from .measure import rows_of
from .statements import Figures


def machine(reports):
    """One line: device, CPU, program."""
    ran = [report for report in reports if "context" in report]
    # A sweep may ask for the CPU beside a GPU: the device is that of the reports that had one.
    report = next((report for report in ran if report["context"]["gpu"]), ran[0])
    context, tool = report["context"], report["tool"]
    cpu = f"{context['cpu']}, {context['cpu_threads']} threads"
    device = f"{context['gpu']} (driver {context['driver']})" if context["gpu"] else cpu
    return f"{device}; kcp {tool['version']} ({tool['revision']})"


def condition_lines(conditions, reports):
    lines = [f"- {conditions['date']}, {machine(reports)}"]
    if conditions["scale"] != 1:
        lines.append(
            f"- {conditions['scale']:g} of the paper's points: the verdicts are of this run"
        )
    if conditions["kernel"]:
        order = " (the paper's pseudocode), D2 in the order of the file"
        lines.append(
            f"- kernel {conditions['kernel']}{order if conditions['kernel'] == 'plain' else ''}"
        )
    lines += [f"- `{name}`: {what}" for name, what in conditions["data"].items()]
    return "\n".join(lines)


def commands(reports):
    lines = [
        "    " + " ".join(words)
        for report in reports
        for words in report.get("context", {}).get("argv", [])
    ]
    return "Commands:\n\n" + "\n".join(dict.fromkeys(lines))


def footer_of(conditions, reports):
    return f"{machine(reports)}, {conditions['date']}, scale {conditions['scale']:g}"


def section_of_picture(item, stem, saved, out, store):
    conditions, reports = saved["conditions"], saved["reports"]
    shown = item.load(conditions["measured"], store)
    title = f"{item.name}: {item.title}"
    item.draw(shown, title, footer_of(conditions, reports), out / stem)
    table, words = page.verdicts(item.statements, shown)
    return [condition_lines(conditions, reports), f"![{item.title}]({stem}.png)", table], words


def section_of_times(item, stem, saved, out, _):
    conditions, reports = saved["conditions"], saved["reports"]
    phase = conditions["phase"]
    rows = [
        row for number, report in enumerate(reports) for row in rows_of(report, item, number, phase)
    ]
    figures = Figures(rows)
    first, *others = item.measures(rows, phase)
    ran = [row for row in rows if row.ran]
    measures = [first] + [m for m in others if any(m.value(row) is not None for row in ran)]
    scaled = f" ({conditions['scale']:g} of the points)" if conditions["scale"] != 1 else ""
    is_stand_in = any(what.startswith("stand-in") for what in conditions["data"].values())
    title = f"{', '.join(item.names)}: {item.title}{', stand-ins' * is_stand_in}{scaled}"
    if figures.by_place:
        plots.draw_item(item, figures, measures, title, footer_of(conditions, reports), out / stem)
    page.write_csv(out / f"{stem}.csv", rows)
    table, words = page.verdicts(item.statements, figures)
    parts = [
        condition_lines(conditions, reports),
        f"![{item.title}]({stem}.png)",
        table,
        page.tables(item, figures, measures),
        page.noise(figures),
        page.reasons(figures),
        commands(reports),
    ]
    return [part for part in parts if part], words


def write_page(out, store):
    """From every NAME.json of the folder. The store makes the points of pictures again."""
    sections, summary = [], []
    order = [item.name for item in all_items()]
    found = [(path, json.loads(path.read_text())) for path in sorted(out.glob("*.json"))]
    found.sort(key=lambda entry: order.index(entry[1]["conditions"]["item"]))
    for path, saved in found:
        conditions, stem = saved["conditions"], path.stem
        items = all_items(conditions["distribution"], conditions["sets"])
        item = next(item for item in items if item.name == conditions["item"])
        make = section_of_picture if isinstance(item, Picture) else section_of_times
        parts, words = make(item, stem, saved, out, store)
        heading = f"{', '.join(item.names)}: {item.title}"
        (out / f"{stem}.md").write_text(f"# {heading}\n\n" + "\n\n".join(parts) + "\n")
        sections.append(f"## {heading}\n\n" + "\n\n".join(parts))
        counts = [str(words.count(word)) for word in page.VERDICTS.values()]
        summary.append([f"[{', '.join(item.names)}]({stem}.md)", *counts])
    if not sections:
        raise Failure(f"{out} has no results yet")
    head = (
        "# The papers' statements beside what was measured\n\n"
        "Each section is one run: its device, date and scale stand in it. Times are medians; a\n"
        "verdict is about that run alone. Stand-ins take the place of sets that cannot be handed on.\n\n"
        + page.markdown(["item", *page.VERDICTS.values()], summary)
    )
    (out / "README.md").write_text("\n\n".join([head, *sections]) + "\n")
    print(f"\n{out / 'README.md'}")
