#!/usr/bin/env python3
"""The timings of range joins: RT-HiSS in its variants and brute force, on clustered points in many dimensions.

usage: gpu_range.py KCP OUT_DIR [DEVICE] [CASE-PREFIX...]

Clusters are 200 Gaussian ones of standard deviation 0.01 to 0.06, the scales of the dimensions falling from 1 to 0.2; bytes are
clusters as whole numbers from 0 to 255; exponential has a rate of 40. Each
configuration is repeated in one process after a warm-up; all of a case must count the same pairs. Prints a table and writes
OUT_DIR/range.json and range.md. Needs NumPy. KCP_SCALE=0.01 shrinks the data for a quick trial."""
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from kcp_reports import run_report, write_results

KCP, OUT = sys.argv[1], sys.argv[2]
DEVICE = sys.argv[3] if len(sys.argv) > 3 else "cuda"
PREFIXES = tuple(sys.argv[4:])
SCALE = float(os.environ.get("KCP_SCALE", "1"))

RT = "--algo rt-hiss"
PAPER = f"{RT} --refine shared-both --index bvh"
OWN = [  # label, options
    ("auto", RT),
    ("paper's pipeline", PAPER),
    ("paper's, bounds in all dimensions", f"{PAPER} --bound full"),
]
FORMS = [  # all pairs in host memory
    ("auto, pairs by mask", f"{RT} --result mask"),
    ("paper's, pairs by mask", f"{PAPER} --result mask"),
    ("paper's, pairs by mask-raw", f"{PAPER} --result mask-raw"),
    ("paper's, pairs by pairs", f"{PAPER} --result pairs"),
]
OTHERS = [
    ("paper's, shared-none", f"{PAPER} --refine shared-none"),
    ("paper's, a point a primitive", f"{PAPER} --kd-height max"),
    ("paper's, optix", f"{RT} --refine shared-both --index optix"),
    ("paper's, optix, a point a primitive", f"{RT} --refine shared-both --index optix --kd-height max"),
    ("range-brute", "--algo range-brute"),
]
CASES = [  # name, distribution, points, dimensions, neighbours, [(label, options)], runs
    ("1M x 18, few neighbours", "clusters", 1000000, 18, 230, OWN + FORMS + OTHERS, 2),
    ("1M x 18, many neighbours", "clusters", 1000000, 18, 3950, OWN + FORMS, 2),
    ("500K x 90, few neighbours", "clusters", 500000, 90, 291, OWN + FORMS + OTHERS, 2),
    ("500K x 90, many neighbours", "clusters", 500000, 90, 4060, OWN[:2] + FORMS[:1], 2),
    ("uniform 1M x 3", "uniform", 1000000, 3, 64, OWN + FORMS[:1] + OTHERS[2:3], 2),
    ("exponential 1M x 3", "exponential", 1000000, 3, 64, OWN + FORMS[:1] + OTHERS[2:3], 2),
    ("bytes 10M x 128", "bytes", 10000000, 128, 256, OWN[:1], 1),
    ("uniform bytes 4M x 128", "uniform bytes", 4000000, 128, 1, OWN[:1], 1),
]
STEP = 250000  # points that one call draws


def draw(distribution, dimensions, first, count):
    """Points first .. first + count - 1, the same whoever draws them."""
    shared = np.random.default_rng(dimensions)
    centres, deviations = shared.random((200, dimensions)), shared.uniform(0.01, 0.06, 200)
    source = np.random.default_rng([dimensions, first])
    if distribution == "uniform":
        return source.random((count, dimensions), dtype=np.float32)
    if distribution == "exponential":
        return source.standard_exponential((count, dimensions), dtype=np.float32) / np.float32(40)
    if distribution == "uniform bytes":
        return source.integers(0, 256, (count, dimensions)).astype(np.float32)
    cluster = source.integers(0, 200, count)
    points = source.standard_normal((count, dimensions), dtype=np.float32)
    points *= deviations[cluster].astype(np.float32)[:, None]
    points += centres[cluster].astype(np.float32)
    if distribution == "bytes":
        return np.clip(np.rint(points * 200 + 27), 0, 255)
    return points * np.linspace(1, 0.2, dimensions, dtype=np.float32)


def make(folder, distribution, count, dimensions):
    path = f"{folder}/{count}x{dimensions}-{distribution.replace(' ', '-')}.fbin"
    if not os.path.exists(path):
        with open(path, "wb") as file, ThreadPoolExecutor() as pool:
            np.array([count, dimensions], dtype=np.int32).tofile(file)
            firsts = range(0, count, STEP)
            for points in pool.map(lambda first: draw(distribution, dimensions, first, min(STEP, count - first)), firsts):
                points.astype(np.float32).tofile(file)
    return path


def main():
    failed = False
    everything, page = [], []
    with tempfile.TemporaryDirectory() as folder:
        for case, distribution, count, dimensions, neighbours, configurations, runs in CASES:
            if PREFIXES and not case.startswith(PREFIXES):
                continue
            data = make(folder, distribution, max(100, int(count * SCALE)), dimensions)
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
