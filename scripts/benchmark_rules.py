"""The rules on one core: random games, and what compiling them costs (`scripts/benchmark.py rules`)."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from alphago_zero import go
from alphago_zero.jit import njit
from alphago_zero.random_play import random_move, random_playout

SIZE = 9


@njit
def random_games(games, geometry, fresh, positions, hashes, random):
    """Play games to their ends, no own eye filled; return the number of moves."""
    moves = 0
    for _ in range(games):
        go.copy_position(fresh, 0, positions, 0)
        hashes[0] = 0
        random_playout(positions, 0, geometry, False, 2 * geometry.points, hashes, 1, random)
        moves += positions.move_number[0]
    return moves


@njit
def random_games_with_all_legal_moves(games, geometry, fresh, positions, hashes, random, legal):
    """The same, with every legal move found before each move, as a search needs it."""
    moves = 0
    for _ in range(games):
        go.copy_position(fresh, 0, positions, 0)
        hashes[0], number = 0, 1
        while not go.is_over(positions, 0, 2 * geometry.points):
            go.legal_moves(positions, 0, geometry, False, hashes, number, legal)
            move = random_move(positions, 0, geometry, False, hashes, number, random)
            go.play(positions, 0, move, geometry)
            hashes[number] = positions.hash[0]
            number += 1
        moves += number - 1
    return moves


def measure(games: int) -> dict:
    fresh, positions = go.empty_positions(SIZE, 1), go.empty_positions(SIZE, 1)
    hashes = np.zeros(2 * SIZE * SIZE + 1, np.uint64)
    arguments = (go.geometry(SIZE), fresh, positions, hashes, np.array([1], np.uint64))
    moves, seconds = _timed(random_games, games, *arguments)
    moves_and_legal, seconds_and_legal = _timed(
        random_games_with_all_legal_moves, games, *arguments, np.zeros(SIZE * SIZE + 1, bool)
    )
    compiled, cached = _compile_seconds()
    return {
        "games_per_s": round(games / seconds),
        "moves_per_s": round(moves / seconds),
        "moves_per_game": round(moves / games, 1),
        "ns_a_move": round(1e9 * seconds / moves),
        "ns_a_move_with_all_legal_moves": round(1e9 * seconds_and_legal / moves_and_legal),
        "compile_s": compiled,
        "from_cache_s": cached,
    }


def _timed(kernel, games, *arguments) -> tuple[int, float]:
    kernel(1, *arguments)  # compiles
    start = time.perf_counter()
    moves = kernel(games, *arguments)
    return moves, time.perf_counter() - start


def _compile_seconds() -> tuple[float, float]:
    """A first game in a new process, without and with a cache of compiled kernels; imports not counted."""
    game = (
        "import time; from alphago_zero.go import BoardState; start = time.perf_counter(); "
        "state = BoardState().play_move(40); state.legal_moves(); state.score(); print(time.perf_counter() - start)"
    )
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        root = Path(__file__).resolve().parent.parent
        command = [sys.executable, "-c", game]
        runs = [subprocess.run(command, cwd=root, env=environment, capture_output=True, check=True) for _ in range(2)]
    first, second = (round(float(run.stdout), 2) for run in runs)
    return first, second
