"""A run as the page shows it, read from its files alone: the run's lock is never touched, nothing is written.

In: a run directory in which a loop may be at work. Out: messages to every page that watches, whenever something
changed: `run` (where it stands), `generations` (a line for each model: losses, match, Elo, what self-play was like) and
`games` (that there are new ones). Files are looked at every two seconds, less often where that takes long.
"""

from __future__ import annotations

import asyncio
import contextlib
import csv
import io
import json
import math
import os
import time
from collections import Counter
from typing import Callable

from absl import logging

from alphago_zero.arena import wilson_interval
from alphago_zero.config import Config
from alphago_zero.constants import RunPaths
from alphago_zero.ladder import short_name
from alphago_zero.runlog import read_generations
from alphago_zero.status import read_status
from alphago_zero.web.limits import Refusal

_INTERVAL = 2.0  # seconds
_SHARE = 0.05  # of a core that looking at files may take
_COPIED = (
    "time games positions length pass_rate first_pass resigned black_wins pi_entropy p_entropy value_error "
    "selfplay_s train_s evaluate_s moves_per_s evals_per_s promoted match"
).split()
_LOSSES = ("policy_loss", "value_loss", "policy_accuracy", "value_accuracy", "policy_entropy", "l2_loss")


class RunWatch:
    """Looks at a run while somebody watches."""

    def __init__(self, paths: RunPaths, config: Config):
        self._paths, self._config = paths, config
        self._watchers: set = set()
        self._task: asyncio.Task | None = None
        self._messages: dict = {}  # type: the newest message of that type

    def watcher(self, send: Callable) -> Watcher:
        watcher = Watcher(self, send)
        self._watchers.add(watcher)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look())
        return watcher

    def leave(self, watcher: Watcher) -> None:
        self._watchers.discard(watcher)

    async def close(self) -> None:
        self._watchers.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _look(self) -> None:
        while self._watchers:
            start = time.monotonic()
            try:
                self._messages = await asyncio.to_thread(read_run, self._paths, self._config)
            except OSError:
                pass  # a file went while it was looked at: next time
            except Exception as error:
                logging.exception("reading the run")
                problem = f"The run's files cannot be read: {type(error).__name__}: {error}"
                self._messages = {"run": {"type": "run", "problem": problem}}
            took = time.monotonic() - start
            for watcher in list(self._watchers):
                watcher.notify(self._messages)
            await asyncio.sleep(max(_INTERVAL, took / _SHARE))


class Watcher:
    """One page that watches."""

    def __init__(self, watch: RunWatch, send: Callable):
        self._watch, self._send = watch, send
        self._told: dict = {}  # type: the last message, as text
        self._telling: asyncio.Task | None = None

    async def handle(self, message: dict) -> None:
        if message["type"] != "hello":
            raise Refusal("type must be hello.")
        self._told = {}
        await self.tell(self._watch._messages)

    def notify(self, messages: dict) -> None:
        """Send what is new, unless the page still has to take the last news: others do not wait for a slow one."""
        if self._telling is None or self._telling.done():
            self._telling = asyncio.create_task(self.tell(messages))

    async def tell(self, messages: dict) -> None:
        """Send what is new."""
        for kind, message in messages.items():
            text = json.dumps(message)
            if self._told.get(kind) != text:
                self._told[kind] = text
                try:
                    await self._send(message)
                except ConnectionError:
                    self._watch.leave(self)
                    return

    async def close(self) -> None:
        self._watch.leave(self)


def read_run(paths: RunPaths, config: Config) -> dict:
    """The messages about a run, by type."""
    if not paths.models.is_dir():
        missing = f"There is no run in {paths.root.resolve()} yet: scripts/train, started there, begins one."
        return {
            "run": {"type": "run", "missing": missing, "models": []},
            "generations": {"type": "generations", **generations([], [], [])},
        }
    status = read_status(paths, config, running=_seems_to_run(paths))
    lines = read_generations(paths)
    shown = "generation stage games games_wanted games_per_generation positions best running hours disk_mb".split()
    return {
        "run": {"type": "run", **{key: status[key] for key in shown}, "models": status["models"]},
        "generations": {"type": "generations", **generations(lines, status["models"], read_ladder(paths))},
    }


