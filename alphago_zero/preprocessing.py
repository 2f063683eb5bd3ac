"""From games to training batches.

    data/selfplay/<model>/*.tfrecord.zz     a file a game, as self-play writes them
        -- aggregate -->                    each game exactly once, whenever the stage is killed
    data/training_chunks/*.tfrecord.zz      shuffled examples of many games, and ledger.jsonl
        -- load_window, training_batches -> uniform over the positions of the most recent games (paper: 500,000),
                                            each turned by a random one of the eight symmetries
The ledger decides: a chunk is what a line of the ledger says it is, and a file it does not name is a killed stage's
leftover. A file that cannot be read is set aside in data/damaged, named in the log, and the rest is used.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from absl import logging

from alphago_zero.config import Config, TrainingConfig
from alphago_zero.constants import GAME_SUFFIX, RunPaths, game_files
from alphago_zero.files import atomic_write_text, remove_temporaries
from alphago_zero.records import (
    UNKNOWN,
    RecordError,
    example_dtype,
    make_examples,
    read_examples,
    to_bytes,
    unpack_planes,
    write_examples,
)
from alphago_zero.symmetries import point_permutations

Batch = dict[str, np.ndarray]


def write_game(path: str | Path, planes, pi, z, ownership=None) -> None:
    """Publish the examples of one game; shapes as in `records.make_examples`."""
    write_examples(path, make_examples(planes, pi, z, ownership))


def game_to_bytes(planes, pi, z, ownership=None) -> bytes:
    """What `write_game` writes, for another channel than a file."""
    return to_bytes(make_examples(planes, pi, z, ownership))


def read_game(path: str | Path, size: int = 9) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
    """planes, pi, z and ownership, as they were given to `write_game`."""
    examples = read_examples(path, size)
    ownership = examples["ownership"]
    return (
        unpack_planes(examples["x"]),
        examples["pi"].copy(),
        examples["z"].copy(),
        None if (ownership == UNKNOWN).all() else ownership.copy(),
    )


@dataclass(frozen=True)
class Chunk:
    """A line of the ledger: a file of shuffled examples and the games they are from."""

    file: str  # in data/training_chunks
    positions: int
    games: tuple[str, ...]  # <model>/<file> in data/selfplay


def ledger_path(paths: RunPaths) -> Path:
    return paths.chunks / "ledger.jsonl"


def read_ledger(paths: RunPaths) -> list[Chunk]:
    """All chunks ever made, oldest first."""
    path = ledger_path(paths)
    if not path.exists():
        return []
    try:
        lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
        return [Chunk(line["file"], line["positions"], tuple(line["games"])) for line in lines]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise RecordError(f"{path} is damaged: {error}") from None


@dataclass(frozen=True)
class Aggregation:
    """What one call of `aggregate` took in."""

    games: int
    positions: int
    damaged: tuple[str, ...]


def aggregate(paths: RunPaths, config: Config, rng: np.random.Generator, most_games: int | None = None) -> Aggregation:
    """Take new self-play games into shuffled chunks of about `chunk_examples`; drop chunks beyond the window.

    All of them, or oldest first until the ledger has `most_games`.

    Chunks hold whole games, so that the window can be cut between them. They are written first; then the new ledger
    takes the old one's place, and only from that moment on are the games taken in.
    """
    ledger = read_ledger(paths)
    _remove_leftovers(paths, ledger)
    taken = {game for chunk in ledger for game in chunk.games}
    new: list[Chunk] = []
    damaged: list[str] = []
    pending: dict[str, np.ndarray] = {}

    def write_chunk() -> None:
        examples = np.concatenate(list(pending.values()))
        file = f"{len(ledger) + len(new):08d}{GAME_SUFFIX}"
        write_examples(paths.chunks / file, examples[rng.permutation(len(examples))])
        new.append(Chunk(file, len(examples), tuple(pending)))
        pending.clear()

    new_games = [game for game in _selfplay_games(paths) if game not in taken]
    for game in new_games if most_games is None else new_games[: max(0, most_games - len(taken))]:
        examples = _read_or_set_aside(paths, paths.selfplay(game), config.game.board_size)
        if examples is None:
            damaged.append(game)
            continue
        pending[game] = examples
        if sum(map(len, pending.values())) >= config.training.chunk_examples:
            write_chunk()
    if pending:
        write_chunk()
    if new:
        lines = (json.dumps(dataclasses.asdict(chunk)) + "\n" for chunk in ledger + new)
        atomic_write_text(ledger_path(paths), "".join(lines))
    _prune(paths, ledger + new, config.training)
    return Aggregation(sum(len(chunk.games) for chunk in new), sum(chunk.positions for chunk in new), tuple(damaged))


def _selfplay_games(paths: RunPaths) -> list[str]:
    root = paths.selfplay("")
    return [path.relative_to(root).as_posix() for path in game_files(root)]


def _remove_leftovers(paths: RunPaths, ledger: list[Chunk]) -> None:
    known = {chunk.file for chunk in ledger}
    remove_temporaries(paths.chunks)
    for path in paths.chunks.glob(f"*{GAME_SUFFIX}"):
        if path.name not in known:
            path.unlink()


def _prune(paths: RunPaths, ledger: list[Chunk], training: TrainingConfig) -> None:
    """Delete the chunks beyond the window, and the records of their games. (SGF files are kept.)"""
    for chunk in ledger[: len(ledger) - len(window(ledger, training))]:
        file = paths.chunks / chunk.file
        if file.exists():  # deleted last, so that a kill in between is made up for
            for game in chunk.games:
                paths.selfplay(game).unlink(missing_ok=True)
            file.unlink()


def window(ledger: list[Chunk], training: TrainingConfig) -> list[Chunk]:
    """The newest chunks that hold the window's games or, by less than a chunk, more; all, if there are fewer."""
    share = training.window_share * sum(len(chunk.games) for chunk in ledger)
    games = min(training.window_games, max(training.window_least, share))
    first = len(ledger)
    while first > 0 and games > 0:
        first -= 1
        games -= len(ledger[first].games)
    return ledger[first:]


