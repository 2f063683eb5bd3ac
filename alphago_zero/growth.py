"""A new run begins with the games of another, mostly a larger network with those of a smaller one (not in the paper).

In: another run's directory. Out: chunks and ledger of this run, and `origin.json`: whose games they were and what they
had cost. The loop does the rest: it finds games that no model of its own has seen, and trains before it plays.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil

from absl import logging

from alphago_zero.config import Config
from alphago_zero.constants import GAME_SUFFIX, RunPaths
from alphago_zero.errors import UserError
from alphago_zero.files import atomic_write_text
from alphago_zero.preprocessing import Chunk, ledger_path, read_ledger, window
from alphago_zero.runlog import read_generations, read_lines


def adopt_games(paths: RunPaths, source: RunPaths, config: Config) -> None:
    """Take over the games of another run's window. Once: a run that has games of its own goes on with them."""
    if read_ledger(paths):
        logging.info("the run in %s has games: nothing is taken from %s", paths.root, source.root)
        return
    _check_rules(source, config)
    chunks = [chunk for chunk in window(read_ledger(source), config.training) if (source.chunks / chunk.file).exists()]
    if not chunks:
        raise UserError(f"no games to learn from in {source.chunks}: it has no chunk that its ledger names")
    paths.chunks.mkdir(parents=True, exist_ok=True)
    adopted = [dataclasses.replace(chunk, file=f"{k:08d}{GAME_SUFFIX}") for k, chunk in enumerate(chunks)]
    for old, new in zip(chunks, adopted):
        _link(source.chunks / old.file, paths.chunks / new.file)
    origin = {**_cost(source), "run": source.root.name, "adopted": _count(adopted)}
    atomic_write_text(origin_path(paths), json.dumps(origin) + "\n")
    lines = (json.dumps(dataclasses.asdict(chunk)) + "\n" for chunk in adopted)
    atomic_write_text(ledger_path(paths), "".join(lines))  # last: from now on they are this run's
    logging.info("%d games of %s are learned from first", origin["adopted"], source.root)


def origin_path(paths: RunPaths):
    return paths.root / "origin.json"


def _check_rules(source: RunPaths, config: Config) -> None:
    kept = source.root / "config.json"
    try:
        rules = json.loads(kept.read_text(encoding="utf-8"))["game"]
    except FileNotFoundError:
        raise UserError(f"{source.root} is no run directory: it has no config.json") from None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UserError(f"{kept} cannot be read: {error}") from None
    for key, value in dataclasses.asdict(config.game).items():
        if rules.get(key) != value:
            raise UserError(f"game.{key} is {value}, but the games in {source.root} were played with {rules.get(key)}")


def _cost(source: RunPaths) -> dict:
    """CPU time and games until now, with those of the run that it had its own first games from."""
    lines = read_generations(source)
    before = read_lines(origin_path(source), "cpu_s")[:1] or [{"cpu_s": 0.0, "games": 0}]
    return {
        "cpu_s": round(before[0]["cpu_s"] + sum(line.get("cpu_s", 0.0) for line in lines), 1),
        "games": before[0]["games"] + _count(read_ledger(source)),
    }


def _count(chunks: list[Chunk]) -> int:
    return sum(len(chunk.games) for chunk in chunks)


def _link(source, target) -> None:
    """The same file under another name; a copy where the other run lies on another disk."""
    target.unlink(missing_ok=True)  # of a killed start
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
