"""The Go Text Protocol, version 2: lines in, answers out (the commands are in `gtp_engine.py`).

In: the bytes of a client, whatever they are. Out: an answer to each command, `=id text` or `?id reason`.
A thread reads the lines, so that a new one can interrupt an analysis. Another loads the engine: nothing here imports
more than the standard library, and `name` is answered while the network and the compiled search are still loading.
"""

from __future__ import annotations

import contextlib
import os
import queue
import re
import sys
import threading
import traceback
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Callable

from alphago_zero import __version__

NAME = "AlphaGo Zero"
LONGEST_LINE = 65_536  # bytes; a longer one is refused, and never kept in memory
_OWN_COMMANDS = ("protocol_version", "name", "version", "known_command", "list_commands", "help", "quit")
_CONTROL = dict.fromkeys([*range(32), 127])  # taken out of a line; the tab was made a blank before
_LONGEST_ID = 18  # digits


class GtpError(Exception):
    """A command that fails; the message is the answer."""


@dataclass(frozen=True)
class Command:
    """One line of a client."""

    id: str  # digits, or nothing
    name: str  # nothing: a line without a command, which gets no answer
    arguments: tuple[str, ...] = ()


def parse(line: bytes) -> Command:
    """
    >>> parse(b"12 play B d4  # the usual")
    Command(id='12', name='play', arguments=('B', 'd4'))
    """
    text = line.decode("utf-8", errors="replace").replace("\t", " ").translate(_CONTROL).partition("#")[0]
    words = text.split()
    number = ""
    if words and re.fullmatch(f"[0-9]{{1,{_LONGEST_ID}}}", words[0]):
        number = words.pop(0)
    return Command(number, words[0] if words else "", tuple(words[1:]))


class Lines:
    """The lines of a file descriptor, read by a thread of their own."""

    def __init__(self, descriptor: int):
        self._queue: queue.Queue[bytes | None] = queue.Queue()
        self._descriptor = descriptor
        self.interrupted = threading.Event()  # GoGui's `# interrupt`: what is being executed should end now
        threading.Thread(target=self._read, name="gtp reader", daemon=True).start()

    def _read(self) -> None:
        # os.read, not a buffered file: the process could not end while such a file waits here, holding its lock.
        rest = b""
        while True:
            try:
                data = os.read(self._descriptor, 65_536)
            except OSError:
                data = b""
            *lines, rest = (rest + data).split(b"\n")
            rest = rest[: LONGEST_LINE + 1]  # so much tells that it is too long
            if rest and not data:
                lines.append(rest)
            for line in lines:
                if line.split() == [b"#", b"interrupt"]:
                    self.interrupted.set()
                self._queue.put(line[: LONGEST_LINE + 1])
            if not data:
                self._queue.put(None)
                return

    def pending(self) -> bool:
        """A line, or the end, has come."""
        return not self._queue.empty()

    def next(self, meanwhile: Callable[[], bool]) -> bytes | None:
        """The next line; None at the end. Until it comes, `meanwhile` is called again and again while it says True."""
        while not self.pending() and meanwhile():
            pass
        line = self._queue.get()
        self.interrupted.clear()
        return line


class _Answer:
    """One answer on its way: at once, or line by line."""

    def __init__(self, command: Command, write: Callable[[bytes], None]):
        self._id, self._write, self._begun = command.id, write, False

    def send(self, line: str = "") -> None:
        """One line; an empty one only tells that the answer begins."""
        begin = "" if self._begun else f"={self._id}\n"
        self._begun = True
        self._write((begin + (f"{line}\n" if line else "")).encode(errors="replace"))

    def finish(self, text: str, sign: str = "=") -> None:
        first, *others = text.rstrip().split("\n")
        text = "\n".join([first, *(line for line in others if line.strip())])  # an empty line would end the answer
        if not self._begun:
            blank = "" if text.startswith("\n") or not text else " "
            text = f"{sign}{self._id}{blank}{text}"
        self._write((text + "\n" if text else "").encode(errors="replace") + b"\n")


