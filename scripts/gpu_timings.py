#!/usr/bin/env python3
"""The timings of docs/results: each case is a kcp query repeated in one process.

usage: gpu_timings.py KCP OUT_DIR [DEVICE] [CASE-PREFIX...]

Makes the data with `kcp gen`, runs every configuration of every case, checks that all answers of a
case have one checksum, prints a table and writes OUT_DIR/timings.json and timings.md. The case "huge" (35 GB of files and as much
memory for them) runs only when its prefix is given. KCP_SCALE=0.01 shrinks the data for a quick trial."""
import os
import subprocess
import sys
import tempfile

from kcp_reports import run_report, write_results

KCP, OUT = sys.argv[1], sys.argv[2]
DEVICE = sys.argv[3] if len(sys.argv) > 3 else "cuda"
PREFIXES = tuple(sys.argv[4:])
OWN_SIZE = ("main", "large", "index", "buffers", "overlap", "points", "threshold", "linear")  # fit on any disk
FIRST_RUN = 0  # one run, without a warm-up
SCALE = float(os.environ.get("KCP_SCALE", "1"))

M, K = 1000000, 1000
SETS = {  # name: distribution, points, options
    "u3-1m": ("uniform", M, "--dims 3 --seed 1"),
    "u3-100k": ("uniform", 100 * K, "--dims 3 --seed 2"),
    "b10-1m": ("bit", M, "--dims 3 --digits 10 --seed 3"),
    "b10-5m": ("bit", 5 * M, "--dims 3 --digits 10 --seed 4"),
    "b10-100k": ("bit", 100 * K, "--dims 3 --digits 10 --seed 5"),
    "b20-1m": ("bit", M, "--dims 3 --digits 20 --seed 6"),
    "b20-5m": ("bit", 5 * M, "--dims 3 --digits 20 --seed 7"),
    "b20-100k": ("bit", 100 * K, "--dims 3 --digits 20 --seed 8"),
    "u2-11m": ("uniform", 11500 * K, "--dims 2 --seed 9"),
    "u2-6m": ("uniform", 5800 * K, "--dims 2 --seed 10"),
}
SETS["e3-1m"] = ("bit", M, "--dims 3 --probability 0 --seed 15")
SETS["e3-1m-too"] = ("bit", M, "--dims 3 --probability 0 --seed 16")
SETS["u2-1g"] = ("uniform", 1000 * M, "--dims 2 --seed 1")
SETS["u2-100m"] = ("uniform", 100 * M, "--dims 2 --seed 2")
SETS["u2-100k"] = ("uniform", 100 * K, "--dims 2 --seed 14")
SETS["u2-115m"] = ("uniform", 114700 * K, "--dims 2 --seed 11")
SETS["g2-115m"] = ("gaussian", 114700 * K, "--dims 2 --seed 12")
SETS["g2-11m"] = ("gaussian", 11500 * K, "--dims 2 --seed 13")
for n in (2, 3, 4, 5):
    SETS[f"u3-{n}m"] = ("uniform", n * M, f"--dims 3 --seed {20 + n}")
    SETS[f"u3-{n}00k"] = ("uniform", n * 100 * K, f"--dims 3 --seed {30 + n}")


