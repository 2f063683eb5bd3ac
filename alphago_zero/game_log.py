"""What self-play remembers of the games under way: arrays that one compiled call a move fills.

In: the tree of a game whose search is done. Out: the move, and all that is later written about it: the training
example (position, pi), the search's own figures for the SGF, the values for resignation and statistics. With few
simulations a move, bookkeeping in plain Python would cost more than the search; words are made when a game is over.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from alphago_zero.gumbel import best_root_action, improved_policy
from alphago_zero.jit import njit
from alphago_zero.tree import TERMINAL, advance_root, most_visited, principal_variation, root_value

GOES_ON, RESIGNED, COUNTED = 0, 1, 2  # what `make_moves` answers
LINE = 10  # moves of the principal variation that are remembered


class GameLog(NamedTuple):
    """A row for each board of a worker, an entry for each move."""

    length: np.ndarray  # [games] int32 moves played
    thought: np.ndarray  # [games] int32 moves searched: one more if the player to move resigned
    move: np.ndarray  # [games, length] int16
    color: np.ndarray  # [games, length] uint8 who played it
    recorded: np.ndarray  # [games, length] bool is it a training example?
    value: np.ndarray  # [games, length] float32 of the root
    hope: np.ndarray  # [games, length] float32 the better of the root's value and the best child's
    visits: np.ndarray  # [games, length] int32 of the root
    move_N: np.ndarray  # [games, length] int32
    move_Q: np.ndarray  # [games, length] float32
    move_P: np.ndarray  # [games, length] float32
    line: np.ndarray  # [games, length, LINE] int16, -1 behind its end
    x: np.ndarray  # [games, length, 2 * points + 1] uint8 the position as in `records.pack_planes`
    pi: np.ndarray  # [games, length, moves] float32
    pi_entropy: np.ndarray  # [games, length] float32
    p_entropy: np.ndarray  # [games, length] float32 of the root's priors without noise


def make_log(games: int, points: int, length: int) -> GameLog:
    def entries(dtype, *shape):
        return np.zeros((games, length + 1, *shape), dtype)

    return GameLog(
        length=np.zeros(games, np.int32),
        thought=np.zeros(games, np.int32),
        move=entries(np.int16),
        color=entries(np.uint8),
        recorded=entries(bool),
        value=entries(np.float32),
        hope=entries(np.float32),
        visits=entries(np.int32),
        move_N=entries(np.int32),
        move_Q=entries(np.float32),
        move_P=entries(np.float32),
        line=entries(np.int16, LINE),
        x=entries(np.uint8, 2 * points + 1),
        pi=entries(np.float32, points + 1),
        pi_entropy=entries(np.float32),
        p_entropy=entries(np.float32),
    )


@njit
def make_moves(trees, games, log, geometry, settings, record, sample, luck, resign_below, endings):
    """`_make_move` in several games; all arrays are [K]."""
    for k in range(len(games)):
        endings[k] = _make_move(
            trees, games[k], log, geometry, settings, record[k], sample[k], luck[k], resign_below[k]
        )


@njit
def _make_move(trees, tree, log, geometry, settings, record, sample, luck, resign_below):
    """Choose a move by the search that is done, remember it, and play it. GOES_ON, RESIGNED or COUNTED.

    `sample`: draw it from pi (tau = 1) by `luck`, a number in [0, 1); else the best one (tau -> 0).
    """
    root, k = trees.root[tree], log.length[tree]
    N, W, P = trees.N[root], trees.W[root], trees.P[root]
    best = most_visited(N, P)
    value = root_value(trees, root)
    log.thought[tree] = k + 1
    log.color[tree, k] = trees.positions.to_play[root]
    log.recorded[tree, k] = False
    log.value[tree, k] = value
    log.hope[tree, k] = max(value, W[best] / np.float32(max(N[best], 1)))
    if log.hope[tree, k] < resign_below:
        return RESIGNED
    pi = log.pi[tree, k]
    _fill_pi(trees, root, settings, pi)
    if record:
        _record(trees, tree, root, log, k, pi)
    if sample:
        move = _sample(pi, luck)
    elif settings.gumbel and N[best] > 0:
        visit, scale, noise = settings.gumbel_visit, settings.gumbel_scale, trees.noise[tree]
        legal, V, v = trees.legal[root], trees.V[root], trees.value[root]
        move = best_root_action(N, W, V, P, legal, v, noise, N[best], visit, scale, trees.scores)
    else:
        move = best
    log.move[tree, k] = move
    log.visits[tree, k] = trees.total[root] + 1
    log.move_N[tree, k] = N[move]
    log.move_Q[tree, k] = W[move] / np.float32(max(N[move], 1))
    log.move_P[tree, k] = P[move]
    principal_variation(trees, root, log.line[tree, k])
    log.length[tree] = k + 1
    advance_root(trees, tree, move, geometry, settings)
    return COUNTED if trees.status[trees.root[tree]] == TERMINAL else GOES_ON


@njit
def _fill_pi(trees, root, settings, pi):
    """pi(a) = N(a) / sum_b N(b), or Gumbel's improved policy."""
    N, P = trees.N[root], trees.P[root]
    total = trees.total[root]
    if settings.gumbel:
        visit, scale = settings.gumbel_visit, settings.gumbel_scale
        improved_policy(N, trees.W[root], trees.V[root], P, trees.legal[root], trees.value[root], visit, scale, pi)
        return
    for move in range(len(pi)):
        pi[move] = np.float32(N[move]) / np.float32(total) if total > 0 else P[move]


@njit
def _sample(pi, luck):
    """The move at which the sum of pi so far passes `luck`."""
    below, chosen = 0.0, 0
    for move in range(len(pi)):
        if pi[move] > 0 and below <= luck:
            chosen = move
        below += pi[move]
    return chosen


@njit
def _record(trees, tree, root, log, k, pi):
    color, history, points = log.color[tree, k], trees.positions.history[root], trees.owners.shape[0]
    x = log.x[tree, k]
    for point in range(points):
        x[2 * point] = history[color - 1, point]
        x[2 * point + 1] = history[2 - color, point]
    x[2 * points] = color == 1
    log.recorded[tree, k] = True
    log.pi_entropy[tree, k] = _entropy(pi)
    log.p_entropy[tree, k] = _entropy(trees.root_P[tree] if trees.noisy[tree] == 2 else trees.P[root])


@njit
def _entropy(p):
    total = 0.0
    for k in range(len(p)):
        if p[k] > 0:
            total -= p[k] * np.log(p[k])
    return total
