"""Self-play by many workers, and one writer.

In: a model and a number of games. Out: files of the run directory, each game's exactly once:
    data/selfplay/<model>/00000012.tfrecord.zz (or data/holdout/...), data/sgf/<model>/{clean,full}/00000012.sgf,
    a line of logs/selfplay.jsonl
A worker sends finished games; this process alone writes. A worker that dies is replaced, and its unfinished games are
played again. Between generations workers wait with their boards, and need no new start. Where the workers are is the
crew's affair: `LocalCrew` has one process a core, `ray_engine.RayCrew` actors on many computers.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import multiprocessing
import os
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import Callable

import numpy as np
from absl import logging

from alphago_zero.config import Config
from alphago_zero.constants import GAME_SUFFIX, RunPaths, game_files
from alphago_zero.errors import Failure
from alphago_zero.files import atomic_write_files
from alphago_zero.interrupts import children_unharmed
from alphago_zero.runlog import append_lines, selfplay_log
from alphago_zero.selfplay import FinishedGame, SelfplayWorker


class WorkerError(Failure):
    """Self-play cannot go on; the message says why."""


@dataclass(frozen=True)
class Usage:
    """What self-play has cost."""

    simulations: int = 0
    evaluations: int = 0  # by the network
    reused: int = 0  # evaluations found in the tree
    cpu_seconds: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(a + b for a, b in zip(dataclasses.astuple(self), dataclasses.astuple(other))))

    def __sub__(self, other: Usage) -> Usage:
        return Usage(*(a - b for a, b in zip(dataclasses.astuple(self), dataclasses.astuple(other))))


def finished_games(paths: RunPaths) -> set:
    """Numbers of the games that are on disk, were taken into the training data, or were left on another computer."""
    numbers = games_taken_in(paths)
    if paths.left_behind.exists():
        numbers.update(json.loads(paths.left_behind.read_text(encoding="utf-8")))
    for folder in ("selfplay", "holdout"):
        numbers.update(int(path.name.split(".")[0]) for path in game_files(paths.data / folder))
    return numbers


def games_taken_in(paths: RunPaths) -> set:
    """Numbers of the games that are in the training data."""
    from alphago_zero.preprocessing import read_ledger

    return {int(Path(game).name.split(".")[0]) for chunk in read_ledger(paths) for game in chunk.games}


def write_finished_games(paths: RunPaths, games: list) -> None:
    """Publish games: their SGF files first, then the records, with which they count, then their figures."""
    sgf, records = {}, {}
    for game in games:
        name = f"{game.number:08d}"
        sgf[paths.sgf_clean(game.model) / f"{name}.sgf"] = game.sgf_clean.encode()
        sgf[paths.sgf_full(game.model) / f"{name}.sgf"] = game.sgf_full.encode()
        folder = paths.holdout(game.model) if game.holdout else paths.selfplay(game.model)
        records[folder / f"{name}{GAME_SUFFIX}"] = game.record
    atomic_write_files(sgf)
    atomic_write_files(records)
    append_lines(selfplay_log(paths), [game.statistics for game in games])


class SelfplayPool:
    """The self-play workers of a run."""

    def __init__(self, paths: RunPaths, config: Config, crew: LocalCrew | None = None):
        self._paths, self._config = paths, config
        self._crew = crew or LocalCrew(config)
        self._finished = finished_games(paths)
        self._unassigned: deque = deque()  # games of workers that died
        self._new = (number for number in itertools.count() if number not in self._finished)
        self._task = None  # (model prefix, resign threshold, most games that a worker is to finish)
        self._running = False
        self._deaths = 0
        self._starts = itertools.count()
        self._past_usage = Usage()  # of workers that are gone
        self._workers = [self._start_worker(place) for place in range(self._crew.size)]

    def _start_worker(self, place: int):
        return self._crew.start(place, seed=[self._config.seed, next(self._starts), len(self._finished)])

    @property
    def games(self) -> int:
        """Games of this run that are on disk."""
        return len(self._finished)

    @property
    def usage(self) -> Usage:
        """Of all workers since this pool began, as far as they have told."""
        return sum((worker.usage for worker in self._workers), self._past_usage)

    @property
    def process_ids(self) -> list:
        return [worker.process.pid for worker in self._workers]

    def play(
        self,
        model_prefix: str | Path,
        total_games: int,
        resign_threshold: float,
        stop: Callable[[], bool] = lambda: False,
        on_game: Callable[[FinishedGame], None] | None = None,
    ) -> None:
        """Play with a model until `total_games` games of the run are on disk; then the workers wait with their boards.

        Where `stop` ends it earlier they play on, so that none is idle until the next call says with which model.
        """
        if self.games < total_games:
            self._task = (str(model_prefix), resign_threshold, total_games - self.games)
            self._running = True
            for worker in self._workers:
                self._set_to_work(worker)
            while self.games < total_games and not stop():
                self._gather(on_game, timeout=0.2)
        if self.games >= total_games:
            self._pause(on_game)

    def _set_to_work(self, worker) -> None:
        if worker.is_ready:
            self._supply(worker)
            worker.send("play", *self._task)

    def _supply(self, worker) -> None:
        """Let a worker have more than its boards need, even if all its games end at once."""
        missing = 3 * worker.boards - len(worker.games)
        numbers = [self._unassigned.popleft() if self._unassigned else next(self._new) for _ in range(missing)]
        if numbers:
            worker.games.update(numbers)
            worker.send("assign", numbers)

    def _gather(self, on_game, timeout: float) -> None:
        """Take in what the workers send, and replace those that died."""
        heard = list(self._crew.hear(self._workers, timeout))
        self._take_in([(worker, message[1]) for worker, message in heard if message and message[0] == "game"], on_game)
        for worker, message in heard:
            if message is None:
                self._replace(worker)
                continue
            kind, content, worker.usage = message
            if kind == "ready":
                worker.is_ready = True
                if self._running:
                    self._set_to_work(worker)
            elif kind == "paused":
                worker.playing = False
            elif kind != "game":
                raise WorkerError(content)

    def _take_in(self, arrived: list, on_game) -> None:
        """Games in the order in which they came, written together: under load that spares most syncs of the disk."""
        arrived = [(worker, game) for worker, game in arrived if game.number in worker.games]
        if not arrived:
            return
        write_finished_games(self._paths, [game for _, game in arrived])
        self._deaths = 0
        for worker, game in arrived:
            worker.games.remove(game.number)
            self._finished.add(game.number)
        for worker in dict.fromkeys(worker for worker, _ in arrived):
            if self._running:
                self._supply(worker)
        if on_game:
            for _, game in arrived:
                on_game(game)

    def _replace(self, worker) -> None:
        worker.stop()
        self._deaths += 1
        if self._deaths > self._crew.most_deaths:
            raise WorkerError(f"{self._deaths} self-play workers died in a row ({worker.obituary})")
        logging.warning("self-play worker %s died; its %d games are played again", worker.name, len(worker.games))
        self._unassigned.extend(sorted(worker.games))
        self._past_usage += worker.usage
        place = self._workers.index(worker)
        self._workers[place] = self._start_worker(place)
        if self._running:
            self._set_to_work(self._workers[place])

    def _pause(self, on_game) -> None:
        """Let every worker stop between two batches, and take in what it has finished."""
        self._running = False
        for worker in self._workers:
            if worker.playing:
                worker.send("pause")
        while any(worker.playing for worker in self._workers):
            self._gather(on_game, timeout=0.2)

    def close(self) -> None:
        for worker in self._workers:
            worker.stop()

    def __enter__(self) -> SelfplayPool:
        return self

    def __exit__(self, *_) -> None:
        self.close()


def available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class LocalCrew:
    """One worker process a core of this computer."""

    most_deaths = 5  # of workers in a row, with no game finished in between

    def __init__(self, config: Config):
        self._config = config
        self.size = config.selfplay.workers or available_cores()

    def start(self, place: int, seed: list) -> _Process:
        return _Process(self._config, seed)

    def hear(self, workers: list, timeout: float) -> Iterator[tuple]:
        """(worker, message) for each that has something to say within `timeout`; None is the message of a dead one."""
        by_pipe = {worker.pipe: worker for worker in workers}
        for pipe in wait(list(by_pipe), timeout):
            try:
                yield by_pipe[pipe], pipe.recv()
            except (EOFError, OSError):
                yield by_pipe[pipe], None


class Worker:
    """A worker as the pool sees it; a crew's own has `send`, `stop` and `obituary`, too."""

    def __init__(self, name: str, boards: int, is_ready: bool):
        self.name = name
        self.boards = boards  # games in lockstep
        self.is_ready = is_ready  # it may be given games; else it will say so
        self.games: set = set()  # numbers that it has and has not finished
        self.playing = False
        self.usage = Usage()

    def send(self, command: str, *arguments) -> None:
        self.playing = self.playing or command == "play"
        self._send(command, *arguments)


