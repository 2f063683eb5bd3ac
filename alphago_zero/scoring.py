"""Who owns what at the end of a game, dead stones taken off: the game is played on, and the result is counted.

In: a position, often one after two passes, and an evaluator. Out: an owner for each point, the dead stones, a score.
Several continuations are played side by side by the network's own search until both pass, without resignation. In
none of them a player fills an own eye, so that stones with two eyes live even if the network knows nothing. What a
player who is ahead leaves standing (it does not need to be taken) is judged by uniformly random games from there: a
chain that hardly ever survives them is dead. The majority of the continuations decides which stones are dead. These
are taken off the position itself, which is counted by area; only where an empty region touches both colours does the
majority decide its points, too.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from alphago_zero.config import Config
from alphago_zero.go import (
    BLACK,
    EMPTY,
    WHITE,
    BoardState,
    Positions,
    area,
    copy_position,
    empty_positions,
    geometry,
    opponent,
)
from alphago_zero.jit import njit
from alphago_zero.mcts import TreeSearch
from alphago_zero.random_play import is_own_eye, random_playout
from alphago_zero.tree import TERMINAL

CONTINUATIONS = 8
READOUTS = 32
_PLAYOUTS = 200
_DEAD = 0.8  # the share of random games in which the opponent owns a dead stone's point


def final_owners(
    state: BoardState,
    evaluator,
    config: Config,
    readouts: int = READOUTS,
    rng: np.random.Generator | None = None,
) -> np.ndarray:
    """BLACK, WHITE or EMPTY (neutral) for each point, dead stones taken off: uint8 [points]."""
    rng = rng or np.random.default_rng(config.seed)
    rules = dataclasses.replace(state.rules, max_moves=state.move_number + 2 * state.rules.points)
    state = state.with_rules(rules).resumed()
    votes = np.zeros((3, rules.points), np.int64)  # [owner, point]
    at_once = min(CONTINUATIONS, getattr(evaluator, "batch_size", CONTINUATIONS))
    left = CONTINUATIONS
    while left > 0:
        for owners in _play_on(state, evaluator, config, readouts, rng, games=min(at_once, left)):
            votes[owners, np.arange(rules.points)] += 1
        left -= at_once
    majority = 2 * votes > CONTINUATIONS
    expected = np.select([majority[BLACK], majority[WHITE]], [BLACK, WHITE], EMPTY)
    colors = state.board.flatten()
    colors[dead_stones(state, expected)] = EMPTY
    owners = _count_area(colors, state.size)
    return np.where(owners == EMPTY, expected, owners).astype(np.uint8)


def dead_stones(state: BoardState, owners: np.ndarray) -> list[int]:
    """The points of the chains that stand where mostly the opponent owns; chain by chain, in ascending order."""
    dead = []
    for chain in chains(state):
        color = state.board.flat[chain[0]]
        if np.count_nonzero(owners[chain] == opponent(color)) * 2 > len(chain):
            dead += chain
    return sorted(dead)


def seki_stones(state: BoardState, owners: np.ndarray) -> list[int]:
    """The points of living chains that have liberties, but none that their colour owns."""
    dead, found = set(dead_stones(state, owners)), []
    tables = geometry(state.size)
    stones = state._positions.stones[0]
    for chain in chains(state):
        liberties = {int(n) for point in chain for n in tables.neighbors[point] if stones[n] == EMPTY}
        if chain[0] not in dead and not any(owners[point] == stones[chain[0]] for point in liberties):
            found += chain
    return sorted(found)


def score(owners: np.ndarray, komi: float) -> float:
    """Black's points less White's less komi."""
    return float(np.count_nonzero(owners == BLACK) - np.count_nonzero(owners == WHITE) - komi)


def chains(state: BoardState) -> list[list[int]]:
    """The points of every chain on the board."""
    found: dict[int, list[int]] = {}
    for point in np.flatnonzero(state.board):
        found.setdefault(int(state._positions.chain[0, point]), []).append(int(point))
    return list(found.values())


def _play_on(state: BoardState, evaluator, config: Config, readouts: int, rng, games: int) -> list[np.ndarray]:
    """Owners (uint8 [points]) at the ends of `games` continuations."""
    settings = dataclasses.replace(config.search, algorithm="puct")
    search = TreeSearch(state.rules, settings, rng, games=games)
    for game in range(games):
        search.set_position(game, state)
    playing = np.arange(games)
    while len(playing):
        for game in playing:
            _forbid_own_eyes(search.trees.positions, search.trees.legal, search.trees.root[game], search.geometry)
        # Noise at the root makes the continuations differ.
        search.begin_many(playing, np.full(len(playing), readouts), np.ones(len(playing), bool))
        search.run(evaluator)
        for game in playing:
            trees, root = search.trees, search.trees.root[game]
            # A move that is forbidden now may have been visited before, when this position was not yet the root.
            search.play(game, int(np.where(trees.legal[root], trees.N[root] + trees.P[root], -1).argmax()))
        trees = search.trees
        playing = playing[trees.status[trees.root[playing]] != TERMINAL]
    return [_count_without_dead(search, game, rng) for game in range(games)]


@njit
def _forbid_own_eyes(positions, legal, node, geometry):
    """Of the moves that the search may try at `node`, take away those that fill an own eye."""
    for point in range(geometry.points):
        if legal[node, point] and is_own_eye(positions, node, point, geometry):
            legal[node, point] = False


def _count_without_dead(search: TreeSearch, game: int, rng: np.random.Generator) -> np.ndarray:
    """Owners (uint8 [points]) of a finished game, without the stones that random games nearly always take."""
    trees, tables = search.trees, search.geometry
    node, points = trees.root[game], search.rules.points
    shares = random_shares(trees.positions, node, search.rules.allow_suicide, tables, rng)
    colors, chain = trees.positions.stones[node], trees.positions.chain[node]
    living = colors[:points].copy()
    for point in np.flatnonzero(living):
        stones = np.flatnonzero((chain == chain[point]) & (colors[:points] == colors[point]))
        if shares[opponent(colors[point]), stones].mean() >= _DEAD:
            living[point] = EMPTY
    return _count_area(living, tables.size)


def _count_area(colors: np.ndarray, size: int) -> np.ndarray:
    """Owners (uint8 [points]) of a board of stones, uint8 [points]."""
    positions = empty_positions(size, 1)
    positions.stones[0, :-1] = colors
    owners = np.empty(len(colors), np.uint8)
    area(positions, 0, geometry(size), owners, np.empty(len(colors), np.int16))
    return owners


def random_shares(positions: Positions, slot: int, allow_suicide: bool, tables, rng) -> np.ndarray:
    """In which share of random games each colour owns a point: float [colour, points]."""
    counts = np.zeros((3, tables.points), np.int64)
    scratch = empty_positions(tables.size, 1)
    cap = int(positions.move_number[slot]) + 3 * tables.points
    random = rng.integers(1, 2**63, size=1, dtype=np.uint64)
    hashes = np.zeros(3 * tables.points + 2, np.uint64)
    owners, queue = np.empty(tables.points, np.uint8), np.empty(tables.points, np.int16)
    _play_randomly(positions, slot, scratch, tables, allow_suicide, cap, hashes, random, counts, owners, queue)
    return counts / _PLAYOUTS


@njit
def _play_randomly(positions, slot, scratch, geometry, allow_suicide, cap, hashes, random, counts, owners, queue):
    for k in range(_PLAYOUTS):
        copy_position(positions, slot, scratch, 0)
        scratch.passes[0] = 0
        scratch.to_play[0] = 1 + k % 2
        hashes[0] = scratch.hash[0]
        random_playout(scratch, 0, geometry, allow_suicide, cap, hashes, 1, random)
        area(scratch, 0, geometry, owners, queue)
        for point in range(geometry.points):
            counts[owners[point], point] += 1
