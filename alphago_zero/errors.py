"""Two kinds of bad news, each told in one line by the command line: what a user can mend, and what went wrong."""

from __future__ import annotations


class UserError(ValueError):
    """A user's mistake, or a file that cannot be used; the message names the culprit. Exit code 2."""


class Failure(RuntimeError):
    """The work cannot go on; the message says why. Exit code 1."""
