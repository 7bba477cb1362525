"""What RT-HiSS says in words, and what the rows of a run say to it.

Rows stand at named places: a set and a search distance, "WEC s". Times leave reading out, as the
paper's do. A configuration that its time limit stopped counts with that limit, as a lower bound, as
the paper does with its time-outs."""

from .measures import comparisons_per_second, evaluated_share, phase_of
from .statements import SMALL_DIFFERENCE

LARGE = " l"  # how places of the largest search distance end


def _ratio(figures, slow, fast, x):
    """(time of `slow` over that of `fast`, whether it is only a lower bound), or None."""
    after, before = figures.time(fast, x), figures.time(slow, x)
    stopped = [r.stopped_s for r in figures.rows if r.variant == slow and r.x == x and r.stopped_s]
    if after and before:
        return before / after, False
    return (stopped[0] / after, True) if after and stopped else None


def _ratios(figures, slow, fast, ending=""):
    """{place: (ratio, is a bound)}; None unless every place of the ending has one."""
    found = {
        figures.place_name(x): _ratio(figures, slow, fast, x)
        for x in figures.places
        if figures.place_name(x).endswith(ending)
    }
    return found if found and None not in found.values() else None


def _told(entry, place):
    ratio, is_bound = entry
    return f"{'over ' if is_bound else ''}{ratio:.2f} × ({place})"


def _from_to(found):
    least = min(found, key=lambda place: found[place][0])
    most = max(found, key=lambda place: found[place][0])
    return f"{_told(found[least], least)} to {_told(found[most], most)}"


def _judged(found, holds, add=""):
    """A bound that is too low says nothing."""
    ratios = [ratio for ratio, _ in found.values()]
    if not holds(ratios) and any(is_bound for _, is_bound in found.values()):
        return f"{_from_to(found)}{add}", None
    return f"{_from_to(found)}{add}", holds(ratios)


def faster_everywhere(slow, fast, least=1.0, ending=""):
    """At least so many times as fast at every place."""

    def judge(figures):
        found = _ratios(figures, slow, fast, ending)
        if not found:
            return None, None
        told = f" (at least {least:g} × everywhere counts)" if least > 1 else ""
        return _judged(found, lambda ratios: min(ratios) >= least and min(ratios) > 1, told)

    return judge


def reaches(slow, fast, stated, ending=""):
    def judge(figures):
        found = _ratios(figures, slow, fast, ending)
        if not found:
            return None, None
        return _judged(
            found, lambda ratios: max(ratios) >= stated, f" ({stated:g} × or more somewhere counts)"
        )

    return judge


def averages(slow, fast, stated):
    def judge(figures):
        found = _ratios(figures, slow, fast)
        if not found:
            return None, None
        mean = sum(ratio for ratio, _ in found.values()) / len(found)
        return _judged(
            found,
            lambda _: mean >= stated,
            f", {mean:.2f} × on average ({stated:g} × or more on average counts)",
        )

    return judge


def slower_somewhere(variant, baseline, sets):
    """On each of the sets, at one search distance at least."""

    def judge(figures):
        found = _ratios(figures, baseline, variant)
        if not found:
            return None, None
        here = {place: entry for place, entry in found.items() if place.split()[0] in sets}
        if not here or any(is_bound for _, is_bound in here.values()):
            return None, None
        names = dict.fromkeys(place.split()[0] for place in here)
        slow = [
            name
            for name in names
            if min(ratio for place, (ratio, _) in here.items() if place.split()[0] == name) < 1
        ]
        return f"{baseline} / {variant}: {_from_to(here)}", len(slow) == len(names)

    return judge


def not_here(program):
    """A statement about a program that is not part of this one."""
    return lambda figures: (f"{program} is not in this program", None)


# --- kd-tree heights: a variant a place, x is the height ------------------------------------------


def _height_times(figures):
    """{place: {height: seconds}} of places where every height ran."""
    found = {
        variant: {x: figures.time(variant, x) for x in figures.places}
        for variant in figures.variants
    }
    return {name: times for name, times in found.items() if None not in times.values()}


def rule_is_near_best(figures):
    """The height floor(ln |D|), or the measured one that is nearest to it."""
    import math

    ratios = {}
    for place, times in _height_times(figures).items():
        points = next(row.counts[0] for row in figures.rows if row.variant == place and row.ran)
        rule = math.floor(math.log(points))
        height = min(times, key=lambda x: (abs(x - rule), x))
        ratios[f"{place}, height {height:g} for {rule}"] = times[height] / min(times.values())
    if len(ratios) != len(figures.variants) or not ratios:
        return None, None
    worst = max(ratios, key=ratios.get)
    return (
        f"at most {ratios[worst]:.2f} times the best height's time ({worst}; close: within "
        f"{SMALL_DIFFERENCE:g} ×)",
        ratios[worst] <= SMALL_DIFFERENCE,
    )


def _normalised(figures, name, is_one):
    """{height: time averaged over the search distances, each relative to its slowest} of the sets
    that are, or are not, `name`; by set."""
    by_set = {}
    for place, times in _height_times(figures).items():
        most = max(times.values())
        if (place.split()[0] == name) == is_one:
            by_set.setdefault(place.split()[0], []).append({x: t / most for x, t in times.items()})
    return {
        one: {x: sum(times[x] for times in all_times) / len(all_times) for x in figures.places}
        for one, all_times in by_set.items()
    }


