"""The one exception that is meant for people: it says what is wrong and what to do next."""


class UserError(Exception):
    """Wrong input, missing source, impossible request. The command line prints it without a traceback."""
