"""Vectors in many dimensions as .fbin files: i32 rows, i32 columns, binary32 values row by row.

Made in blocks, each from its own seed, so that any number of threads gives the same bytes (of one
version of NumPy, whose streams may change with it)."""

import os
from concurrent.futures import ThreadPoolExecutor

from .failure import Failure

BLOCK_ROWS = 1 << 16
EXPONENTIAL_RATE = 40  # lambda, RT-HiSS V-I


def _numpy():
    """Not at the top: what needs no vectors does without it."""
    try:
        import numpy
    except ModuleNotFoundError as missing:
        raise Failure("vectors need NumPy, which this Python has not") from missing
    return numpy


def _clustered(numpy, dimensions, seed, clusters):
    """Gaussian clusters of standard deviation 0.01 to 0.06 around centres in the unit cube, scales
    of the dimensions falling from 1 to 0.2."""
    source = numpy.random.default_rng([seed, 0])
    centres = source.random((clusters, dimensions))
    deviations = source.uniform(0.01, 0.06, clusters)
    scales = numpy.linspace(1, 0.2, dimensions)

    def block(stream, rows):
        cluster = stream.integers(0, clusters, rows)
        noise = stream.standard_normal((rows, dimensions)) * deviations[cluster][:, None]
        return (centres[cluster] + noise) * scales

    return block


def _blocks(numpy, kind, dimensions, seed, clusters):
    if kind == "exponential":
        return lambda stream, rows: stream.exponential(1 / EXPONENTIAL_RATE, (rows, dimensions))
    if kind == "uniform":
        return lambda stream, rows: stream.random((rows, dimensions))
    clustered = _clustered(numpy, dimensions, seed, clusters)
    if kind == "bytes":  # whole numbers from 0 to 255, as SIFT has them
        return lambda stream, rows: numpy.clip(numpy.rint(clustered(stream, rows) * 255), 0, 255)
    return clustered


def write(path, kind, rows, dimensions, seed, draw, clusters):
    """`draw`: another one gives other points of the same clusters."""
    numpy = _numpy()
    block = _blocks(numpy, kind, dimensions, seed, clusters)

    def make(first):
        stream = numpy.random.default_rng([seed, 1 + draw, first // BLOCK_ROWS])
        return block(stream, min(BLOCK_ROWS, rows - first)).astype("<f4")

    partial = path.with_suffix(".partial")
    with open(partial, "wb") as file, ThreadPoolExecutor(os.cpu_count()) as threads:
        numpy.array([rows, dimensions], "<i4").tofile(file)
        starts = list(range(0, rows, BLOCK_ROWS))
        together = 4 * (os.cpu_count() or 1)  # blocks in memory
        for i in range(0, len(starts), together):
            for values in threads.map(make, starts[i : i + together]):
                values.tofile(file)
    partial.replace(path)


def take_every(source, step, path):
    """Every step-th row of a .fbin file."""
    numpy = _numpy()
    rows, dimensions = numpy.fromfile(source, "<i4", 2)
    values = numpy.memmap(source, "<f4", "r", 8, (int(rows), int(dimensions)))[::step]
    with open(path, "wb") as file:
        numpy.array(values.shape, "<i4").tofile(file)
        values.tofile(file)
