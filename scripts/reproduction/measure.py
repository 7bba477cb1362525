"""Runs kcp and reads its reports: a sweep through kcp bench, a query whose answer is written through
kcp itself."""

import itertools
import json
import signal
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from .data import Values
from .failure import Failure

# Options that no right answer depends on: what is left of a configuration is its question.
TUNING = set(
    "algo buffer kernel order-d2 device threads memory runs warmup run-time refine index kd-height "
    "result bound reorder sort-work fixed-work method out".split()
)
GRACE_S = 20  # for an interrupted kcp to keep what it has


class Row(NamedTuple):
    """One configuration on one pair of files."""

    x: float  # what the figure varies: a number of points, k, or the number of a place
    place: str  # its name, "" when it has none
    algorithm: str  # as the item labels it: dspp+pea
    buffer: str  # "" when there is none
    k: int
    counts: tuple  # of the files
    status: str
    reason: str
    samples: int
    median_s: float
    minimum_s: float
    maximum_s: float
    kernel_s: float
    evaluations: float
    host_bytes: float
    device_bytes: float
    checksum: str
    checked: str
    facts: dict  # of a range join: pairs, selectivity, eps, batches, phases, ...
    stopped_s: float  # the limit that stopped it; 0 when none did

    @property
    def variant(self):
        return f"{self.algorithm} {self.buffer}".strip()

    @property
    def ran(self):
        return self.samples > 0

    @property
    def memory_bytes(self):
        return self.device_bytes or self.host_bytes


class Clock:
    """How long configurations may take: each, and all together."""

    def __init__(self, each_s, all_s):
        self.each_s, self.end = each_s, time.monotonic() + all_s if all_s else None

    def left(self, configurations):
        """Seconds for so many; None without a limit, 0 when the time is up."""
        limits = [self.each_s * configurations] if self.each_s else []
        if self.end:
            limits.append(max(0, self.end - time.monotonic()))
        return min(limits) if limits else None


def listed(value):
    return [str(one) for one in value] if isinstance(value, list) else [str(value)]


def configurations(sweep):
    """The product of a sweep's lists, as dictionaries."""
    for values in itertools.product(*map(listed, sweep.values())):
        yield dict(zip(sweep, values))


def arguments_of(options):
    return [
        word for name, value in options.items() for word in (f"--{name}", ",".join(listed(value)))
    ]


def run_sweep(kcp, sweep, files, report, clock):
    """Runs the product of the options' values; what `report` has already is not run again. Returns
    what did not get to its end: results without samples. The files are those of one folder."""
    report.parent.mkdir(parents=True, exist_ok=True)
    words = ["--resume" if report.exists() else "--json", str(report)]
    command = [kcp, "bench", *arguments_of(sweep), *words, *names_of(files)]
    print("\n$", " ".join(without_folders(command)), flush=True)
    wanted = list(configurations(sweep))
    limit = clock.left(len(wanted))
    if limit == 0:
        return _stopped(wanted, report, sweep, files, 0)
    with tempfile.TemporaryFile("w+", encoding="utf-8") as errors:
        done = _run(command, files[0].parent, limit, stderr=errors)
        errors.seek(0)
        told = errors.read().strip()
    if told:
        print(told, flush=True)
    if done == 3:
        raise Failure(f"{report}: a wrong answer; nothing is made of these figures")
    if done is None:
        return _stopped(wanted, report, sweep, files, limit)
    reason = told.splitlines()[-1] if told else f"exit code {done}"
    return _missing(wanted, report, sweep, files, {"status": "error", "reason": reason})


def _run(command, folder, limit, **pipes):
    """The exit code; None when the limit stopped it."""
    process = subprocess.Popen(command, cwd=folder, **pipes)
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        print(f"reproduce: stopped after {limit:.0f} s", flush=True)
    except KeyboardInterrupt:
        process.wait(GRACE_S)  # the terminal interrupted it too
        raise
    process.send_signal(signal.SIGINT)
    try:
        process.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    return None


def _stopped(wanted, report, sweep, files, limit):
    reason = f"stopped after {limit:.0f} s" if limit else "no time was left"
    # Of several, one may have used up the time of the others.
    alone = limit if len(wanted) == 1 else 0
    state = {"status": "stopped", "reason": reason, "stopped_s": alone}
    return _missing(wanted, report, sweep, files, state)


def _missing(wanted, report, sweep, files, state):
    """Configurations that the report lacks, with what became of them."""
    had = [result["options"] for result in results_of(report, [sweep], files)]
    return [{"options": options, **state} for options in wanted if options not in had]