class _Process(Worker):
    """A worker process as its parent sees it."""

    def __init__(self, config: Config, seed: list):
        context = multiprocessing.get_context("spawn")  # nothing of this process, TensorFlow least of all, goes along
        self.pipe, other_end = context.Pipe()
        self.process = context.Process(target=worker_main, args=(other_end, config, seed), daemon=True)
        with children_unharmed():
            self.process.start()
        other_end.close()
        super().__init__(str(self.process.pid), config.selfplay.parallel_games, is_ready=True)

    def _send(self, command: str, *arguments) -> None:
        try:
            self.pipe.send((command, arguments))
        except OSError:  # it died; `hear` will see that
            pass

    @property
    def obituary(self) -> str:
        return f"exit code {self.process.exitcode}"

    def stop(self) -> None:
        self.process.terminate()
        self.process.join()
        self.pipe.close()


def worker_main(pipe, config: Config, seed: list) -> None:
    """A worker process: obeys `assign`, `play` and `pause`, sends finished games, ends when its parent is gone.

    It pauses by itself after as many games as `play` said, and waits rather than leave a board empty. So what it plays
    does not depend on when a word reaches it: a worker that is alone plays the same games again with the same seed.
    """
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        serve(pipe, config, seed)


def serve(pipe, config: Config, seed: list) -> None:
    """Obey and play for ever; `pipe` has `poll`, `recv` and `send`."""
    try:
        _serve(pipe, config, seed)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        raise
    except Exception as error:  # the parent reports it: nothing is swallowed
        pipe.send(("error", f"self-play worker: {type(error).__name__}: {error}", Usage()))


def _serve(pipe, config: Config, seed: list) -> None:
    from alphago_zero.inference import load_evaluator

    worker = SelfplayWorker(config, np.random.default_rng(seed))
    evaluator, loaded, playing, games_left = None, None, False, 0

    def usage() -> Usage:
        return Usage(*(int(count) for count in worker.counters), time.process_time())

    def pause() -> None:
        nonlocal playing
        if playing:  # said once, whoever wants it
            playing = False
            pipe.send(("paused", None, usage()))

    while True:
        while not playing or worker.is_short or pipe.poll():
            command, arguments = pipe.recv()
            if command == "assign":
                worker.assign(*arguments)
            elif command == "pause":
                pause()
            else:
                prefix, threshold, games_left = arguments
                if prefix != loaded:
                    settings = config.inference
                    evaluator = load_evaluator(prefix, worker.batch_size, 1, settings.backend, settings.precision)
                    loaded = prefix
                worker.take(evaluator, threshold)
                playing = True
        for game in worker.step():
            pipe.send(("game", game, usage()))
            games_left -= 1
        if games_left <= 0:
            pause()
