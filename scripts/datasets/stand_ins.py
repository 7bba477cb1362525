"""Stand-ins for the real sets of the k-CP paper, which cannot be handed on: of their size and kind,
from real sets of datasets.py, scaled to the unit square as the paper's are.

Too many points are thinned evenly. Too few are grown: every place becomes several points around it,
by sums of three uniform numbers, whole 53-bit fractions of a bit generator whose stream NumPy keeps.
Nothing but +, - and * touches a coordinate, so that every machine gives the same bytes."""

RECORD = [("id", "<u8"), ("x", "<f8"), ("y", "<f8"), ("z", "<f8")]
BLOCK = 1 << 22  # points of a block, each with its own stream

WORLD = (-180.0, -90.0, 360.0, 180.0)  # least x and y, width and height in degrees
NORTH_AMERICA = (-170.0, 15.0, 120.0, 69.0)


def read(*paths):
    """x and y of .bin files, one after another."""
    import numpy

    records = numpy.concatenate([numpy.fromfile(path, RECORD) for path in paths])
    return records["x"].copy(), records["y"].copy()


def inside(x, y, box):
    """Of points as they come; those outside are left out."""
    west, south, width, height = box
    kept = (x >= west) & (x <= west + width) & (y >= south) & (y <= south + height)
    return x[kept], y[kept]


def offsets(seed, block, count, width):
    """Bell-shaped, within 1.5 widths of 0: one for x, one for y."""
    import numpy

    source = numpy.random.PCG64(numpy.random.SeedSequence([seed, block]))
    units = (source.random_raw(6 * count) >> numpy.uint64(11)) * 2.0**-53
    sums = units.reshape(6, count)
    return (sums[0] + sums[1] + sums[2] - 1.5) * width, (sums[3] + sums[4] + sums[5] - 1.5) * width


def write(path, x, y, box, count, width=0.0, seed=0):
    """`count` points, from those given: evenly thinned, or grown with offsets of `width` degrees."""
    import numpy

    if count > len(x) and width == 0:
        raise ValueError(f"{len(x)} points do not make {count}")
    west, south, wide, high = box
    with open(path, "wb") as file:
        for block, first in enumerate(range(0, count, BLOCK)):
            number = numpy.arange(first, min(count, first + BLOCK), dtype="<u8")
            source = (number * numpy.uint64(len(x))) // numpy.uint64(count)
            px, py = x[source], y[source]
            if width > 0:
                dx, dy = offsets(seed, block, len(number), width)
                px, py = px + dx, py + dy
            records = numpy.zeros(len(number), RECORD)
            records["id"] = number
            records["x"] = numpy.clip((px - west) * (1 / wide), 0, 1)
            records["y"] = numpy.clip((py - south) * (1 / high), 0, 1)
            records.tofile(file)


def water(path, coast, rivers):
    """5.8 million: shore lines and rivers of North America."""
    x, y = inside(*read(coast, rivers), NORTH_AMERICA)
    write(path, x, y, NORTH_AMERICA, 5_800_000, width=0.002, seed=401)


def coordinates(path, rivers):
    """2,091,602: rivers and canals, thinned."""
    write(path, *read(rivers), WORLD, 2_091_602)


def around_places(path, places, count, width, seed):
    write(path, *read(places), WORLD, count, width, seed)
