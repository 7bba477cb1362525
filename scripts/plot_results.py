#!/usr/bin/env python3
"""Plots of docs/results from the raw reports beside them.

usage: plot_results.py [docs/results]

Writes top-k-h200/curve.png and k-cp-h200/variants.png. Needs matplotlib. Device and date come from the reports."""
import json
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

FOLDER = sys.argv[1] if len(sys.argv) > 1 else "docs/results"
READ_BYTES_PER_S = 4.3e12  # one read of device memory, as the top-k page measures it


def load(name):
    with open(f"{FOLDER}/{name}") as file:
        return json.load(file)


def kernel_ms(entry):
    return entry["report"]["results"][0]["statistics"]["kernel"]["median_s"] * 1e3


def place_and_date(entry):
    context = entry["report"]["context"]
    return f"{context['gpu']}, {context['date'][:10]}"


def finish(figure, axes, entry, title, path):
    axes.set_title(f"{title}\n{place_and_date(entry)}", fontsize=10)
    axes.grid(True, which="major", alpha=0.3)
    figure.tight_layout()
    figure.savefig(f"{FOLDER}/{path}", dpi=120)
    plt.close(figure)


def plot_top_k():
    entries = [e for e in load("top-k-h200/top_k.json") if e["case"].startswith("k uniform 2^")]
    exponents = sorted({int(e["case"].split("^")[1]) for e in entries})
    figure, axes = plt.subplots(figsize=(6.4, 4.2))
    for algorithm, k, style in (("sort", 32, "k-o"), ("bitonic", 1024, "C1--s"), ("bitonic", 64, "C1-s"),
                                ("select", 1024, "C0--^"), ("select", 64, "C0-^")):
        times = [kernel_ms(next(e for e in entries if e["case"] == f"k uniform 2^{n}" and e["configuration"] == f"{algorithm} k {k}"))
                 for n in exponents]
        axes.plot([2.0**n for n in exponents], times, style, label="sort, any k" if algorithm == "sort" else f"{algorithm}, k {k}")
    axes.plot([2.0**n for n in exponents], [2.0**n * 4 / READ_BYTES_PER_S * 1e3 for n in exponents], "0.5", linestyle=":",
              label="one read at 4.3 TB/s")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("values (uniform float32, on the device)")
    axes.set_ylabel("kernel time [ms], median of 5")
    axes.legend(fontsize=8)
    finish(figure, axes, entries[0], "The first k of an array", "top-k-h200/curve.png")


def plot_variants():
    cases = {"main uniform 3-D 1M x 100K k 20 list": "uniform 3-D\n1M x 100K, k 20, list",
             "main bit 10 digits 1M x 100K k 140 heap": "bit, 10 digits\n1M x 100K, k 140, heap",
             "main bit 10 digits 5M x 100K k 20 heap": "bit, 10 digits\n5M x 100K, k 20, heap"}
    entries = load("k-cp-h200/timings.json")
    labels = ["dbf plain", "dbf", "dspp plain, D2 in file order", "dspp", "dspp+pea"]
    figure, axes = plt.subplots(figsize=(6.8, 4.2))
    width = 0.8 / len(labels)
    for i, label in enumerate(labels):
        times = [kernel_ms(next(e for e in entries if e["case"] == case and e["configuration"] == label)) for case in cases]
        bars = axes.bar([c + (i - (len(labels) - 1) / 2) * width for c in range(len(cases))], times, width, label=label)
        axes.bar_label(bars, [f"{t:.0f}" if t >= 10 else f"{t:.1f}" for t in times], fontsize=7)
    axes.set_yscale("log")
    axes.set_xticks(range(len(cases)), cases.values(), fontsize=8)
    axes.set_ylabel("kernel time [ms], median")
    axes.set_ylim(top=20 * axes.get_ylim()[1])  # room for the legend
    axes.legend(fontsize=8, ncols=3, loc="upper center")
    finish(figure, axes, entries[0], "k closest pairs: the paper's algorithms, as its pseudocode reads (plain) and tuned",
           "k-cp-h200/variants.png")


if __name__ == "__main__":
    plot_top_k()
    plot_variants()
