#!/usr/bin/env python3
"""The timings of range joins: RT-HiSS in its variants and brute force, on clustered points in many dimensions.

usage: gpu_range.py KCP OUT_DIR [DEVICE] [CASE-PREFIX...]

Points are 200 Gaussian clusters of standard deviation 0.01 to 0.06, the scales of the dimensions falling from 1 to 0.2. Each
configuration is repeated in one process after a warm-up; all of a case must count the same pairs. Prints a table and writes
OUT_DIR/range.json and range.md. Needs NumPy. KCP_SCALE=0.01 shrinks the data for a quick trial."""
import os
import sys
import tempfile

import numpy as np

from kcp_reports import run_report, write_results

KCP, OUT = sys.argv[1], sys.argv[2]
DEVICE = sys.argv[3] if len(sys.argv) > 3 else "cuda"
PREFIXES = tuple(sys.argv[4:])
SCALE = float(os.environ.get("KCP_SCALE", "1"))

RT = "--algo rt-hiss"
VARIANTS = [  # label, options
    ("rt-hiss", RT),
    ("rt-hiss, bounds in all dimensions", f"{RT} --bound full"),
    ("rt-hiss tensor", f"{RT} --refine tensor"),
    ("rt-hiss tensor, bounds in all dimensions", f"{RT} --refine tensor --bound full"),
    ("rt-hiss shared-none", f"{RT} --refine shared-none"),
    ("rt-hiss, a point a primitive", f"{RT} --kd-height max"),
]
ALL_PAIRS = [  # in host memory
    ("rt-hiss, pairs by mask", f"{RT} --result mask"),
    ("rt-hiss, pairs by mask-raw", f"{RT} --result mask-raw"),
    ("rt-hiss, pairs by pairs", f"{RT} --result pairs"),
    ("rt-hiss tensor, pairs by mask", f"{RT} --refine tensor --result mask"),
]
CASES = [  # name, points, dimensions, neighbours, [(label, options)], runs
    ("1M x 18, few neighbours", 1000000, 18, 230, VARIANTS + ALL_PAIRS + [("range-brute", "--algo range-brute")], 2),
    ("1M x 18, many neighbours", 1000000, 18, 3950, VARIANTS[:4] + ALL_PAIRS, 2),
    ("500K x 90, few neighbours", 500000, 90, 291, VARIANTS + ALL_PAIRS + [("range-brute", "--algo range-brute")], 2),
    ("500K x 90, many neighbours", 500000, 90, 4060, VARIANTS[:4] + ALL_PAIRS, 2),
]


def make(folder, count, dimensions):
    path = f"{folder}/{count}x{dimensions}.fbin"
    if not os.path.exists(path):
        source = np.random.default_rng(dimensions)
        centres = source.random((200, dimensions))
        deviations = source.uniform(0.01, 0.06, 200)
        cluster = source.integers(0, 200, count)
        points = centres[cluster] + source.standard_normal((count, dimensions)) * deviations[cluster][:, None]
        with open(path, "wb") as file:
            np.array([count, dimensions], dtype=np.int32).tofile(file)
            (points * np.linspace(1, 0.2, dimensions)).astype(np.float32).tofile(file)
    return path


def main():
    failed = False
    everything, page = [], []
    with tempfile.TemporaryDirectory() as folder:
        for case, count, dimensions, neighbours, configurations, runs in CASES:
            if PREFIXES and not case.startswith(PREFIXES):
                continue
            data = make(folder, max(100, int(count * SCALE)), dimensions)
            print(f"\n{case}\n  {'configuration':42} {'total':>11} {'kernel':>11} {'refine':>11} {'to host':>11} {'batches':>7} {'pairs':>14}", flush=True)
            page.append(f"\n### {case}\n\n| configuration | total | kernels | refinement | downloaded | batches | pairs |\n"
                        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
            pairs = eps = None
            for label, options in configurations:
                ask = f"--eps {eps!r}" if eps else f"--selectivity {neighbours * SCALE}"
                report, problem = run_report(KCP, DEVICE, f"{options} {ask}", [data], runs, folder, answer=None)
                if problem:
                    print(f"  {label:42} {problem}", flush=True)
                    page.append(f"| {label} | {problem} | | | | | |")
                    failed = True
                    continue
                everything.append({"case": case, "configuration": label, "report": report})
                result = report["results"][0]
                eps = eps or result["answer"]["eps"]
                pairs = pairs or result["answer"]["pairs"]
                failed = failed or result["answer"]["pairs"] != pairs
                refine = result.get("range_join", {}).get("phases", {}).get("refine_s", 0)
                batches, down = result["range_join"]["batches"], result["work"]["d2h_bytes"] / 1e9
                total, kernel = (result["statistics"][phase]["median_s"] for phase in ("total", "kernel"))
                print(f"  {label:42} {total * 1e3:8.1f} ms {kernel * 1e3:8.1f} ms {refine * 1e3:8.1f} ms "
                      f"{down:8.2f} GB {batches:7,} {result['answer']['pairs']:14,}", flush=True)
                page.append(f"| {label} | {total * 1e3:.1f} ms | {kernel * 1e3:.1f} ms | {refine * 1e3:.1f} ms | {down:.2f} GB | {batches:,} "
                            f"| {result['answer']['pairs']:,} |")
    write_results(OUT, "range", everything, page)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
