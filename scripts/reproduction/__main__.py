"""Runs the tables and figures of the papers through kcp bench.

  reproduce list              what there is
  reproduce NAME...           the named tables and figures (or: all)
  reproduce page              the page again, from what OUT has

Each writes OUT/NAME.json (all samples), .csv, .md, .png and .svg; OUT/README.md puts the paper's
statements beside the figures of the runs in OUT. An interrupted run goes on where it was."""

import argparse
import json
import shutil
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path

from .data import Store
from .failure import Failure
from .items import REAL_SETS, Picture, all_items, x_of
from .measure import bench, rows_of
from .statements import Figures

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "build" / "reproduce" / "data"
BUILDS = ["build/release/kcp", "build/quickstart/kcp", "build/kcp"]
PHASES = ["total", "read", "h2d", "index", "kernel", "d2h", "merge"]


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(
        prog="reproduce", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "names", nargs="+", metavar="NAME", help="list, page, all, or names of the list"
    )
    parser.add_argument("--scale", type=float, default=1, help="share of the paper's points (1)")
    parser.add_argument("--device", default="auto", help="of kcp (auto)")
    parser.add_argument(
        "--kernel",
        choices=["plain", "tiled"],
        default="plain",
        help="plain: the paper's pseudocode, D2 in the order of the file; tiled: kcp's own (plain)",
    )
    parser.add_argument(
        "--distribution",
        choices=["bit", "gaussian", "uniform"],
        default="bit",
        help="of the synthetic sets (bit, as in the paper's figures)",
    )
    parser.add_argument(
        "--runs", type=int, help="timed runs of each configuration (10; 3 of large ones)"
    )
    parser.add_argument("--warmup", type=int, default=1, help="runs before those (1)")
    parser.add_argument(
        "--phase", choices=PHASES, default="total", help="time that is shown (total)"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "reproduce" / "results")
    parser.add_argument(
        "--measure-only",
        action="store_true",
        help="leave plots and page to `reproduce page`, perhaps on another machine",
    )
    parser.add_argument("--kcp", help="the program (that of build/, else of the path)")
    parser.add_argument(
        "--data",
        action="append",
        default=[],
        metavar="SET=FILE",
        help=f"a file for a real set of the paper: {', '.join(data.name for data in REAL_SETS)}",
    )
    options = parser.parse_args(arguments)
    options.out = options.out.resolve()
    if not 0 < options.scale <= 1:
        parser.error("--scale is above 0 and at most 1")
    if options.runs is not None and options.runs < 1 or options.warmup < 0:
        parser.error("--runs is at least 1 and --warmup at least 0")
    return options


def find_kcp(wanted):
    if wanted is None:
        built = [ROOT / path for path in BUILDS if (ROOT / path).exists()]
        wanted = built[0] if built else shutil.which("kcp")
    if wanted is None or not Path(wanted).exists():
        raise Failure("no kcp: build it (scripts/quickstart.sh), or name it with --kcp")
    return str(Path(wanted).resolve())


def given_sets(entries):
    given = {}
    known = [data.name for data in REAL_SETS]
    for entry in entries:
        name, _, file = entry.partition("=")
        if name not in known or not file:
            raise Failure(f"--data {entry}: not SET=FILE with SET one of {', '.join(known)}")
        given[name] = file
    return given


def print_list(items):
    width = max(len(", ".join(item.names)) for item in items)
    for item in items:
        print(f"{', '.join(item.names):{width}}  {item.paper}: {item.title}")


def chosen(names, items):
    if names == ["all"]:
        return items
    by_name = {name: item for item in items for name in item.names}
    unknown = [name for name in names if name not in by_name]
    if unknown:
        raise Failure(f"no table or figure is called {unknown[0]}: see reproduce list")
    return list({by_name[name].name: by_name[name] for name in names}.values())


def stem_of(item, options):
    plain = options.distribution == "bit" or item.name in ("distributions", "figure-11", "top-k")
    is_real = item.name in ("figure-6", "figure-7", "figure-8", "figure-10")
    return item.name if plain or is_real else f"{item.name}-{options.distribution}"


