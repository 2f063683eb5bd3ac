"""What works on the nodes of a Ray cluster, and shares no files with the driver (`ray_engine.py`).

    SelfplayActor   a worker of `workers.py` in a thread: commands go in, finished games come out as bytes
    StageActor      the learner and the evaluators: stages of `engines.py` on a mirror of the files that they read
Each has a folder of its own on its node's disk, which goes with it: what it needs comes from the driver.
"""

from __future__ import annotations

import dataclasses
import getpass
import os
import queue
import shutil
import socket
import tempfile
import threading
import time
from pathlib import Path

import ray

from alphago_zero.config import Config
from alphago_zero.engines import learn, validate
from alphago_zero.errors import UserError
from alphago_zero.match import Match
from alphago_zero.mirror import Mirror, is_alive, publication_order
from alphago_zero.workers import Usage, serve

_KEPT_MODELS = 4  # in an actor's folder: more than a match needs


def scratch_folder() -> Path:
    """An empty folder for this process alone. Those of processes that are gone are deleted."""
    root = Path(tempfile.gettempdir()) / f"alphago-zero-{getpass.getuser()}"
    root.mkdir(mode=0o700, exist_ok=True)
    if root.is_symlink() or root.stat().st_uid != os.getuid():
        raise UserError(f"{root} belongs to somebody else")
    for left_behind in root.glob("[0-9]*-*"):
        if not is_alive(int(left_behind.name.split("-")[0])):
            shutil.rmtree(left_behind, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=root))


def keep_model(folder: Path, label: str, files: dict) -> Path:
    """The model's prefix in this folder; `label` is its name and a fingerprint of its contents."""
    kept, name = folder / label, label.rpartition(".")[0]
    kept.mkdir(parents=True, exist_ok=True)
    for suffix, data in files.items():
        path = kept / f"{name}{suffix}"
        if not path.exists():
            path.write_bytes(data)
    os.utime(kept)
    for old in sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime_ns)[:-_KEPT_MODELS]:
        shutil.rmtree(old)
    return kept / name


class ThreadPipe:
    """The worker's end of what a pipe is between processes."""

    def __init__(self):
        self.commands: queue.SimpleQueue = queue.SimpleQueue()
        self.messages: queue.SimpleQueue = queue.SimpleQueue()

    def poll(self) -> bool:
        return not self.commands.empty()

    def recv(self) -> tuple:
        return self.commands.get()

    def send(self, message: tuple) -> None:
        self.messages.put(message)


def drain(messages: queue.SimpleQueue, seconds: float) -> list:
    """All that is in a queue; if it is empty, what comes first within so many seconds, and all that came with it."""
    taken = []
    try:
        taken.append(messages.get(timeout=seconds))
        while True:
            taken.append(messages.get_nowait())
    except queue.Empty:
        return taken


@ray.remote(max_restarts=0, concurrency_groups={"hear": 1, "tell": 1})
class SelfplayActor:
    """A self-play worker in a thread, so that it need not wait for the driver; `tell` and `hear` are its pipe."""

    def __init__(self, config: Config, seed: list):
        self._models, self._pipe = scratch_folder(), ThreadPipe()
        self._pipe.send(("ready", None, Usage()))
        threading.Thread(target=serve, args=(self._pipe, config, seed), daemon=True).start()

    @ray.method(concurrency_group="tell")
    def tell(self, command: str, *arguments) -> None:
        if command == "play":
            label, files, *rest = arguments
            try:
                arguments = (keep_model(self._models, label, files), *rest)
            except OSError as error:  # nobody waits for this call: the driver hears of it as of a worker's error
                self._pipe.send(("error", f"self-play actor on {socket.gethostname()}: {error}", Usage()))
                return
        self._pipe.commands.put((command, arguments))

    @ray.method(concurrency_group="hear")
    def hear(self, seconds: float) -> list:
        """All messages since the last call; if there are none, the next one, unless it takes longer than `seconds`."""
        return drain(self._pipe.messages, seconds)


@ray.remote(max_restarts=0)
class StageActor:
    """The learner or an evaluator, with a mirror of the part of the run that it needs."""

    def __init__(self, config: Config):
        scratch = scratch_folder()
        self._config, self._models, self._mirror = config, scratch / "models", Mirror(scratch / "run")
        self._match = None

    def receive(self, parcel: dict) -> None:
        self._mirror.receive(parcel)

    def run(self, stage: str, names: list, *arguments) -> tuple:
        """What the stage came to, the files that it wrote as references, and the CPU time of this process so far."""
        self._mirror.forget_but(names)
        before = self._mirror.snapshot()
        result = {"learn": learn, "validate": validate}[stage](self._mirror.paths, self._config, *arguments)
        after = self._mirror.snapshot()
        changed = [name for name, version in after.items() if before.get(name) != version]
        files = {name: ray.put((self._mirror.paths.root / name).read_bytes()) for name in publication_order(changed)}
        return result, files, time.process_time()

    def seat(self, a, b, labels: tuple, models: tuple, config: Config, numbers: list, games: int, seed: int) -> None:
        """Begin with these games of a match of two models."""
        models = [keep_model(self._models, label, ray.get(files)) for label, files in zip(labels, models)]
        a, b = (dataclasses.replace(spec, model=model) for spec, model in zip((a, b), models))
        self._match = Match(a, b, config, numbers, games, seed)

    def play_on(self) -> tuple:
        """The games of the match that ended within a second or so, and the CPU time of this process so far."""
        ended, began = [], time.monotonic()
        while not self._match.is_over and not ended and time.monotonic() - began < 1:
            ended = self._match.ply()
        return ended, time.process_time()
