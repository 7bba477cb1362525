"""The point sets, vectors, sites and arrays of the experiments: generated, or files that the user
has."""

import functools
import hashlib
import random
import struct
import subprocess
from pathlib import Path
from typing import NamedTuple

from . import vectors
from .failure import Failure

CLUSTERED = ("clustered", "bytes")
POINTS_OF_A_CLUSTER = 20_000  # at scale 1: neighbours of the largest search distance lie in it
REAL_STAND_INS = Path(__file__).resolve().parents[2] / "datasets" / "large"
RECORD_BYTES = 32  # u64 id, f64 x, y, z


class Synthetic(NamedTuple):
    """A set of the paper that anyone can make again."""

    distribution: str  # of kcp gen
    count: int  # at scale 1
    seed: int
    dimensions: int = 3

    def describe(self):
        return f"kcp gen {self.distribution}, {self.dimensions}-D, seed {self.seed}"

    def file_name(self, count):
        return f"{self.distribution}-{self.dimensions}d-{count}-seed{self.seed}.bin"

    def make(self, kcp, path, count):
        options = ["--seed", self.seed, "--dims", self.dimensions]
        _run(kcp, "gen", self.distribution, count, path, *options)


class Real(NamedTuple):
    """A set of the paper that cannot be handed on. Without the user's file (--data NAME=FILE) a
    generated set of its size and kind stands in."""

    name: str
    count: int
    distribution: str
    seed: int

    def describe(self):
        return f"stand-in for {self.name}: {self._synthetic().describe()}"

    def _synthetic(self):
        return Synthetic(self.distribution, self.count, self.seed, 2)

    def file_name(self, count):
        return self._synthetic().file_name(count)

    def make(self, kcp, path, count):
        self._synthetic().make(kcp, path, count)


class Vectors(NamedTuple):
    """A set in many dimensions; unless it is `own`, a stand-in for one of the paper's."""

    name: str
    count: int
    dimensions: int
    kind: str  # of vectors.write
    seed: int
    draw: int = 0
    own: bool = False  # made by the paper in this way too
    share: int = 1  # of `count`, one point in so many

    @property
    def clusters(self):
        return max(1, round(self.count / POINTS_OF_A_CLUSTER))

    def queries(self, share):
        """Other points of the same clusters, so many times fewer."""
        return self._replace(draw=1, share=share)

    def describe(self):
        kind = f"{self.kind}, {self.clusters} clusters," if self.kind in CLUSTERED else self.kind
        what = f"{kind} points in {self.dimensions} dimensions, seed {self.seed} (NumPy)"
        return what if self.own else f"stand-in for {self.name}: {what}"

    def file_name(self, count):
        kind = f"{self.kind}{self.clusters}" if self.kind in CLUSTERED else self.kind
        return f"{kind}-{self.dimensions}d-{count}-seed{self.seed}-draw{self.draw}.fbin"

    def make(self, _, path, count):
        vectors.write(path, self.kind, count, self.dimensions, self.seed, self.draw, self.clusters)


class Values(NamedTuple):
    """An array for a top-k."""

    count: int
    seed: int

    def describe(self):
        return f"kcp gen-values uniform, binary32, seed {self.seed}"

    def file_name(self, count):
        return f"values-{count}.f32"

    def make(self, kcp, path, count):
        _run(kcp, "gen-values", "uniform", count, path, "--seed", self.seed)


class Sites(NamedTuple):
    """Weighted sites, uniform in the unit square, whole weights from 1 to 15. Few: not scaled."""

    count: int
    seed: int
    is_scaled = False

    def describe(self):
        return f"{self.count} sites, uniform in the unit square, weights 1 to 15, seed {self.seed}"

    def file_name(self, count):
        return f"sites-{count}-seed{self.seed}.bin"

    def records(self):
        """(x, y, weight) of each."""
        source = random.Random(self.seed)
        return [
            (source.random(), source.random(), source.randint(1, 15)) for _ in range(self.count)
        ]

    def make(self, _, path, __):
        packed = (struct.pack("<Qddd", i, *record) for i, record in enumerate(self.records()))
        path.write_bytes(b"".join(packed))