def measure(item, options, kcp, store, stem):
    """Runs what the item needs and writes OUT/STEM.json."""
    conditions = {
        "item": item.name,
        "scale": store.scale,
        "kernel": options.kernel if item.name != "top-k" else None,
        "distribution": options.distribution,
        "phase": options.phase,
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    raw = options.out / "raw" / f"{stem}-scale-{options.scale:g}-{options.kernel}"
    reports = []
    if isinstance(item, Picture):
        reports = [{"points": store.path(data).name} for _, data in item.sets]
        version = subprocess.run([kcp, "version"], capture_output=True, text=True, check=True)
        conditions["tool"] = version.stdout.splitlines()[0]
    else:
        sweep = {
            **item.options,
            **({} if item.name == "top-k" else {"kernel": options.kernel}),
            **({"order-d2": "file"} if options.kernel == "plain" and item.name != "top-k" else {}),
            "device": options.device,
            "runs": options.runs or item.runs,
            "warmup": options.warmup,
        }
        for number, pair in enumerate(item.pairs):
            files = [store.path(data) for data in pair]
            reports.append(bench(kcp, sweep, files, raw / f"{number}.json"))
    conditions["data"] = dict(store.used)
    write_json(options.out / f"{stem}.json", {"conditions": conditions, "reports": reports})


def write_json(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(value, indent=1) + "\n")
    partial.replace(path)


def machine(reports, conditions):
    """One line: device, CPU, program."""
    if "tool" in conditions:
        return conditions["tool"]
    context, tool = reports[0]["context"], reports[0]["tool"]
    cpu = f"{context['cpu']}, {context['cpu_threads']} threads"
    device = f"{context['gpu']} (driver {context['driver']})" if context["gpu"] else cpu
    return f"{device}; kcp {tool['version']} ({tool['revision']})"


def condition_lines(conditions, reports):
    lines = [f"- {conditions['date']}, {machine(reports, conditions)}"]
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
    lines = ["    " + " ".join(report["context"]["argv"]) for report in reports]
    return "Commands:\n\n" + "\n".join(dict.fromkeys(lines))


def section_of_points(item, stem, conditions, reports, out, kcp):
    from . import page, plots

    store = Store(find_kcp(kcp), DATA, 1, {})
    points = {name: plots.read_points(store.path(data)) for name, data in item.sets}
    footer = f"{machine(reports, conditions)}, {conditions['date']}, scale {conditions['scale']:g}"
    sets = [(name, *points[name]) for name, _ in item.sets]
    plots.draw_points(sets, f"{item.name}: {item.title}", footer, out / stem)
    table, words = page.verdicts(item.statements, points)
    return [condition_lines(conditions, reports), f"![{item.title}]({stem}.png)", table], words


def section_of_times(item, stem, conditions, reports, out, _):
    from . import page, plots

    rows = [
        row
        for number, report in enumerate(reports)
        for row in rows_of(report, x_of(item, number), conditions["phase"])
    ]
    figures = Figures(rows)
    footer = f"{machine(reports, conditions)}, {conditions['date']}, scale {conditions['scale']:g}"
    scaled = f" ({conditions['scale']:g} of the points)" if conditions["scale"] != 1 else ""
    is_stand_in = any(what.startswith("stand-in") for what in conditions["data"].values())
    title = f"{', '.join(item.names)}: {item.title}{', stand-ins' * is_stand_in}{scaled}"
    if figures.by_place:
        plots.draw_item(item, figures, title, footer, conditions["phase"], out / stem)
    page.write_csv(out / f"{stem}.csv", rows)
    table, words = page.verdicts(item.statements, figures)
    parts = [
        condition_lines(conditions, reports),
        f"![{item.title}]({stem}.png)",
        table,
        page.tables(item, figures, conditions["phase"]),
        page.noise(figures),
        page.reasons(figures),
        commands(reports),
    ]
    return [part for part in parts if part], words


def write_page(out, kcp):
    """From every NAME.json of the folder. `kcp` makes the points of pictures."""
    from . import page

    sections, summary = [], []
    order = [item.name for item in all_items("bit")]
    found = [(path, json.loads(path.read_text())) for path in sorted(out.glob("*.json"))]
    found.sort(key=lambda entry: order.index(entry[1]["conditions"]["item"]))
    for path, saved in found:
        conditions, reports, stem = saved["conditions"], saved["reports"], path.stem
        items = {item.name: item for item in all_items(conditions["distribution"])}
        item = items[conditions["item"]]
        make = section_of_points if isinstance(item, Picture) else section_of_times
        parts, words = make(item, stem, conditions, reports, out, kcp)
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


def main():
    options = parse_arguments(sys.argv[1:])
    items = all_items(options.distribution)
    if options.names == ["list"]:
        print_list(items)
        return 0
    if options.names == ["page"]:
        write_page(options.out, options.kcp)
        return 0
    wanted = chosen(options.names, items)
    kcp, given = find_kcp(options.kcp), given_sets(options.data)
    failed = 0
    for item in wanted:
        print(f"\n== {', '.join(item.names)}: {item.title}", flush=True)
        scale = 1 if isinstance(item, Picture) else options.scale
        store = Store(kcp, DATA, scale, given)
        try:
            measure(item, options, kcp, store, stem_of(item, options))
        except Failure as failure:
            print(f"reproduce: {item.name}: {failure}", file=sys.stderr)
            failed += 1
    if not options.measure_only:
        write_page(options.out, options.kcp)
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Failure, OSError) as failure:
        print(f"reproduce: {failure}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("reproduce: stopped; the same command goes on from here", file=sys.stderr)
        sys.exit(1)
