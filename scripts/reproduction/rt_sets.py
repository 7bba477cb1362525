"""The sets of RT-HiSS and its search distances."""

from .data import Vectors
from .item import Place

# Table I: the sizes and dimensions that the sets' own pages give; the paper's text has their range,
# 288K to 11.6M points, d from 18 to 128.
SETS = [
    Vectors("WEC", 288_000, 49, "clustered", 201),
    Vectors("MSD", 515_345, 90, "clustered", 202),
    Vectors("SuSy", 5_000_000, 18, "clustered", 203),
    Vectors("Higgs", 11_000_000, 28, "clustered", 204),
    Vectors("BigCross", 11_620_300, 57, "clustered", 205),
    Vectors("Sift", 11_164_866, 128, "bytes", 206),
]
USUAL = ("WEC", "MSD")  # the smaller ones: every variant of the others takes long
# Table V names the 3-D sets; what we have of it gives no sizes: a million is this project's choice.
THREE_D = [
    Vectors("Ionosphere", 1_000_000, 3, "clustered", 211),
    Vectors("Gaia", 1_000_000, 3, "clustered", 212),
    Vectors("Uniform", 1_000_000, 3, "uniform", 213, own=True),
    Vectors("Exponential", 1_000_000, 3, "exponential", 214, own=True),
]
REAL_SETS = SETS + THREE_D[:2]

DISTANCES = {"s": 2**8, "m": 2**10, "l": 2**12}  # neighbours of a query on average (V-B)


def places(sets, distances="sml"):
    return [
        Place((data,), f"{data.name} {distance}", {"selectivity": DISTANCES[distance]})
        for data in sets
        for distance in distances
    ]
