#!/usr/bin/env python3
"""The timings of common influence regions: the paper's sizes, both methods and both queries, and a large case.

usage: gpu_influence.py KCP OUT_DIR [DEVICE] [CASE-PREFIX...]

Sites are uniform with whole weights from 1 to 15, as in the paper. Each configuration is repeated in one process; all methods
of a case must give one checksum. Prints a table and writes OUT_DIR/influence.md and influence.json."""
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

KCP, OUT = sys.argv[1], sys.argv[2]
DEVICE = sys.argv[3] if len(sys.argv) > 3 else "cuda"
PREFIXES = tuple(sys.argv[4:])

METHODS = ("pairs", "sparse")
PAPER = "--k 20 --k2 20 --grid 400x400 --domain 0,0,1,1 --min-weight 0.01"
CASES = [  # name, n, n', m, m', algorithm and options, methods, runs
    ("paper pairs", 500, 50, 200, 25, f"--algo influence-pairs {PAPER}", METHODS, 20),
    ("paper partners", 500, 50, 200, 25, f"--algo influence-partners {PAPER}", METHODS, 20),
    ("all pairs of the paper's sites", 500, 500, 200, 200, f"--algo influence-pairs {PAPER}", METHODS, 10),
    ("large, all pairs", 100000, 100000, 20000, 20000,
     "--algo influence-pairs --k 10 --grid 4096x4096 --domain 0,0,1,1", ("sparse",), 5),
]


def write_sites(path, count, seed):
    source = random.Random(seed)
    with open(path, "wb") as file:
        for i in range(count):
            file.write(struct.pack("<Qddd", i, source.random(), source.random(), source.randint(1, 15)))


def write_choice(path, count, chosen, seed):
    with open(path, "w") as file:
        file.writelines(f"{i}\n" for i in sorted(random.Random(seed).sample(range(count), chosen)))


def run(folder, case, method):
    name, n, n_chosen, m, m_chosen, options, _, runs = case
    report = os.path.join(folder, "report.json")
    command = [KCP, *options.split(), "--method", method, "--device", DEVICE, "--runs", str(runs), "--warmup", "2", "--quiet",
               "--out", os.path.join(folder, "answer.csv"), "--json", report]
    if n_chosen < n:
        command += ["--p-select", os.path.join(folder, "p.txt")]
    if m_chosen < m:
        command += ["--q-select", os.path.join(folder, "q.txt")]
    subprocess.run(command + [os.path.join(folder, "p.bin"), os.path.join(folder, "q.bin")], check=True)
    with open(report) as file:
        return json.load(file)["results"][0]


def milliseconds(result, phase):
    return f"{1e3 * result['phases'][phase + '_s']:.3f}"


def main():
    os.makedirs(OUT, exist_ok=True)
    rows, results, wrong = [], [], 0
    for case in CASES:
        if PREFIXES and not case[0].startswith(PREFIXES):
            continue
        with tempfile.TemporaryDirectory() as folder:
            write_sites(os.path.join(folder, "p.bin"), case[1], 1)
            write_sites(os.path.join(folder, "q.bin"), case[3], 2)
            write_choice(os.path.join(folder, "p.txt"), case[1], case[2], 3)
            write_choice(os.path.join(folder, "q.txt"), case[3], case[4], 4)
            first = None
            for method in case[6]:
                result = run(folder, case, method)
                checksum = result["answer"]["checksum"]
                first = first or checksum
                wrong += checksum != first
                device_ms = milliseconds(result, "index"), milliseconds(result, "kernel")
                rows.append((case[0], method, *device_ms, milliseconds(result, "merge"), milliseconds(result, "d2h"),
                             "ok" if checksum == first else "WRONG"))
                results.append({"case": case[0], "method": method, "result": result})
                print("  ".join(f"{cell:>10}" for cell in rows[-1]), flush=True)
    head = ("case", "method", "nearest ms", "areas ms", "bounds, merge ms", "download ms", "checked")
    with open(os.path.join(OUT, "influence.md"), "w") as file:
        for row in (head, ("---",) * len(head), *rows):
            file.write("| " + " | ".join(row) + " |\n")
    with open(os.path.join(OUT, "influence.json"), "w") as file:
        json.dump(results, file, indent=1)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