class Choice(NamedTuple):
    """Ids of some of the first `of` sites."""

    count: int
    of: int
    seed: int
    is_scaled = False

    def describe(self):
        return f"{self.count} ids below {self.of}, seed {self.seed}"

    def file_name(self, count):
        return f"choice-{count}-of-{self.of}-seed{self.seed}.txt"

    def ids(self):
        return sorted(random.Random(self.seed).sample(range(self.of), self.count))

    def make(self, _, path, count):
        path.write_text("".join(f"{i}\n" for i in self.ids()))


class Nearest(NamedTuple):
    """Ids of the sites that are nearest to the middle of the square."""

    count: int
    sites: Sites
    is_scaled = False

    def describe(self):
        return f"the {self.count} nearest to the middle, of {self.sites.describe()}"

    def file_name(self, count):
        return f"nearest-{count}-of-{self.sites.count}-seed{self.sites.seed}.txt"

    def ids(self):
        places = self.sites.records()

        def squared_distance(i):
            return (places[i][0] - 0.5) ** 2 + (places[i][1] - 0.5) ** 2

        return sorted(sorted(range(len(places)), key=squared_distance)[: self.count])

    def make(self, _, path, __):
        path.write_text("".join(f"{i}\n" for i in self.ids()))


def is_scaled(data):
    """Whether --scale takes a share of its points."""
    return getattr(data, "is_scaled", True)


def _run(kcp, *words):
    command = [kcp, *map(str, words), "--quiet"]
    made = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    if made.returncode:
        raise Failure(made.stderr.strip() or f"kcp {words[0]} failed")


@functools.cache
def provenance(source):
    """What a given file is: its name, and its checksum, since nothing else is known of it."""
    digest = hashlib.sha256()
    with open(source, "rb") as file:
        while block := file.read(1 << 22):
            digest.update(block)
    return f"{Path(source).name}, sha256 {digest.hexdigest()}"


class Store:
    """Makes each set once, in `folder` (absolute)."""

    def __init__(self, kcp, folder, scale, given):
        self.kcp, self.folder, self.scale, self.given = kcp, Path(folder), scale, given
        self.used = {}  # path: what it is

    def count(self, data):
        """Points of the generated set."""
        scale = self.scale if is_scaled(data) else 1
        return max(1, round(data.count / getattr(data, "share", 1) * scale))

    def path(self, data):
        """An absolute path."""
        source = self.given.get(getattr(data, "name", None))
        if source is not None and getattr(data, "draw", 0) == 0:
            path, what = self._sample(source), f"{data.name}: {provenance(source)}"
            if Path(source).resolve().parent == REAL_STAND_INS:
                what = f"stand-in for {what}, made by scripts/datasets/datasets.py {data.name}"
        else:
            path, what = self.folder / data.file_name(self.count(data)), data.describe()
            if not path.exists():
                self.folder.mkdir(parents=True, exist_ok=True)
                data.make(self.kcp, path, self.count(data))
        self.used[path.name] = what
        return path

    def _sample(self, source):
        """The user's file; below scale 1 every n-th of its records."""
        source = Path(source).resolve()
        if not source.exists():
            raise Failure(f"{source}: no such file (--data)")
        if self.scale >= 1:
            return source
        if source.suffix not in (".bin", ".fbin"):
            raise Failure(
                f"{source}: only a .bin or .fbin file can be sampled for --scale (kcp convert)"
            )
        step = max(1, round(1 / self.scale))
        path = self.folder / f"{source.stem}-every-{step}{source.suffix}"
        if not path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            if source.suffix == ".fbin":
                vectors.take_every(source, step, path)
                return path
            with open(source, "rb") as whole, open(path, "wb") as sample:
                while record := whole.read(RECORD_BYTES):
                    sample.write(record)
                    whole.seek((step - 1) * RECORD_BYTES, 1)
        return path