def cases():
    """(case, [(label, options)], D1, D2, runs)."""
    family = lambda k, buffer: [
        ("dbf plain", f"--algo dbf --kernel plain --k {k} --buffer {buffer}"),
        ("dbf", f"--algo dbf --k {k} --buffer {buffer}"),
        ("dspp plain, D2 in file order", f"--algo dspp --kernel plain --order-d2 file --k {k} --buffer {buffer}"),
        ("dspp plain, D2 by x", f"--algo dspp --kernel plain --k {k} --buffer {buffer}"),
        ("dspp, D2 in file order", f"--algo dspp --order-d2 file --k {k} --buffer {buffer}"),
        ("dspp", f"--algo dspp --k {k} --buffer {buffer}"),
        ("dspp+pea", f"--algo dspp+pea --k {k} --buffer {buffer}"),
    ]
    yield "main uniform 3-D 1M x 100K k 20 list", family(20, "list"), "u3-1m", "u3-100k", 10
    yield "main bit 10 digits 1M x 100K k 140 heap", family(140, "heap"), "b10-1m", "b10-100k", 5
    yield "main bit 10 digits 5M x 100K k 20 heap", family(20, "heap"), "b10-5m", "b10-100k", 3
    yield "main bit 20 digits 1M x 100K k 140 heap", family(140, "heap"), "b20-1m", "b20-100k", 3
    yield "main bit 20 digits 5M x 100K k 20 heap", family(20, "heap"), "b20-5m", "b20-100k", 3
    yield ("large uniform 2-D 11.5M x 5.8M k 140 heap",
           [("dspp+pea", "--algo dspp+pea --k 140 --buffer heap"),
            ("dspp+p", "--algo dspp+p --k 140 --buffer heap"),
            ("dspp+pea plain", "--algo dspp+pea --kernel plain --k 140 --buffer heap")],
           "u2-11m", "u2-6m", 3)
    yield ("index: x-sort of uniform 2-D 11.5M", [("dspp", "--algo dspp --k 1")], "u2-11m", "u2-100k", 5)
    for k in (20, 40, 60, 80, 100, 120, 140):
        yield (f"buffers uniform 3-D 1M x 100K k {k}",
               [(f"{a} {b}", f"--algo {a} --buffer {b} --k {k}")
                for a in ("dbf", "dspp+pea") for b in ("list", "heap")], "u3-1m", "u3-100k", 10)
    yield ("overlap uniform 3-D 1M x 500K k 20, D2 in partitions of 50K",
           [(a, f"--algo {a} --k 20 --d2-partition 50000") for a in ("dspp+", "dspp+p", "dspp+pea")],
           "u3-1m", "u3-500k", 10)
    yield ("points per thread uniform 3-D 1M x 500K k 20",
           [(f"l = {l}", f"--algo dspp+pea --k 20 --points-per-thread {l}") for l in (1, 2, 4, 8, 16, 32)],
           "u3-1m", "u3-500k", 10)
    one = lambda k: [("global-threshold", f"--algo global-threshold --floor --k {k}")]
    against = lambda k: one(k) + [("dspp+pea", f"--algo dspp+pea --k {k}")]
    yield "threshold uniform 3-D 1M x 100K k 20", against(20), "u3-1m", "u3-100k", 10
    yield "threshold bit 10 digits 5M x 100K k 140", against(140), "b10-5m", "b10-100k", 5
    yield "threshold bit 20 digits 5M x 100K k 140", against(140), "b20-5m", "b20-100k", 5
    yield "threshold uniform 2-D 11.5M x 5.8M k 140", against(140), "u2-11m", "u2-6m", 3
    yield "threshold uniform 2-D 114.7M x 11.5M k 20", one(20), "u2-115m", "u2-11m", 3
    yield "threshold uniform 2-D 114.7M x 11.5M k 140", one(140), "u2-115m", "u2-11m", 3
    yield "threshold uniform 2-D 114.7M x 11.5M k 1000000", one(1000000), "u2-115m", "u2-11m", 3
    yield "threshold gaussian 2-D 114.7M x 11.5M k 140", one(140), "g2-115m", "g2-11m", 3
    yield "threshold all points equal 1M x 1M k 140", one(140), "e3-1m", "e3-1m-too", 3
    for n, name in ((100 * K, "u3-100k"), (M, "u3-1m")):
        yield (f"threshold self-join uniform 3-D {n // K}K k 20",
               [(a, f"--algo {a} --self --k 20") for a in ("global-threshold", "dspp+pea")], name, None, 3)
    first_runs = [(f"process {i}", "--algo global-threshold --floor --k 20") for i in (1, 2, 3)]
    yield "threshold first run of a process: uniform 2-D 114.7M x 11.5M k 20", first_runs, "u2-115m", "u2-11m", FIRST_RUN
    yield ("huge uniform 2-D 1000M x 100M k 1000 in 8 GiB",
           [("global-threshold", "--algo global-threshold --floor --k 1000 --memory 8G")], "u2-1g", "u2-100m", 3)
    yield ("points per thread uniform 2-D 11.5M x 5.8M k 140",
           [(f"l = {l}", f"--algo dspp+pea --k 140 --points-per-thread {l}") for l in (16, 32, 64, 128)],
           "u2-11m", "u2-6m", 3)
    for n in (1, 2, 3, 4, 5):
        yield (f"linear in D1: uniform 3-D {n}M x 100K k 20",
               [(a, f"--algo {a} --k 20") for a in ("dbf", "dspp+pea")], f"u3-{n}m", "u3-100k", 5)
    for n in (1, 2, 3, 4, 5):
        yield (f"linear in D2: uniform 3-D 1M x {n}00K k 20",
               [(a, f"--algo {a} --k 20") for a in ("dbf", "dspp+pea")], "u3-1m", f"u3-{n}00k", 5)


