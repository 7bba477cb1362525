"""Runs the tables and figures of the papers through kcp bench.

  reproduce list              what there is
  reproduce NAME...           the named tables and figures, or those of a paper (k-CP, RT-HiSS,
                              top-k, influence), or: all
  reproduce page              the page again, from what OUT has

Each writes OUT/NAME.json (all samples), .csv, .md, .png and .svg; OUT/README.md puts the paper's
statements beside the figures of the runs in OUT. An interrupted run goes on where it was."""

import argparse
import shutil
import sys
import time
from pathlib import Path

from . import k_cp
from .data import REAL_STAND_INS, Store
from .failure import Failure
from .item import Picture
from .items import REAL_SETS, all_items
from .measure import Clock
from .rt_sets import SETS, USUAL
from .run import measure

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
        "--run-time",
        type=float,
        metavar="S",
        help="no further run of a configuration once its runs took S seconds",
    )
    parser.add_argument(
        "--limit", type=float, metavar="S", help="stop a configuration that takes over S seconds"
    )
    parser.add_argument(
        "--time-limit", type=float, metavar="S", help="of all together; the rest is not measured"
    )
    parser.add_argument(
        "--sets",
        default=",".join(USUAL),
        help=f"of RT-HiSS's {', '.join(data.name for data in SETS)} ({','.join(USUAL)})",
    )
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
    parser.add_argument(
        "--stand-ins",
        choices=["generated", "real"],
        default="generated",
        help="for the k-CP paper's real sets: kcp gen, or what scripts/datasets makes (generated)",
    )
    options = parser.parse_args(arguments)
    options.out = options.out.resolve()
    options.sets = [name for name in options.sets.split(",") if name]
    unknown = [name for name in options.sets if name not in [data.name for data in SETS]]
    if unknown or not options.sets:
        parser.error(f"--sets: {unknown[0] if unknown else 'nothing'} is no set of RT-HiSS")
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


def real_stand_ins():
    """The files of scripts/datasets for the k-CP paper's sets."""
    found = {data.name: REAL_STAND_INS / f"{data.name}.bin" for data in k_cp.REAL_SETS}
    missing = [name for name, path in found.items() if not path.exists()]
    if missing:
        raise Failure(f"--stand-ins real: first scripts/datasets/datasets.py {' '.join(missing)}")
    return found


def print_list(items):
    width = max(len(", ".join(item.names)) for item in items)
    for item in items:
        print(f"{', '.join(item.names):{width}}  {item.paper}: {item.title}")


def chosen(names, items):
    if names == ["all"]:
        return items
    found = {}
    for name in names:
        of_name = [item for item in items if name in item.names or name == item.paper]
        if not of_name:
            raise Failure(f"no table or figure is called {name}: see reproduce list")
        found |= {item.name: item for item in of_name}
    return list(found.values())


def make_page(options):
    from .sections import write_page  # here, since measuring alone does without matplotlib

    write_page(options.out, Store(options.kcp, DATA, 1, {}))


def measure_all(wanted, options, given):
    """How many items failed: others go on."""
    clock = Clock(options.limit, options.time_limit)
    failed = 0
    for item in wanted:
        print(f"\n== {', '.join(item.names)}: {item.title}", flush=True)
        scale = 1 if isinstance(item, Picture) else options.scale
        began = time.monotonic()
        try:
            measure(item, options, options.kcp, Store(options.kcp, DATA, scale, given), clock)
            print(f"== {item.name} took {time.monotonic() - began:.1f} s", flush=True)
        except (Failure, OSError) as failure:
            print(f"reproduce: {item.name}: {failure}", file=sys.stderr)
            failed += 1
    return failed


def main():
    options = parse_arguments(sys.argv[1:])
    items = all_items(options.distribution, options.sets)
    if options.names == ["list"]:
        print_list(items)
        return 0
    wanted = [] if options.names == ["page"] else chosen(options.names, items)
    options.kcp = find_kcp(options.kcp)
    real = real_stand_ins() if options.stand_ins == "real" else {}
    failed = measure_all(wanted, options, {**real, **given_sets(options.data)})
    if not options.measure_only:
        make_page(options)
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
