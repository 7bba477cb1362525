"""Runs kcp bench and reads its report."""

import json
import subprocess
from pathlib import Path
from typing import NamedTuple

from .failure import Failure


class Row(NamedTuple):
    """One configuration on one pair of files."""

    x: float  # what the figure varies: a number of points, or k
    algorithm: str  # as asked for: dspp+pea
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

    @property
    def variant(self):
        return f"{self.algorithm} {self.buffer}".strip()

    @property
    def ran(self):
        return self.samples > 0

    @property
    def memory_bytes(self):
        return self.device_bytes or self.host_bytes


def bench(kcp, options, files, report):
    """Runs the product of the options' values; what the report has already is not run again.
    Rows go to the terminal as they come. Returns the report, without the folders of this machine.
    The files are those of one folder."""
    report.parent.mkdir(parents=True, exist_ok=True)
    command = [kcp, "bench"]
    for name, value in options.items():
        command += [
            f"--{name}",
            ",".join(map(str, value)) if isinstance(value, list) else str(value),
        ]
    if report.exists():
        command += ["--resume", str(report)]
    else:
        command += ["--json", str(report)]
    folder, files = files[0].parent, [_name_in(files[0].parent, file) for file in files]
    command += files
    print("\n$", " ".join(_without_folders(command)), flush=True)
    done = subprocess.run(command, cwd=folder, check=False).returncode
    if done == 3:
        raise Failure(f"{report}: a wrong answer; nothing is made of these figures")
    if done == 2 or not report.exists():
        raise Failure(f"kcp bench ended with exit code {done}")
    if done != 0:
        print(f"kcp bench ended with exit code {done}: see the rows above", flush=True)
    return _only(json.loads(report.read_text()), options, files)


def _name_in(folder, file):
    return file.name if file.parent == folder else str(file)


def _without_folders(command):
    return [Path(word).name for word in command]


def _only(report, options, files):
    """Without the results of earlier runs with other options."""
    fixed = {name: str(value) for name, value in options.items() if not isinstance(value, list)}
    context = report["context"]
    context["argv"] = _without_folders(context["argv"])
    context.pop("host", None)
    report["results"] = [
        result
        for result in report["results"]
        if fixed.items() <= result["options"].items() and result["argv"][-len(files) :] == files
    ]
    return report


def rows_of(report, x_of, phase):
    """The rows of a report. `x_of(options, counts)` says where they stand in the figure."""
    return [_row(result, x_of, phase) for result in report["results"]]


def _row(result, x_of, phase):
    options = result["options"]
    counts = tuple(dataset["n"] for dataset in result.get("datasets", []))
    statistics = result.get("statistics", {})
    total, kernel = statistics.get(phase, {}), statistics.get("kernel", {})
    return Row(
        x=x_of(options, counts),
        algorithm=options.get("algo", "auto"),
        buffer=options.get("buffer", ""),
        k=int(options.get("k", 10)),
        counts=counts,
        status=result["status"],
        reason=result["reason"] or "",
        samples=len(result.get("samples", [])),
        median_s=total.get("median_s", 0),
        minimum_s=total.get("min_s", 0),
        maximum_s=total.get("max_s", 0),
        kernel_s=kernel.get("median_s", 0),
        evaluations=result.get("work", {}).get("distance_evaluations") or 0,
        host_bytes=result.get("peak_host_bytes") or 0,
        device_bytes=result.get("peak_device_bytes") or 0,
        checksum=result.get("answer", {}).get("checksum", ""),
        checked=result.get("checked") or "",
    )
