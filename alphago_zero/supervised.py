"""Learning from people's games instead of self-play (paper: Methods, 'Supervised learning from human data').

In: SGF files. Out: a record file a game, where `preprocessing.aggregate` looks for games: pi is all on the move that
was played, z the outcome. The network and its training are the same; `training.value_weight` is to be 0.01, because a
few games with one outcome each are soon known by heart. Give such a run a directory of its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from absl import logging

from alphago_zero.alphagozero_agent import outcomes
from alphago_zero.config import Config
from alphago_zero.constants import GAME_SUFFIX, RunPaths
from alphago_zero.features import extract_features
from alphago_zero.preprocessing import write_game
from alphago_zero.sgf import GameRecord, SgfError, read_sgf

FOLDER = "supervised"  # in the place of a model's name


def game_examples(record: GameRecord) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """planes [T, N, N, 17], pi [T, moves] and z [T] of a game whose winner is known, one row a move."""
    states = list(record.states())
    colors, moves = (np.array(column) for column in zip(*record.moves))
    planes = [extract_features(state.with_to_play(color)) for state, color in zip(states, colors)]
    return np.stack(planes), np.eye(record.rules.points + 1, dtype=np.float32)[moves], outcomes(colors, record.winner)


def import_games(paths: RunPaths, config: Config, files: Iterable[str | Path]) -> int:
    """Take in what can be used of these files, `selfplay.holdout` of it for validation; returns how many games.

    A game is named by its moves: whoever imports it again, from whatever file, finds it there.
    """
    names = set()
    for file in files:
        try:
            record = read_sgf(file)
            _check(record, config.game.board_size, file)
        except SgfError as error:
            logging.warning("left out: %s", error)
            continue
        digest = hashlib.sha256(repr((record.rules, record.black_setup, record.white_setup, record.moves)).encode())
        number = int.from_bytes(digest.digest()[:6], "big")
        held_out = np.random.default_rng([config.seed, number]).random() < config.selfplay.holdout
        folder = paths.holdout(FOLDER) if held_out else paths.selfplay(FOLDER)
        write_game(folder / f"{number:015d}{GAME_SUFFIX}", *game_examples(record))
        names.add(number)
    return len(names)


def _check(record: GameRecord, size: int, file: str | Path) -> None:
    if record.rules.board_size != size:
        raise SgfError(f"{file}: played on {record.rules.board_size}x{record.rules.board_size}, not on {size}x{size}")
    if not record.moves or record.winner is None:
        raise SgfError(f"{file}: no moves" if not record.moves else f"{file}: nobody knows who won")