def load_window(paths: RunPaths, config: Config, limit: int, rng: np.random.Generator) -> np.ndarray:
    """At most `limit` examples, drawn evenly from all positions of the window.

    What one call of training will look at is all that is held in memory, however large the window is.
    """
    chunks = window(read_ledger(paths), config.training)
    ends = np.cumsum([chunk.positions for chunk in chunks], dtype=np.int64)
    kept = rng.permutation(ends[-1] if len(ends) else 0) < limit  # [positions of the window]
    parts = []
    for chunk, end in zip(chunks, ends):
        examples = _read_or_set_aside(paths, paths.chunks / chunk.file, config.game.board_size)
        if examples is not None:
            parts.append(examples[kept[end - chunk.positions : end]])
    if len(parts) < len(chunks):
        logging.warning("%d of the window's %d chunks are not there", len(chunks) - len(parts), len(chunks))
    return np.concatenate([np.empty(0, example_dtype(config.game.board_size)), *parts])


def load_holdout(paths: RunPaths, models: int, size: int) -> np.ndarray:
    """All examples of the games that the self-play of the newest `models` models kept out of training."""
    games = [_read_or_set_aside(paths, path, size) for path in holdout_files(paths, models)]
    return np.concatenate([np.empty(0, example_dtype(size)), *(game for game in games if game is not None)])


def holdout_files(paths: RunPaths, models: int) -> list[Path]:
    """The games that the self-play of the newest `models` models kept out of training."""
    files = game_files(paths.holdout(""))
    newest = sorted({path.parent for path in files})[-models:]
    return [path for path in files if path.parent in newest]


def _read_or_set_aside(paths: RunPaths, path: Path, size: int) -> np.ndarray | None:
    try:
        return read_examples(path, size)
    except FileNotFoundError:
        pass  # a run that was moved to another computer may leave its games behind
    except RecordError as error:
        aside = paths.damaged / path.relative_to(paths.data)
        aside.parent.mkdir(parents=True, exist_ok=True)
        os.replace(path, aside)
        logging.warning("%s; set aside as %s", error, aside)
    return None


def training_batches(examples: np.ndarray, batch_size: int, rng: np.random.Generator) -> Iterator[Batch]:
    """Batches without end: every example once, in random order and by a random symmetry, then all again."""
    order = np.empty(0, np.int64)
    while True:
        while len(order) < batch_size:
            order = np.concatenate([order, rng.permutation(len(examples))])
        yield make_batch(examples[order[:batch_size]], rng.integers(8, size=batch_size))
        order = order[batch_size:]


def plain_batches(examples: np.ndarray, batch_size: int) -> Iterator[Batch]:
    """Every example once, as it stands."""
    for start in range(0, len(examples), batch_size):
        part = examples[start : start + batch_size]
        yield make_batch(part, np.zeros(len(part), np.int64))


def make_batch(examples: np.ndarray, symmetries: np.ndarray) -> Batch:
    """planes, pi, z, ownership as the network wants them, each example turned by its own symmetry."""
    x = examples["x"]
    count, points = len(x), x.shape[1] // 2
    size = int(np.sqrt(points))
    moves = point_permutations(size)[symmetries].astype(np.int64)  # [B, points + 1]: turned[p] = original[moves[p]]
    stones = x[:, :-1].reshape(count, points, 2)
    turned = np.empty_like(x)
    turned[:, :-1] = np.take_along_axis(stones, moves[:, :-1, None], axis=1).reshape(count, -1)
    turned[:, -1] = x[:, -1]
    return {
        "planes": unpack_planes(turned),
        "pi": np.take_along_axis(examples["pi"], moves, axis=1),
        "z": examples["z"].copy(),
        "ownership": np.take_along_axis(examples["ownership"], moves[:, :-1], axis=1),
    }
