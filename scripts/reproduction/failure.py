"""What goes wrong and is told to the user in one line."""


class Failure(Exception):
    pass