def make(folder, name):
    path = f"{folder}/{name}.bin"
    if not os.path.exists(path):
        distribution, count, options = SETS[name]
        subprocess.run([KCP, "gen", distribution, str(max(1, int(count * SCALE))), path, "--quiet",
                        *options.split()], check=True)
    return path


def main():
    failed = False
    everything = []
    page = []
    with tempfile.TemporaryDirectory() as folder:
        for case, configurations, d1, d2, runs in cases():
            if not case.startswith(PREFIXES or OWN_SIZE):
                continue
            print(f"\n{case}\n  {'configuration':32} {'kernel':>10} {'index':>8} {'total':>9} "
                  f"{'spread':>7} {'vs first':>8} {'evaluated':>10} {'G/s':>7} {'/ floor':>7}  answer", flush=True)
            page.append(f"\n### {case}\n\n| configuration | kernel | index | total | spread | vs first | distances | total / floor | answer |\n"
                        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |")
            first_kernel = answer = None
            for label, options in configurations:
                inputs = [make(folder, name) for name in (d1, d2) if name]
                report, problem = run_report(KCP, DEVICE, options, inputs,
                                             max(runs, 1), folder, warmup=0 if runs == FIRST_RUN else 1)
                if problem:
                    print(f"  {label:32} {problem}")
                    failed = True
                    continue
                everything.append({"case": case, "configuration": label, "report": report})
                result = report["results"][0]
                kernel = result["statistics"]["kernel"]
                median = kernel["median_s"]
                first_kernel = first_kernel or median
                checksum = result["answer"]["checksum"]
                answer = answer or checksum
                same = checksum == answer
                failed = failed or not same
                evaluated = result["work"]["distance_evaluations"]
                total, floor = result["statistics"]["total"]["median_s"], result.get("floor_s")
                over_floor = f"{total / floor:.2f}" if floor else "-"
                spread = (kernel["max_s"] - kernel["min_s"]) / median if median else 0
                print(f"  {label:32} {median * 1e3:7.3f} ms "
                      f"{result['statistics']['index']['median_s'] * 1e3:5.2f} ms "
                      f"{total * 1e3:6.1f} ms "
                      f"{spread:6.1%} {first_kernel / median if median else 0:8.2f} {evaluated:10.3g} "
                      f"{evaluated / median / 1e9 if median else 0:7.0f} {over_floor:>7}  {'same' if same else 'DIFFERS'}",
                      flush=True)
                page.append(f"| {label} | {median * 1e3:.3f} ms | {result['statistics']['index']['median_s'] * 1e3:.2f} ms "
                            f"| {total * 1e3:.1f} ms | {spread:.1%} "
                            f"| {first_kernel / median if median else 0:.2f} | {evaluated:.3g} | {over_floor} | {'same' if same else 'differs'} |")
    write_results(OUT, "timings", everything, page)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
