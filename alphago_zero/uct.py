"""UCT with random playouts: a player without a network, the same on every machine, to measure others by.

In: a position. Out: the move visited most after so many playouts. Each playout walks down a tree by UCB1,

    argmax_a W(a) / N(a) + c sqrt(ln N / N(a)),    moves never tried first, in random order,

adds one node, and plays from there to the end with uniformly random moves that do not fill own eyes (Kocsis and
Szepesvari 2006). In the tree, too, own eyes are not filled. The score is the game's own: Tromp-Taylor.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from alphago_zero.go import (
    BLACK,
    LEGAL,
    BoardState,
    Positions,
    Rules,
    area,
    copy_position,
    empty_positions,
    geometry,
    is_over,
    move_status,
    play,
)
from alphago_zero.jit import njit
from alphago_zero.random_play import is_own_eye, random_below, random_playout, random_seed

NONE = -1  # no such node
EXPLORATION = 0.7  # c


class _Tree(NamedTuple):
    """One search: its nodes, and what a playout needs. Node 0 is the root."""

    board: Positions  # one slot, on which every playout is played
    hashes: np.ndarray  # [length] uint64 all positions of the game and of the playout
    N: np.ndarray  # [nodes, moves] int32 visits of an edge
    W: np.ndarray  # [nodes, moves] float32 wins of the player who chose it; a draw is a half
    child: np.ndarray  # [nodes, moves] int32
    tried: np.ndarray  # [nodes, moves] bool moves that the tree may choose
    total: np.ndarray  # [nodes] int32 sum_a N(a)
    path: np.ndarray  # [length] int32 nodes on the way down
    path_move: np.ndarray  # [length] int16
    owners: np.ndarray  # [points] uint8 scratch
    queue: np.ndarray  # [points] int16 scratch


class UctSearch:
    """The best move by so many playouts, in any position of a board size."""

    def __init__(self, rules: Rules, playouts: int, rng: np.random.Generator):
        self._rules, self._playouts = rules, playouts
        self._random = random_seed(rng)
        moves, length = rules.points + 1, rules.length_cap + 2
        nodes = playouts + 1
        self._tree = _Tree(
            board=empty_positions(rules.board_size, 1),
            hashes=np.zeros(length, np.uint64),
            N=np.zeros((nodes, moves), np.int32),
            W=np.zeros((nodes, moves), np.float32),
            child=np.zeros((nodes, moves), np.int32),
            tried=np.zeros((nodes, moves), bool),
            total=np.zeros(nodes, np.int32),
            path=np.zeros(length, np.int32),
            path_move=np.zeros(length, np.int16),
            owners=np.zeros(rules.points, np.uint8),
            queue=np.zeros(rules.points, np.int16),
        )

    def best_move(self, state: BoardState) -> int:
        """`state` must not be the end of a game."""
        tree, rules, tables = self._tree, self._rules, geometry(self._rules.board_size)
        count = len(state.position_hashes)
        tree.hashes[:count] = state.position_hashes
        _search(
            tree,
            state._positions,
            count,
            self._playouts,
            tables,
            rules.allow_suicide,
            rules.length_cap,
            float(rules.komi),
            self._random,
        )
        return int(tree.N[0].argmax())


@njit
def _search(tree, root, count, playouts, geometry, allow_suicide, length_cap, komi, random):
    """Fill N of the root's edges."""
    nodes = 1
    _open_node(tree, 0)
    for _ in range(playouts):
        nodes = _playout(tree, root, count, nodes, geometry, allow_suicide, length_cap, komi, random)


@njit
def _open_node(tree, node):
    for move in range(tree.N.shape[1]):
        tree.N[node, move] = 0
        tree.W[node, move] = 0
        tree.child[node, move] = NONE
    tree.total[node] = 0


@njit
def _playout(tree, root, count, nodes, geometry, allow_suicide, length_cap, komi, random):
    """One walk down, one new node, one random game, one walk up. Returns the number of nodes."""
    board, hashes = tree.board, tree.hashes
    copy_position(root, 0, board, 0)
    first = board.to_play[0]
    node, depth = 0, 0
    while node != NONE and not is_over(board, 0, length_cap):
        if tree.total[node] == 0:
            _find_moves(tree, node, count, geometry, allow_suicide)
        move = _choose(tree, node, random)
        tree.path[depth] = node
        tree.path_move[depth] = move
        depth += 1
        play(board, 0, move, geometry)
        hashes[count] = board.hash[0]
        count += 1
        node = tree.child[node, move]
    if node == NONE:
        tree.child[tree.path[depth - 1], tree.path_move[depth - 1]] = nodes
        _open_node(tree, nodes)
        nodes += 1
    random_playout(board, 0, geometry, allow_suicide, length_cap, hashes, count, random)
    score = area(board, 0, geometry, tree.owners, tree.queue) - komi
    black = np.float32(0.5 + 0.5 * np.sign(score))
    won = black if first == BLACK else np.float32(1.0) - black  # for the player who chose at even depth
    for d in range(depth):
        tree.N[tree.path[d], tree.path_move[d]] += 1
        tree.W[tree.path[d], tree.path_move[d]] += won if d % 2 == 0 else np.float32(1.0) - won
        tree.total[tree.path[d]] += 1
    return nodes


@njit
def _find_moves(tree, node, count, geometry, allow_suicide):
    """The moves that may be chosen at `node`, whose position is on the board: all but those that fill an own eye."""
    for point in range(geometry.points):
        status = move_status(tree.board, 0, point, geometry, allow_suicide, tree.hashes, count)
        tree.tried[node, point] = status == LEGAL and not is_own_eye(tree.board, 0, point, geometry)
    tree.tried[node, geometry.points] = True


@njit
def _choose(tree, node, random):
    """UCB1; moves never tried come first."""
    N, W, tried = tree.N[node], tree.W[node], tree.tried[node]
    chosen, untried = 0, 0
    best = np.float32(-1.0)
    log_total = np.log(np.float32(max(tree.total[node], 1)))
    for move in range(len(N)):
        if not tried[move]:
            continue
        if N[move] == 0:
            untried += 1
            if random_below(random, untried) == 0:
                chosen = move
        elif untried == 0:
            score = W[move] / N[move] + np.float32(EXPLORATION) * np.sqrt(log_total / N[move])
            if score > best:
                best, chosen = score, move
    return chosen
