"""Measures an item: what it needs is made and run, and OUT/NAME.json written."""

import json
from datetime import datetime, timezone

from .data import Synthetic, is_scaled
from .failure import Failure
from .item import Item, Picture
from .measure import collect, configurations, find_eps, head_of, run_sweep, write_json


def stem_of(item, distribution):
    """Items whose data depend on --distribution have its name in theirs, unless it is the usual."""
    varies = isinstance(item, Item) and any(
        isinstance(data, Synthetic) for place in item.places for data in place.files
    )
    usual = distribution == "bit" or item.name == "distributions" or not varies
    return item.name if usual else f"{item.name}-{distribution}"


def takes_kernel(item):
    return isinstance(item, Item) and item.paper == "k-CP"


def common_options(item, options):
    """Those of every configuration of the item."""
    common = {}
    if takes_kernel(item):
        common["kernel"] = options.kernel
        if options.kernel == "plain":
            common["order-d2"] = "file"
    common["device"] = options.device
    common["runs"] = options.runs or item.runs
    common["warmup"] = options.warmup
    if options.run_time:
        common["run-time"] = options.run_time
    return common


def wanted_eps(kcp, store, files, place, raw, device):
    """eps of a wanted selectivity, found once; neighbours get as few as points with the scale."""
    path = raw / "eps.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    neighbours = place.options["selectivity"] * store.scale
    key = " ".join([*(file.name for file in files), f"{neighbours:g}"])
    if key not in known:
        known[key] = find_eps(kcp, files, neighbours, device)
        write_json(path, known)
    return known[key]


def place_options(kcp, store, files, place, raw, device):
    """Those of the place; data sets among them become names of files."""
    found = {}
    for name, value in place.options.items():
        if name == "selectivity":
            found["eps"] = wanted_eps(kcp, store, files, place, raw, device)
        else:
            found[name] = store.path(value).name if hasattr(value, "make") else value
    return found


def is_too_large(sweep, points):
    """By the pairs of a self-join, or of two files."""
    return points[0] * points[-1] > sweep.get("most-pairs", float("inf"))


def left_out(sweep, asked):
    reason = f"left out: more than {sweep['most-pairs']:g} pairs"
    return [
        {"options": one, "status": "skipped", "reason": reason} for one in configurations(asked)
    ]


def measure_place(item, place, options, kcp, store, clock):
    """The report of a place. Runs are kept by the files that they read: items share them."""
    files = [store.path(data) for data in place.files]
    points = [store.count(data) for data in place.files]
    raw = options.out / "raw" / f"scale-{options.scale:g}"
    report = raw / f"{'-'.join(file.stem for file in files)}.json"
    own = place_options(kcp, store, files, place, raw, options.device)
    sweeps, missing = [], []
    for sweep in item.sweeps:
        asked = {name: value for name, value in sweep.items() if name != "most-pairs"}
        asked = {n: v(store.scale) if callable(v) else v for n, v in asked.items()}
        asked = {**asked, **own, **common_options(item, options), **asked}
        sweeps.append(asked)
        if is_too_large(sweep, points):
            left = left_out(sweep, asked)
        else:
            left = run_sweep(kcp, asked, files, report, clock)
        missing += [{**result, "datasets": [{"n": n} for n in points]} for result in left]
    return collect(report, sweeps, files, missing)


def takes_scale(item):
    return isinstance(item, Item) and any(
        is_scaled(data) for place in item.places for data in place.files
    )


def measure(item, options, kcp, store, clock):
    conditions = {
        "item": item.name,
        "scale": store.scale if takes_scale(item) else 1,
        "kernel": options.kernel if takes_kernel(item) else None,
        "distribution": options.distribution,
        "sets": options.sets,
        "phase": getattr(item, "phase", None) or options.phase,
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    reports = []
    if isinstance(item, Picture):
        conditions["measured"] = item.make(kcp, store, options.device)
        reports.append(head_of(kcp, store, options.device))
    else:
        for place in item.places:
            reports.append(measure_place(item, place, options, kcp, store, clock))
        results = [result for report in reports for result in report["results"]]
        if not any(result.get("samples") for result in results):
            raise Failure(f"no configuration ran; the first: {results[0]['reason']}")
    conditions["data"] = dict(store.used)
    stem = stem_of(item, options.distribution)
    write_json(options.out / f"{stem}.json", {"conditions": conditions, "reports": reports})
