#!/usr/bin/env python3
"""The top-k timings of docs/results: sort, bitonic and select on arrays of float32.

usage: gpu_top_k.py KCP OUT_DIR [DEVICE] [CASE-PREFIX...]

Makes the arrays with `kcp gen-values`, times every configuration in a process of its own (one warm-up, then five
searches with the values on the device; the case "file" reads and uploads them each time), checks that equal queries
have one checksum, prints a table and writes OUT_DIR/top_k.json and top_k.md. KCP_SCALE=0.001 shrinks the arrays for a
quick trial."""
import os
import subprocess
import sys
import tempfile

from kcp_reports import run_report, write_results

KCP, OUT = sys.argv[1], sys.argv[2]
DEVICE = sys.argv[3] if len(sys.argv) > 3 else "cuda"
PREFIXES = tuple(sys.argv[4:])
SCALE = float(os.environ.get("KCP_SCALE", "1"))

RUNS = 5
VALUE_BYTES = 4
PAPER_KS = (32, 64, 128, 256, 512, 1024)
RESIDENT = " --resident"


def queries(ks, methods=("bitonic", "select")):
    """sort takes the same time for every k: it is timed once."""
    yield "sort", ks[0]
    for k in ks:
        for method in methods:
            yield method, k


def cases():
    """(case, distribution, values, [(method, k)], further options, runs)."""
    for exponent in (20, 22, 24, 26, 28, 30):
        options = RESIDENT + (" --verify" if exponent <= 26 else "")
        yield f"k uniform 2^{exponent}", "uniform", 1 << exponent, list(queries(PAPER_KS)), options, RUNS
    yield "file uniform 2^30", "uniform", 1 << 30, [("select", 64)], "", RUNS
    for distribution in ("sorted", "reversed", "equal", "duplicates", "adversarial"):
        for exponent in (24, 28):
            yield (f"data {distribution} 2^{exponent}", distribution, 1 << exponent,
                   list(queries((64, 1024))), RESIDENT, RUNS)
        yield f"data {distribution} 2^30", distribution, 1 << 30, [("select", 1024)], RESIDENT, RUNS
    yield "large k uniform 2^28", "uniform", 1 << 28, list(queries((4096, 65536, 1 << 20))), RESIDENT, RUNS
    yield ("cross-over of k uniform 2^22", "uniform", 1 << 22,
           [(method, 1 << e) for e in (12, 16, 18, 19, 20, 21, 22) for method in ("sort", "select")], RESIDENT, RUNS)
    yield ("beyond 31 bits uniform 2^31 + 7", "uniform", (1 << 31) + 7,
           [("sort", 64), ("bitonic", 64), ("select", 64), ("select", 5000)], " --verify", 1)


class Arrays:
    """The array of one case at a time: together they would fill the disk."""

    def __init__(self, folder):
        self.folder = folder
        self.name = None

    def path(self, distribution, count):
        name = f"{self.folder}/{distribution}-{count}.f32"
        if name != self.name:
            if self.name:
                os.remove(self.name)
            self.name = None
            subprocess.run([KCP, "gen-values", distribution, str(count), name, "--quiet"], check=True)
            self.name = name
        return name


class Table:
    """Rows as text for a terminal and as lines of a Markdown page."""

    def __init__(self):
        self.page = []

    def begin(self, case, count):
        title = f"{case} ({count:,} values)"
        print(f"\n{title}\n  {'algorithm':8} {'k':>8} {'median':>11} {'mean':>11} {'spread':>7} {'vs sort':>8} "
              f"{'GB/s':>6} {'read':>10} {'h2d':>10} {'total':>10} {'/ floor':>7}  answer", flush=True)
        self.page.append(f"\n### {title}\n\n| algorithm | k | kernel, median | mean | spread | vs sort | GB/s | total | total / floor | answer |\n"
                         "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |")

    def problem(self, method, k, problem):
        print(f"  {method:8} {k:8} {problem}", flush=True)
        self.page.append(f"| {method} | {k} | {problem} | | | | | | | |")

    def row(self, method, k, result, count, sort_s, answer):
        statistics = result["statistics"]
        kernel = statistics["kernel"]
        median, mean = kernel["median_s"], kernel["mean_s"]
        read, h2d, total = (statistics[phase]["median_s"] for phase in ("read", "h2d", "total"))
        spread = (kernel["max_s"] - kernel["min_s"]) / median if median else 0
        rate = count * VALUE_BYTES / median / 1e9 if median else 0
        speed_up = f"{sort_s / median:.2f}" if sort_s and median else "-"
        floor = max(read, h2d)  # reading and uploading overlap
        over_floor = f"{total / floor:.2f}" if result["work"]["read_bytes"] and floor else "-"
        ms = lambda seconds: f"{seconds * 1e3:.4f} ms"
        print(f"  {method:8} {k:8} {ms(median):>11} {ms(mean):>11} {spread:6.1%} {speed_up:>8} {rate:6.0f} "
              f"{read * 1e3:7.1f} ms {h2d * 1e3:7.1f} ms {total * 1e3:7.1f} ms {over_floor:>7}  {answer}", flush=True)
        self.page.append(f"| {method} | {k} | {ms(median)} | {ms(mean)} | {spread:.1%} | {speed_up} | {rate:.0f} "
                         f"| {total * 1e3:.1f} ms | {over_floor} | {answer} |")


def main():
    failed = False
    everything = []
    table = Table()
    with tempfile.TemporaryDirectory() as folder:
        arrays = Arrays(folder)
        for case, distribution, count, configurations, options, runs in cases():
            if PREFIXES and not case.startswith(PREFIXES):
                continue
            count = max(1, int(count * SCALE))
            table.begin(case, count)
            sort_s = None
            checksums = {}
            for method, k in configurations:
                report, problem = run_report(KCP, DEVICE, f"--algo {method} --k {k}{options}",
                                             [arrays.path(distribution, count)], runs, folder)
                if problem:
                    table.problem(method, k, problem)
                    failed = True
                    continue
                everything.append({"case": case, "configuration": f"{method} k {k}", "report": report})
                result = report["results"][0]
                if method == "sort":
                    sort_s = result["statistics"]["kernel"]["median_s"]
                checksum = result["answer"]["checksum"]
                same = checksums.setdefault(k, checksum) == checksum
                failed = failed or not same
                answer = "same" if same else "DIFFERS"
                table.row(method, k, result, count, sort_s,
                          answer + (", verified" if result["answer"]["verified"] else ""))
    write_results(OUT, "top_k", everything, table.page)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
