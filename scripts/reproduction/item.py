"""What an item of the list is made of: a table or figure of a paper."""

from typing import Callable, NamedTuple


class Measure(NamedTuple):
    """A figure of a row: a panel of the plot, a table of the page."""

    title: str  # with its unit
    value: Callable  # of a row; None when the row does not have it
    text: Callable  # of a value, in a table
    spread: Callable = None  # of a row: how far below and above the value its runs were


class Place(NamedTuple):
    """Where the configurations run: the files, and options that they all get."""

    files: tuple  # data sets of data.py
    name: str = ""
    options: dict = {}


def algorithm_and_buffer(options, _):
    return options.get("algo", "auto"), options.get("buffer", "")


class Item(NamedTuple):
    names: tuple  # the first is that of the files
    paper: str
    title: str
    places: list
    sweeps: list  # options of kcp bench; lists are swept; "only": a test of the place
    x: str  # what varies: "n1", "n2", "place", or the name of an option
    x_label: str
    baseline: str  # of the speed-ups
    statements: list
    measures: Callable  # of the rows and the phase: the list of Measure
    runs: int = 10  # when the user does not say
    label: Callable = algorithm_and_buffer  # (options, place): what a row is called
    shares: tuple = ()  # (name, value of a row): parts of the time, drawn on one another
    phase: str = None  # the time that its paper gives, whatever the user asks for

    @property
    def name(self):
        return self.names[0]

    @property
    def is_named(self):
        return self.x == "place"

    def x_of(self, options, counts, number):
        if self.x == "place":
            return number
        if self.x in ("n1", "n2"):
            place = int(self.x[1]) - 1
            return counts[place] if len(counts) > place else 0
        return float(options[self.x])


class Picture(NamedTuple):
    """Something to look at instead of times."""

    names: tuple
    paper: str
    title: str
    make: Callable  # (kcp, store, device): what was measured, for JSON
    load: Callable  # (what was measured, store): what is drawn and judged
    draw: Callable  # (that, title, footer, stem)
    statements: list

    @property
    def name(self):
        return self.names[0]
