"""A program that speaks the Go Text Protocol, as an opponent: started, asked, and ended whatever it does.

In: a command line (`gnugo --mode gtp`). Out: answers to commands, or one of three errors: the program refused
(`GtpRefusal`, it can be asked on), it is gone (`GtpDied`), it did not answer in time or in GTP (`GtpHang`).
"""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence

_MOST_LINES = 1000  # of one answer, or of noise before it
_MOST_CHARACTERS = 10_000  # of one line
_GAMES_FOLDERS = ("/usr/games", "/usr/local/games")  # where Debian keeps GNU Go; often not on the PATH


class GtpError(RuntimeError):
    """What a program did wrong; the message is one line."""


class GtpRefusal(GtpError):
    """It answered with an error."""


class GtpDied(GtpError):
    """It ended, or never began."""


class GtpHang(GtpError):
    """No answer within the time allowed."""


def find_program(name: str) -> str | None:
    """The path of a program: on the PATH, or where games are kept."""
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join(_GAMES_FOLDERS))


class GtpProgram:
    """A running program.

    >>> program = GtpProgram(["gnugo", "--mode", "gtp"], timeout=60)    # doctest: +SKIP
    >>> program.ask("genmove black")                                    # doctest: +SKIP
    'E5'
    """

    def __init__(self, command: Sequence[str], timeout: float):
        self.command, self.timeout = list(command), timeout
        self._errors = tempfile.TemporaryFile()  # what it writes to stderr: the last line tells why it died
        try:
            self._process = subprocess.Popen(
                [find_program(command[0]) or command[0], *command[1:]],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                start_new_session=True,  # Ctrl-C is ours to handle; and its children can be ended with it
            )
        except OSError as error:
            self._errors.close()
            raise GtpDied(f"cannot start {command[0]}: {error.strerror}") from None
        self._lines: queue.Queue = queue.Queue(maxsize=2 * _MOST_LINES)  # full: a flood waits in the pipe
        threading.Thread(target=self._read, args=(self._process.stdout, self._lines), daemon=True).start()

    @staticmethod
    def _read(stdout, lines: queue.Queue) -> None:
        for line in iter(lambda: stdout.readline(_MOST_CHARACTERS), b""):
            lines.put(line.decode("utf-8", errors="replace").strip())
        lines.put(None)
        stdout.close()

    def ask(self, command: str) -> str:
        """The text of the answer."""
        self.send(command)
        return self.receive(command)

    def send(self, command: str) -> None:
        try:
            self._process.stdin.write(command.encode() + b"\n")
            self._process.stdin.flush()
        except (OSError, ValueError):
            raise self._death(command) from None

    def receive(self, command: str) -> str:
        """The answer to `command`, which was sent."""
        deadline = time.monotonic() + self.timeout
        for _ in range(_MOST_LINES):
            line = self._next_line(command, deadline)
            if line[:1] in ("=", "?"):
                break
        else:
            raise GtpHang(f"answers {command!r} with {_MOST_LINES} lines that are not GTP")
        answer = [line[1:].lstrip("0123456789").strip()]
        while len(answer) < _MOST_LINES:
            following = self._next_line(command, deadline)
            if not following:
                break
            answer.append(following)
        text = "\n".join(answer).strip()
        if line.startswith("?"):
            raise GtpRefusal(f"refuses {command!r}: {' '.join(text.split())[:200]}")
        return text

    def _next_line(self, command: str, deadline: float) -> str:
        try:
            line = self._lines.get(timeout=max(deadline - time.monotonic(), 0))
        except queue.Empty:
            raise GtpHang(f"no answer to {command!r} within {self.timeout:g} seconds") from None
        if line is None:
            self._lines.put(None)  # so will be the next
            raise self._death(command)
        return line

    def _death(self, command: str) -> GtpDied:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=1)
        self._errors.seek(0)
        said = self._errors.read()[-2000:].decode("utf-8", errors="replace").split("\n")
        last_words = next((line.strip()[:200] for line in reversed(said) if line.strip()), "")
        code = self._process.returncode
        how = "closed its output" if code is None else f"ended with exit code {code}"
        return GtpDied(f"{how} at {command!r}" + (f": {last_words}" if last_words else ""))

    def quit(self) -> None:
        """Ask it to end; `close` makes sure."""
        with contextlib.suppress(OSError, ValueError):
            self._process.stdin.write(b"quit\n")
            self._process.stdin.close()

    def close(self, patience: float = 2.0) -> None:
        """End the program and what it started."""
        self.quit()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=patience)
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._errors.close()
