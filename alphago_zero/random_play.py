"""Random play: uniformly random moves that fill no own eye, and games of them.

In: a position and the state of a random generator. Out: a move, or the position at the end of the game.
"""

from __future__ import annotations

import numpy as np

from alphago_zero.go import EMPTY, LEGAL, OFF_BOARD, BoardState, geometry, is_over, move_status, play
from alphago_zero.jit import njit


@njit
def random_below(random, bound):
    """A number in [0, bound) from the xorshift state `random` (uint64 [1])."""
    x = random[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    random[0] = x
    return np.int64(((x >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))


@njit
def is_own_eye(positions, i, point, geometry):
    """All neighbours are own stones, and too few diagonal ones are the opponent's to make it a false eye."""
    color = positions.to_play[i]
    stones = positions.stones[i]
    for k in range(4):
        neighbor = stones[geometry.neighbors[point, k]]
        if neighbor != color and neighbor != OFF_BOARD:
            return False
    hostile, outside = 0, 0
    for k in range(4):
        diagonal = stones[geometry.diagonals[point, k]]
        hostile += diagonal == 3 - color
        outside = outside or diagonal == OFF_BOARD
    return hostile + outside < 2


@njit
def random_move(positions, i, geometry, allow_suicide, hashes, number, random):
    """A uniformly random legal move that does not fill an own eye; the pass if there is none."""
    points = geometry.points
    for _ in range(16):
        point = random_below(random, points)
        if (
            positions.stones[i, point] == EMPTY
            and not is_own_eye(positions, i, point, geometry)
            and move_status(positions, i, point, geometry, allow_suicide, hashes, number) == LEGAL
        ):
            return point
    chosen, candidates = points, 0  # few moves are left: look at all, still uniformly
    for point in range(points):
        if (
            positions.stones[i, point] == EMPTY
            and not is_own_eye(positions, i, point, geometry)
            and move_status(positions, i, point, geometry, allow_suicide, hashes, number) == LEGAL
        ):
            candidates += 1
            if random_below(random, candidates) == 0:
                chosen = point
    return chosen


@njit
def random_playout(positions, i, geometry, allow_suicide, length_cap, hashes, number, random):
    """Play slot `i` to its end at random; `hashes` (room for the whole game) goes on from `number`."""
    while not is_over(positions, i, length_cap):
        move = random_move(positions, i, geometry, allow_suicide, hashes, number, random)
        play(positions, i, move, geometry)
        hashes[number] = positions.hash[i]
        number += 1


def random_seed(rng: np.random.Generator) -> np.ndarray:
    """The state of the kernels' random numbers: uint64 [1]."""
    return rng.integers(1, 2**63, size=1, dtype=np.uint64)


def sensible_random_move(state: BoardState, random: np.ndarray) -> int:
    """A uniformly random legal move that does not fill an own eye; the pass if there is none."""
    hashes, rules = state.position_hashes, state.rules
    tables = geometry(rules.board_size)
    return int(random_move(state._positions, 0, tables, rules.allow_suicide, hashes, len(hashes), random))