def ask(kcp, files, device, *words):
    """What one query prints, and its report."""
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.json"
        asked = [*map(str, words), "--device", device, "--quiet", *names_of(files)]
        done = subprocess.run(
            [kcp, "query", *asked, "--json", str(report)],
            cwd=files[0].parent,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise Failure(done.stderr.strip() or f"kcp ended with exit code {done.returncode}")
        return done.stdout, json.loads(report.read_text())


def find_eps(kcp, files, neighbours, device):
    """The eps that kcp finds by sampling for so many neighbours of a query."""
    words = ["--algo", "rt-hiss", "--selectivity", f"{neighbours:g}"]
    print("\n$ kcp query", *words, *names_of(files), flush=True)
    return repr(ask(kcp, files, device, *words)[1]["results"][0]["answer"]["eps"])


def head_of(kcp, store, device):
    """Tool, machine and device, by a query of nearly nothing."""
    report = ask(kcp, [store.path(Values(1, 1))], device, "--k", 1)[1]
    store.used.clear()
    context = {name: value for name, value in report["context"].items() if name != "argv"}
    context.pop("host")
    return {"tool": report["tool"], "context": context, "results": []}


def write_json(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(value, indent=1) + "\n")
    partial.replace(path)


def names_of(files):
    """As they are called from the folder of the first."""
    folder = files[0].parent
    return [file.name if file.parent == folder else str(file) for file in files]


def without_folders(command):
    return [Path(word).name for word in command]


def results_of(report, sweeps, files):
    """Those of the report that belong to the sweeps: others are of other runs or items."""
    if not report.exists():
        return []
    return [
        result
        for result in json.loads(report.read_text())["results"]
        if result["options"] in in_order(sweeps)
        and result["argv"][-len(files) :] == names_of(files)
    ]


def in_order(sweeps):
    return [options for sweep in sweeps for options in configurations(sweep)]


def collect(report, sweeps, files, missing):
    """The report of one place: without the folders of this machine, answers compared."""
    whole = json.loads(report.read_text()) if report.exists() else {}
    order = in_order(sweeps)
    results = results_of(report, sweeps, files) + missing
    results.sort(key=lambda result: order.index(result["options"]))
    check_answers(report, results)
    if whole.get("context"):
        whole["context"].pop("host", None)
        lines = [["kcp", "bench", *arguments_of(sweep)] for sweep in sweeps]
        whole["context"]["argv"] = [line + names_of(files) for line in lines]
    return {**whole, "results": results}


def check_answers(report, results):
    """Equal questions have equal answers: "checked" becomes first or yes."""
    firsts = {}
    for result in results:
        if result["status"] != "ok":
            continue
        options = result["options"]
        kind = options.get("algo", "") if options.get("algo", "").startswith("influence") else ""
        question = (kind, *sorted((n, v) for n, v in options.items() if n not in TUNING))
        checksum = result["answer"]["checksum"]
        result["checked"] = "yes" if question in firsts else "first"
        if firsts.setdefault(question, checksum) != checksum:
            raise Failure(f"{report}: a wrong answer; nothing is made of these figures")


def rows_of(report, item, number, phase):
    """The rows of a place's report."""
    return [_row(result, item, number, phase) for result in report["results"]]


def _seconds(result, phase):
    """(median, least, most); "response" leaves reading out, as RT-HiSS does."""
    if phase == "response":
        times = [sample["total_s"] - sample["read_s"] for sample in result.get("samples", [])]
        return (statistics.median(times), min(times), max(times)) if times else (0, 0, 0)
    found = result.get("statistics", {}).get(phase, {})
    return tuple(found.get(f"{name}_s", 0) for name in ("median", "min", "max"))


def _facts(result):
    work, answer = result.get("work", {}), result.get("answer", {})
    facts = {name: answer[name] for name in ("pairs", "selectivity", "eps") if name in answer}
    facts.update(result.get("range_join", {}))
    facts["possible"] = work.get("possible_evaluations")
    facts["downloaded_bytes"] = work.get("d2h_bytes")
    facts["read_s"] = result.get("statistics", {}).get("read", {}).get("median_s")
    return facts


def _row(result, item, number, phase):
    options, place = result["options"], item.places[number]
    counts = tuple(dataset["n"] for dataset in result.get("datasets", []))
    algorithm, buffer = item.label(options, place)
    median, least, most = _seconds(result, phase)
    return Row(
        x=item.x_of(options, counts, number),
        place=place.name,
        algorithm=algorithm,
        buffer=buffer,
        k=int(options.get("k", 10)),
        counts=counts,
        status=result["status"],
        reason=result.get("reason") or "",
        samples=len(result.get("samples", [])),
        median_s=median,
        minimum_s=least,
        maximum_s=most,
        kernel_s=result.get("statistics", {}).get("kernel", {}).get("median_s", 0),
        evaluations=result.get("work", {}).get("distance_evaluations") or 0,
        host_bytes=result.get("peak_host_bytes") or 0,
        device_bytes=result.get("peak_device_bytes") or 0,
        checksum=result.get("answer", {}).get("checksum", ""),
        checked=result.get("checked") or "",
        facts=_facts(result),
        stopped_s=result.get("stopped_s") or 0,
    )
