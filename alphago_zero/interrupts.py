"""Ctrl-C reaches every process of a terminal; only the one that a person started answers it, wherever it is."""

from __future__ import annotations

import _weakrefset
import contextlib
import signal
import weakref
from collections.abc import Iterator
from multiprocessing import resource_tracker

_FINALIZERS = (weakref.__file__, _weakrefset.__file__)
_AGAIN = 0.05  # seconds


def obey_signals() -> None:
    """Let Ctrl-C and SIGTERM raise KeyboardInterrupt, where somebody will see it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, _interrupt)


def let_signals_end() -> None:
    """Let SIGTERM end this process at once, without a word: while Python shuts down nobody sees what is raised."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _interrupt(number: int, frame) -> None:
    """What is raised in a finalizer Python prints and forgets: there the signal comes again a little later."""
    while frame is not None:
        if frame.f_code.co_name == "__del__" or frame.f_code.co_filename in _FINALIZERS:
            signal.setitimer(signal.ITIMER_REAL, _AGAIN)
            return
        frame = frame.f_back
    raise KeyboardInterrupt


@contextlib.contextmanager
def children_unharmed() -> Iterator[None]:
    """Processes started in here do not see Ctrl-C, from their first moment on: their imports take seconds."""
    resource_tracker.ensure_running()  # multiprocessing's own process, whose start lets Ctrl-C through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