def _best_heights(found):
    return {name: min(times, key=times.get) for name, times in found.items()}


def lowest_is_best(name):
    def judge(figures):
        found = _normalised(figures, name, True)
        if name not in found or len(_height_times(figures)) != len(figures.variants):
            return None, None
        best = _best_heights(found)[name]
        times = list(found[name].values())
        rises = times == sorted(times)
        return (
            f"best at {best:g}; {times[-1] / min(times):.2f} times as long at "
            f"{figures.places[-1]:g}",
            best == figures.places[0] and rises,
        )

    return judge


def best_is_inside_but_for(name):
    def judge(figures):
        found = _normalised(figures, name, False)
        if not found or len(_height_times(figures)) != len(figures.variants):
            return None, None
        best = _best_heights(found)
        ends = (figures.places[0], figures.places[-1])
        told = ", ".join(f"{one} at {height:g}" for one, height in best.items())
        return f"best: {told}", all(height not in ends for height in best.values())

    return judge


# --- what is counted ------------------------------------------------------------------------------


def _by_place(figures, variant, value, ending):
    found = {}
    for x in figures.places:
        if figures.place_name(x).endswith(ending):
            row = figures.by_place.get((variant, x))
            found[figures.place_name(x)] = value(row) if row else None
    return found if found and None not in found.values() else None


def _batches(figures, variant, ending):
    return _by_place(figures, variant, lambda row: row.facts.get("batches"), ending)


def same_batches(one, other):
    def judge(figures):
        first, second = _batches(figures, one, ""), _batches(figures, other, "")
        if not first or not second:
            return None, None
        told = ", ".join(f"{place} {first[place]} and {second[place]}" for place in first)
        return f"{one} and {other}: {told}", first == second

    return judge


def more_batches(many, few):
    """Everywhere."""

    def judge(figures):
        first, second = _batches(figures, many, ""), _batches(figures, few, "")
        if not first or not second:
            return None, None
        told = ", ".join(
            f"{place} {first[place]} and {second[place]} ({first[place] / second[place]:.1f} ×)"
            for place in first
        )
        return f"{many} and {few}: {told}", all(first[place] > second[place] for place in first)

    return judge


def prunes(variant, sets, holds, rule):
    """The share of distance calculations left out on each of the sets, largest search distance."""

    def judge(figures):
        found = _by_place(figures, variant, evaluated_share, LARGE)
        here = {p: 1 - s for p, s in (found or {}).items() if p.split()[0] in sets}
        if not here:
            return None, None
        told = ", ".join(f"{place.split()[0]} {share:.1%}" for place, share in here.items())
        return f"{told} ({rule})", all(map(holds, here.values()))

    return judge


def evaluates_less(variant, baseline, ending=""):
    """Fewer distances at every place, where both ran."""

    def judge(figures):
        first = _by_place(figures, variant, lambda row: row.evaluations, ending)
        second = _by_place(figures, baseline, lambda row: row.evaluations, ending)
        if not first or not second or 0 in second.values():
            return None, None
        shares = {place: first[place] / second[place] for place in first}
        least, most = min(shares, key=shares.get), max(shares, key=shares.get)
        return (
            f"{variant} evaluates {shares[least]:.1%} ({least}) to {shares[most]:.1%} ({most}) of "
            f"the distances of {baseline}",
            shares[most] < 1,
        )

    return judge


def throughput_grows(variant, baseline, least):
    """Distances a second in the refinement, largest search distance."""

    def judge(figures):
        first = _by_place(figures, variant, comparisons_per_second, LARGE)
        second = _by_place(figures, baseline, comparisons_per_second, LARGE)
        if not first or not second:
            return None, None
        ratios = {place: (first[place] / second[place], False) for place in first}
        return (
            f"distances a second: {_from_to(ratios)} (at least {least:g} × everywhere counts)",
            min(ratio for ratio, _ in ratios.values()) >= least,
        )

    return judge


def _mean_shares(figures, variant, names):
    """Of the whole time, over all places: the share of each part, `names` of phases by part."""
    totals = dict.fromkeys(names, 0.0)
    rows = [figures.by_place.get((variant, x)) for x in figures.places]
    if not rows or None in rows:
        return None
    for row in rows:
        for part, phases in names.items():
            seconds = phase_of(row, *phases)
            if seconds is None:
                return None
            totals[part] += seconds / row.median_s / len(rows)
    return totals


def refinement_leads(variant, names, first, second):
    """The part `first` takes most of the time, `second` follows."""

    def judge(figures):
        shares = _mean_shares(figures, variant, names)
        if not shares:
            return None, None
        order = sorted(shares, key=shares.get, reverse=True)
        told = ", ".join(f"{part} {shares[part]:.1%}" for part in order)
        return f"on average {told}", shares[first] > 0.5 and order[:2] == [first, second]

    return judge


def takes_at_most(variant, names, part, stated):
    def judge(figures):
        shares = _mean_shares(figures, variant, names)
        if not shares:
            return None, None
        return f"{part}: {shares[part]:.2%} on average ({stated:.2%} or less counts)", (
            shares[part] <= stated
        )

    return judge
