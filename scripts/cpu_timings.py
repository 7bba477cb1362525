#!/usr/bin/env python3
"""kcp on a CPU beside SciPy's cKDTree, whole processes.

usage: cpu_timings.py KCP OUT_DIR [RUNS]

1M x 100K uniform 3-D points, k 140: `kcp` against a process that reads the same files with NumPy, asks a cKDTree for the
k nearest neighbours of every point on all cores, and selects the k closest pairs of all. The answers must agree. Then 10M x 1M
uniform 2-D points against the time to read both files and sort the smaller one. Then range joins that count, of 1M uniform 2-D points and
of 200K points of 200 Gaussian clusters in 18 dimensions, beside cKDTree on all cores; counts must agree. Needs NumPy and SciPy; writes
OUT_DIR/cpu_timings.json. KCP_SCALE=0.01 shrinks the data for a quick trial."""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

KCP, OUT = sys.argv[1], sys.argv[2]
RUNS = int(sys.argv[3]) if len(sys.argv) > 3 else 5
SCALE = float(os.environ.get("KCP_SCALE", "1"))
M = 1000000

TREE = """
import sys
import numpy as np
from scipy.spatial import cKDTree
d1, d2, k = sys.argv[1], sys.argv[2], int(sys.argv[3])
record = np.dtype([("id", "<u8"), ("p", "<f8", 3)])
a, b = np.fromfile(d1, record), np.fromfile(d2, record)
distances, places = cKDTree(a["p"]).query(b["p"], k=k, workers=-1)
best = np.argpartition(distances, k - 1, axis=None)[:k]
best = best[np.argsort(distances.ravel()[best])]
for i in best:
    print(a["id"][places.ravel()[i]], b["id"][i // k], repr(float(distances.ravel()[i])), sep=",")
"""

READ_AND_SORT = """
import sys
import numpy as np
record = np.dtype([("id", "<u8"), ("p", "<f8", 3)])
a, b = np.fromfile(sys.argv[1], record), np.fromfile(sys.argv[2], record)
np.sort(b["p"][:, 0])
"""

COUNT_WITHIN = """
import sys
import numpy as np
from scipy.spatial import cKDTree
points, eps = np.load(sys.argv[1]), float(sys.argv[2])
print(int(cKDTree(points).query_ball_point(points, eps, workers=-1, return_length=True).sum()))
"""


def timed(command):
    """Seconds of a whole process, and what it printed."""
    started = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return time.perf_counter() - started, done.stdout


def median_of(command):
    runs = [timed(command) for _ in range(RUNS)]
    return statistics.median(seconds for seconds, _ in runs), [s for s, _ in runs], runs[0][1]


def generate(folder, name, count, dims, seed):
    path = f"{folder}/{name}.bin"
    subprocess.run([KCP, "gen", "uniform", str(int(count * SCALE)), path, "--dims", str(dims), "--seed", str(seed), "--quiet"],
                   check=True)
    return path


def clusters(count, dimensions):
    source = np.random.default_rng(dimensions)
    centres, deviations = source.random((200, dimensions)), source.uniform(0.01, 0.06, 200)
    cluster = source.integers(0, 200, count)
    return centres[cluster] + source.standard_normal((count, dimensions)) * deviations[cluster][:, None]


def range_join(folder, results, name, points, eps):
    path = f"{folder}/points.npy"
    np.save(path, points)
    ours, our_runs, our_answer = median_of([KCP, "--device", "cpu", "--quiet", "--eps", repr(eps), path])
    tree, tree_runs, tree_answer = median_of([sys.executable, "-c", COUNT_WITHIN, path, repr(eps)])
    pairs = int(our_answer.split()[1].split(",")[1])
    same = pairs == int(tree_answer)
    results[f"range join of {name}"] = {"eps": eps, "pairs": pairs, "kcp_s": our_runs, "ckdtree_s": tree_runs, "same_count": same}
    print(f"range join of {name}, eps {eps}, {pairs} pairs: kcp {ours:.3f} s, cKDTree {tree:.2f} s, {tree / ours:.1f} times; "
          f"{'same count' if same else 'ANOTHER COUNT'}")
    return same


def main():
    results = {"threads": os.cpu_count(), "runs": RUNS, "scale": SCALE}
    with tempfile.TemporaryDirectory() as folder:
        d1, d2 = generate(folder, "d1", M, 3, 1), generate(folder, "d2", M / 10, 3, 2)
        query = [KCP, "--device", "cpu", "--quiet", "--k", "140", d1, d2]
        ours, our_runs, our_answer = median_of(query)
        tree, tree_runs, tree_answer = median_of([sys.executable, "-c", TREE, d1, d2, "140"])
        pairs = [line.rsplit(",", 1)[0] for line in our_answer.split()[1:]]
        same = pairs == [line.rsplit(",", 1)[0] for line in tree_answer.split()]
        results["1M x 100K uniform 3-D, k 140"] = {"kcp_s": our_runs, "ckdtree_s": tree_runs, "same_pairs": same}
        print(f"1M x 100K uniform 3-D, k 140: kcp {ours:.3f} s, cKDTree {tree:.2f} s, {tree / ours:.0f} times; "
              f"{'same pairs' if same else 'OTHER PAIRS'}")
        d1, d2 = generate(folder, "large1", 10 * M, 2, 3), generate(folder, "large2", M, 2, 4)
        ours, our_runs, _ = median_of([KCP, "--device", "cpu", "--quiet", "--k", "140", d1, d2])
        sort, sort_runs, _ = median_of([sys.executable, "-c", READ_AND_SORT, d1, d2])
        results["10M x 1M uniform 2-D, k 140"] = {"kcp_s": our_runs, "read_and_sort_s": sort_runs}
        print(f"10M x 1M uniform 2-D, k 140: kcp {ours:.3f} s, reading both and sorting the smaller {sort:.3f} s "
              f"(NumPy, with its start), {ours / sort:.2f} times")
        same &= range_join(folder, results, "1M uniform 2-D", np.random.default_rng(2).random((int(M * SCALE), 2)), 0.002)
        same &= range_join(folder, results, "200K x 18 in clusters", clusters(int(M / 5 * SCALE), 18), 0.1)
        same &= range_join(folder, results, "200K x 18 in clusters, many neighbours", clusters(int(M / 5 * SCALE), 18), 0.25)
    with open(f"{OUT}/cpu_timings.json", "w") as file:
        json.dump(results, file, indent=1)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