def _seems_to_run(paths: RunPaths) -> bool:
    """Is the process alive whose number stands in the lock file? (The file is read; the lock is not asked for.)"""
    try:
        os.kill(int((paths.root / "run.lock").read_text(encoding="utf-8")), 0)
    except PermissionError:
        return True
    except (OSError, ValueError, OverflowError):
        return False
    return True


def read_ladder(paths: RunPaths) -> list:
    """The rows of `logs/ladder.csv`, which `controller.py ladder` leaves; none if there is no such file."""
    try:
        text = (paths.logs / "ladder.csv").read_text(encoding="utf-8")
    except OSError:
        return []
    rows = []
    for row in csv.DictReader(io.StringIO(text)):
        with contextlib.suppress(KeyError, TypeError, ValueError):
            rows.append((row["player"], float(row["elo"]), float(row["margin"])))
    return [row for row in rows if math.isfinite(row[1]) and math.isfinite(row[2])]


def generations(lines: list, models: list, ladder: list) -> dict:
    """A row for each model with what the charts need. Elo: by the ladder if there is one, else by the gate."""
    first = [{"model": models[0]}] if models and (not lines or lines[0]["model"] != models[0]) else []
    rows = first + [_figures(line) for line in lines]
    source = "none"
    anchors: list = []
    if ladder:
        source, anchors = "ladder", _rate_by_ladder(rows, models, ladder)
    elif any(line.get("match") for line in lines):
        source = "gate"
        _rate_by_gate(rows)
    return {"generations": rows, "elo_source": source, "anchors": anchors}


def _figures(line: dict) -> dict:
    row = {"model": line["model"], **{key: line[key] for key in _COPIED if key in line}}
    for part in ("training", "validation"):
        row[part] = {key: value for key, value in (line.get(part) or {}).items() if key in _LOSSES}
    return row


def _rate_by_gate(rows: list) -> None:
    """Elo from one match to the next, random weights are 0; errors add up as those of independent matches do."""
    elo, variance = 0.0, 0.0
    if "match" not in rows[0]:
        rows[0].update(elo=0, elo_low=0, elo_high=0)
    for row in rows:
        if not row.get("match"):
            continue
        difference, deviation = _elo_difference(row["match"])
        rating, spread = elo + difference, 1.96 * math.sqrt(variance + deviation**2)
        row.update(elo=round(rating), elo_low=round(rating - spread), elo_high=round(rating + spread))
        if row["promoted"]:  # the next one is measured against it
            elo, variance = rating, variance + deviation**2


def _rate_by_ladder(rows: list, models: list, ladder: list) -> list:
    """Elo of the models, at the number of readouts that most of them played with; returns the anchors."""
    split = [(*player.partition("@")[::2], elo, margin) for player, elo, margin in ladder]
    ours = [entry for entry in split if entry[0] in models]
    readouts = Counter(entry[1] for entry in ours).most_common(1)
    rated = {name: (elo, margin) for name, count, elo, margin in ours if count == readouts[0][0]}
    for row in rows:
        if row["model"] in rated:
            elo, margin = rated[row["model"]]
            row.update(elo=round(elo), elo_low=round(elo - margin), elo_high=round(elo + margin))
    return [{"player": short_name(name)[:40], "elo": round(elo)} for name, _, elo, _ in split if name not in models]


def _elo_difference(match: dict) -> tuple:
    """Elo by which A is stronger, and its standard deviation, from the score and its 95 % interval."""
    games = max(match["games"], 1)
    share = (match["wins_a"] + match["draws"] / 2 + 0.5) / (games + 1)  # half a game to either side, as in `status`
    low, high = (_elo(bound) for bound in wilson_interval(share, games + 1))
    return _elo(share), (high - low) / (2 * 1.96)


def _elo(share: float) -> float:
    share = min(max(share, 1e-3), 1 - 1e-3)
    return 400 * math.log10(share / (1 - share))