class Dialogue:
    """Answers a client's lines with the commands of an engine.

    An engine has `commands`, a dictionary from a name to a function of the arguments. The function returns its answer
    or raises GtpError; one that takes long may send lines of its answer earlier, by the engine's attribute `send`.
    """

    def __init__(self, engine: Future, write: Callable[[bytes], None], model: str = ""):
        self._engine, self._write, self._model = engine, write, model

    def answer(self, line: bytes) -> bool:
        """Answer one line. False once the client has said `quit`."""
        command = parse(line)
        if not (command.id or command.name):
            return True
        answer = _Answer(command, self._write)
        try:
            if len(line) > LONGEST_LINE:
                raise GtpError(f"line too long: more than {LONGEST_LINE} bytes")
            answer.finish(self._execute(command, answer))
        except GtpError as error:
            answer.finish(str(error), "?")
        except BrokenPipeError:
            raise
        except Exception as error:  # a fault of ours: told in full on stderr, and the client can go on
            traceback.print_exc(file=sys.stderr)
            answer.finish(f"internal error: {type(error).__name__}: {error}", "?")
        return command.name != "quit"

    def _execute(self, command: Command, answer: _Answer) -> str:
        name, arguments = command.name, list(command.arguments)
        if name in _OWN_COMMANDS:
            return getattr(self, f"_{name}")(arguments)
        engine = self._engine.result()
        if name not in engine.commands:
            raise GtpError("unknown command")
        engine.send = answer.send
        return engine.commands[name](arguments)

    def _protocol_version(self, arguments: list) -> str:
        return "2"

    def _name(self, arguments: list) -> str:
        return NAME

    def _version(self, arguments: list) -> str:
        return f"{__version__} {self._model}".rstrip()

    def _known_command(self, arguments: list) -> str:
        return str(bool(arguments) and arguments[0] in self._list_commands([]).split("\n")).lower()

    def _list_commands(self, arguments: list) -> str:
        return "\n".join((*_OWN_COMMANDS, *self._engine.result().commands))

    _help = _list_commands

    def _quit(self, arguments: list) -> str:
        return ""

    def meanwhile(self) -> bool:
        """What to do while the client is silent: a little pondering, if the engine wants to."""
        if not self._engine.done() or self._engine.exception():
            return False
        try:
            return self._engine.result().ponder()
        except Exception:
            traceback.print_exc(file=sys.stderr)
            return False


def in_background(function: Callable) -> Future:
    """The result of `function`, on which a thread is at work."""
    future: Future = Future()

    def work() -> None:
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=work, name="gtp loader", daemon=True).start()
    return future


def private_stdout() -> Callable[[bytes], None]:
    """What writes to stdout. All others that do, native libraries included, write to stderr from now on."""
    while os.open(os.devnull, os.O_RDWR) <= 2:
        pass  # one of the usual three was closed, and the next file to be opened would have taken its place
    with contextlib.suppress(OSError):  # `write` will tell
        print(end="", flush=True)
    descriptor = os.dup(1)
    os.dup2(2, 1)

    def write(data: bytes) -> None:
        try:
            while data:
                data = data[os.write(descriptor, data) :]
        except OSError:
            raise BrokenPipeError from None  # a full disk, a terminal that is gone: nobody hears the answers

    return write


def play_gtp(prefix, config, **options) -> None:
    """Answer the client at stdin with the model at `prefix` until it says `quit` or is gone, then end the process."""
    from alphago_zero.model import load_model_info

    info = load_model_info(prefix)
    write, lines = private_stdout(), Lines(0)

    def make_engine():
        from alphago_zero.gtp_engine import Engine, Options, for_playing, load_player

        player = in_background(lambda: load_player(prefix, for_playing(config, info.rules)))
        return Engine(info.rules, player, Options(**options), pending=lines.pending, interrupted=lines.interrupted)

    code = 0
    try:
        converse(lines, Dialogue(in_background(make_engine), write, info.name))
    except BrokenPipeError:
        pass  # the client is gone
    except KeyboardInterrupt:
        code = 130
    os._exit(code)  # the loader may be deep in native code, where an orderly end of the interpreter would abort it


def converse(lines: Lines, dialogue: Dialogue) -> None:
    """Answer lines until `quit` or the end."""
    while True:
        line = lines.next(dialogue.meanwhile)
        if line is None or not dialogue.answer(line):
            return
