"""The table of the top-k slides."""

from . import statements as say
from .data import Values
from .item import Item, Place
from .measures import time_and_memory
from .statements import Statement


def items():
    return [
        Item(
            names=("top-k",),
            paper="top-k",
            title="first k of 2^20 values (the slides do not say how many): sort against bitonic",
            places=[Place((Values(1 << 20, 40),))],
            sweeps=[{"algo": ["sort", "bitonic", "select"], "k": [32, 64, 128, 256, 512, 1024]}],
            x="k",
            x_label="k",
            baseline="sort",
            measures=time_and_memory,
            statements=[
                Statement(
                    "slide 9",
                    "Sorting-based top-k takes a nearly constant time (around 0.79 ms)",
                    say.nearly_constant("sort"),
                ),
                Statement(
                    "slide 9",
                    "Bitonic top-k is up to 17 times as fast",
                    say.largest_speedup("sort", "17 ×", 17, ("bitonic",)),
                ),
                Statement(
                    "slide 9",
                    "The largest speedup is at small k (such as 64)",
                    say.largest_speedup_at_small_k("sort", 128, ("bitonic",)),
                ),
            ],
        )
    ]
