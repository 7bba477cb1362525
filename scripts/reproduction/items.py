"""What can be reproduced: one item for each table and figure."""

from . import influence, k_cp, rt_hiss, rt_sets, top_k

REAL_SETS = k_cp.REAL_SETS + rt_sets.REAL_SETS


def all_items(distribution="bit", sets=rt_sets.USUAL):
    """In the order of the papers. `distribution` is that of the k-CP paper's synthetic sets, `sets`
    are those of RT-HiSS that take part."""
    return (
        k_cp.items(distribution)
        + rt_hiss.items([data for data in rt_sets.SETS if data.name in sets])
        + top_k.items()
        + influence.items()
    )
