"""The point sets and arrays of the experiments: generated, or files that the user has."""

import subprocess
from pathlib import Path
from typing import NamedTuple

from .failure import Failure

RECORD_BYTES = 32  # u64 id, f64 x, y, z


class Synthetic(NamedTuple):
    """A set of the paper that anyone can make again."""

    distribution: str  # of kcp gen
    count: int  # at scale 1
    seed: int
    dimensions: int = 3

    def describe(self):
        return f"kcp gen {self.distribution}, {self.dimensions}-D, seed {self.seed}"


class Real(NamedTuple):
    """A set of the paper that cannot be handed on. Without the user's file (--data NAME=FILE) a
    generated set of its size and kind stands in."""

    name: str
    count: int
    distribution: str
    seed: int

    def describe(self):
        return f"stand-in for {self.name}: kcp gen {self.distribution}, 2-D, seed {self.seed}"


class Values(NamedTuple):
    """An array for a top-k."""

    count: int
    seed: int

    def describe(self):
        return f"kcp gen-values uniform, binary32, seed {self.seed}"


class Store:
    """Makes each set once, in `folder` (absolute)."""

    def __init__(self, kcp, folder, scale, given):
        self.kcp, self.folder, self.scale, self.given = kcp, Path(folder), scale, given
        self.used = {}  # path: what it is

    def path(self, data):
        """An absolute path."""
        count = max(1, round(data.count * self.scale))
        if isinstance(data, Real) and data.name in self.given:
            path, what = (
                self._sample(self.given[data.name]),
                f"{data.name}: {Path(self.given[data.name]).name}",
            )
        elif isinstance(data, Values):
            path = self._make("gen-values", "uniform", count, f"values-{count}.f32", data.seed)
            what = data.describe()
        else:
            dimensions = data.dimensions if isinstance(data, Synthetic) else 2
            name = f"{data.distribution}-{dimensions}d-{count}-seed{data.seed}.bin"
            path = self._make(
                "gen", data.distribution, count, name, data.seed, "--dims", str(dimensions)
            )
            what = data.describe()
        self.used[path.name] = what
        return path

    def _make(self, command, distribution, count, name, seed, *options):
        path = self.folder / name
        if not path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            arguments = [
                command,
                distribution,
                str(count),
                str(path),
                "--seed",
                str(seed),
                "--quiet",
            ]
            made = subprocess.run(
                [self.kcp, *arguments, *options], stderr=subprocess.PIPE, text=True, check=False
            )
            if made.returncode:
                raise Failure(made.stderr.strip() or f"kcp {command} failed")
        return path

    def _sample(self, source):
        """The user's file; below scale 1 every n-th of its records."""
        source = Path(source).resolve()
        if not source.exists():
            raise Failure(f"{source}: no such file (--data)")
        if self.scale >= 1:
            return source
        if source.suffix != ".bin":
            raise Failure(f"{source}: only a .bin file can be sampled for --scale (kcp convert)")
        step = max(1, round(1 / self.scale))
        path = self.folder / f"{source.stem}-every-{step}.bin"
        if not path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            with open(source, "rb") as whole, open(path, "wb") as sample:
                while record := whole.read(RECORD_BYTES):
                    sample.write(record)
                    whole.seek((step - 1) * RECORD_BYTES, 1)
        return path
