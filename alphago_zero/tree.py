"""The search trees as arrays: nodes, the edges between them, and what is read from a root when a search is done.

The nodes of all trees share one pool: a tree takes nodes from it while it grows, and gives back those that a played
move leaves behind, so memory follows what is alive. W and Q of an edge are seen by the player who chooses it; a node's
value by the player to move there. `simulation.py` makes the trees grow.

A search waits for memory more than it computes. So what belongs together lies side by side: N, W, V and the child of
one edge; all that a walk wants to know of a node first. And a node knows the edges that were ever tried: a walk has to
look at these, and at one more. For all others share one Q, so that the one with the highest P beats them all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from alphago_zero.go import (
    BLACK,
    Positions,
    area,
    copy_position,
    empty_positions,
    is_over,
    legal_moves,
    play,
    prefetch_position,
)
from alphago_zero.jit import njit

NONE = -1  # no such node, no such move
UNKNOWN = -2  # which edge comes next is still to be found out
WAITING, EVALUATED, TERMINAL = 0, 1, 2  # status of a node
ZERO, LOSS, PARENT = 0, 1, 2  # first-visit values

# Indices of Trees.counters.
SIMULATIONS, EVALUATIONS, REUSED = 0, 1, 2


class Trees(NamedTuple):
    """A pool of nodes, the trees that share it, and the simulations in flight."""

    positions: Positions  # slot = node
    N: np.ndarray  # [nodes, moves] int32 visits of an edge
    W: np.ndarray  # [nodes, moves] float32 total value of these visits
    V: np.ndarray  # [nodes, moves] int32 simulations in flight, each a loss for the time being
    P: np.ndarray  # [nodes, moves] float32 prior probability; 0 where illegal
    legal: np.ndarray  # [nodes, moves] bool moves that the search may try
    child: np.ndarray  # [nodes, moves] int32 node behind the edge, or NONE
    total: np.ndarray  # [nodes] int32 sum_b N(b) + V(b)
    value: np.ndarray  # [nodes] float32 v of the network, or the outcome, for the player to move
    status: np.ndarray  # [nodes] uint8
    after_pass: np.ndarray  # [nodes] bool the last move was the first of two passes
    tried: np.ndarray  # [nodes, moves] int16 the edges with a visit or a child, in the order in which they were tried
    tried_count: np.ndarray  # [nodes] int16
    untried: np.ndarray  # [nodes] int16 of the other legal edges the one with the highest P, or NONE, or UNKNOWN
    free: np.ndarray  # [nodes] int32 stack of unused nodes
    free_count: np.ndarray  # [1] int32
    root: np.ndarray  # [trees] int32
    hashes: np.ndarray  # [trees, length] uint64 all positions of the game; behind them those of the current walk
    hash_count: np.ndarray  # [trees] int32 positions of the game, the root included
    remaining: np.ndarray  # [trees] int32 simulations still to begin
    noise: np.ndarray  # [trees, moves] float32 Dirichlet (puct) or Gumbel (gumbel) noise for the root
    noisy: np.ndarray  # [trees] uint8 1: noise is still to be added to the root's priors, 2: was added
    root_P: np.ndarray  # [trees, moves] float32 the root's priors before noise was added
    leaf: np.ndarray  # [batch] int32 node at which a walk stands; row = tree * leaves + number of the walk in its tree
    depth: np.ndarray  # [batch] int32 edges on the way to it
    path: np.ndarray  # [batch, length] int32 nodes on the way
    path_move: np.ndarray  # [batch, length] int16
    waiting: np.ndarray  # [batch] int32 rows whose leaves wait for their evaluations
    in_flight: np.ndarray  # [trees] int32 how many of these a tree has
    walking: np.ndarray  # [trees] int32 scratch: trees in which a leaf is sought
    going: np.ndarray  # [trees] int32 scratch: those of them whose walk is not at its end
    scores: np.ndarray  # [moves] float32 scratch
    owners: np.ndarray  # [points] uint8 scratch
    queue: np.ndarray  # [points] int16 scratch
    counters: np.ndarray  # [3] int64 simulations, evaluations by the network, evaluations found in the tree


class Settings(NamedTuple):
    """What the kernels must know of rules and configuration."""

    allow_suicide: bool
    length_cap: int
    komi: float
    c_puct: float
    first_visit: int  # ZERO, LOSS or PARENT
    first_visit_reduction: float
    pass_answers_pass: bool
    no_pass_before: int  # move number
    noise_fraction: float
    gumbel: bool
    gumbel_visit: float
    gumbel_scale: float


def _node_arrays(size: int, nodes: int) -> dict:
    """The arrays of a pool of nodes, all unused: no edge has been tried."""
    moves = size * size + 1
    edges = np.zeros((nodes, moves), [("N", np.int32), ("W", np.float32), ("V", np.int32), ("child", np.int32)])
    edges["child"] = NONE
    known = [
        ("total", np.int32),
        ("value", np.float32),
        ("untried", np.int16),
        ("tried_count", np.int16),
        ("status", np.uint8),
        ("after_pass", bool),
        ("tried", np.int16, moves),
    ]
    heads = np.zeros(nodes, np.dtype(known, align=True))
    return dict(
        positions=empty_positions(size, nodes),
        P=np.zeros((nodes, moves), np.float32),
        legal=np.zeros((nodes, moves), bool),
        **{name: edges[name] for name in edges.dtype.names},
        **{name: heads[name] for name in heads.dtype.names},
    )


def make_trees(size: int, length_cap: int, trees: int, batch: int, nodes: int) -> Trees:
    """`trees` trees without roots, and room for `nodes` nodes and `batch` simulations in flight."""
    moves, length = size * size + 1, length_cap + 2
    return Trees(
        **_node_arrays(size, nodes),
        free=np.arange(nodes - 1, -1, -1, dtype=np.int32),
        free_count=np.array([nodes], np.int32),
        root=np.full(trees, NONE, np.int32),
        hashes=np.zeros((trees, length), np.uint64),
        hash_count=np.zeros(trees, np.int32),
        remaining=np.zeros(trees, np.int32),
        noise=np.zeros((trees, moves), np.float32),
        noisy=np.zeros(trees, np.uint8),
        root_P=np.zeros((trees, moves), np.float32),
        leaf=np.zeros(batch, np.int32),
        depth=np.zeros(batch, np.int32),
        path=np.zeros((batch, length), np.int32),
        path_move=np.zeros((batch, length), np.int16),
        waiting=np.zeros(batch, np.int32),
        in_flight=np.zeros(trees, np.int32),
        walking=np.zeros(trees, np.int32),
        going=np.zeros(trees, np.int32),
        scores=np.zeros(moves, np.float32),
        owners=np.zeros(moves - 1, np.uint8),
        queue=np.zeros(moves - 1, np.int16),
        counters=np.zeros(3, np.int64),
    )


def with_more_nodes(trees: Trees, size: int, more: int) -> Trees:
    """The same trees with a larger pool."""
    nodes, unused = len(trees.N), int(trees.free_count[0])
    larger = _node_arrays(size, nodes + more)
    for name, array in larger.items():
        if name != "positions":
            array[:nodes] = getattr(trees, name)
    for array, old in zip(larger["positions"], trees.positions):
        array[:nodes] = old
    free = np.zeros(nodes + more, np.int32)
    free[:more] = np.arange(nodes + more - 1, nodes - 1, -1)
    free[more : more + unused] = trees.free[:unused]
    return trees._replace(**larger, free=free, free_count=np.array([unused + more], np.int32))


# --- nodes ----------------------------------------------------------------------------------------------------------


@njit
def _new_node(trees):
    """A node of the pool; its edges are untried, its P is what another node left there."""
    trees.free_count[0] -= 1
    count = trees.free_count[0]
    prefetch_position(trees.positions, trees.free[max(count - 1, 0)])  # the next one
    return trees.free[count]


@njit
def new_child(trees, tree, parent, move, hash_count, geometry, settings):
    """A node for the position after `move`; `hashes[tree, :hash_count]` are the positions that led to the parent."""
    node = _new_node(trees)
    copy_position(trees.positions, parent, trees.positions, node)
    play(trees.positions, node, move, geometry)
    trees.hashes[tree, hash_count] = trees.positions.hash[node]
    _open_node(trees, tree, node, hash_count + 1, geometry, settings)
    return node


@njit
def _open_node(trees, tree, node, hash_count, geometry, settings):
    """Find out about the position at `node`: its outcome if the game is over, else the moves to try.

    `hashes[tree, :hash_count]` are the positions that led here, this one included.
    """
    positions = trees.positions
    trees.status[node] = WAITING
    trees.untried[node] = UNKNOWN
    trees.after_pass[node] = positions.passes[node] == 1
    if is_over(positions, node, settings.length_cap):
        score = area(positions, node, geometry, trees.owners, trees.queue) - settings.komi
        if positions.to_play[node] != BLACK:
            score = -score
        trees.value[node] = np.sign(score)
        trees.status[node] = TERMINAL
        trees.legal[node] = False
        return
    legal = trees.legal[node]
    legal_moves(positions, node, geometry, settings.allow_suicide, trees.hashes[tree], hash_count, legal)
    if positions.move_number[node] < settings.no_pass_before:
        for point in range(geometry.points):
            if legal[point]:
                legal[geometry.points] = False


@njit
def set_root(trees, tree, source, slot, hashes, geometry, settings):
    """Let a tree begin anew at position `slot` of `source`, whose game went through the positions `hashes`."""
    if trees.root[tree] != NONE:
        _release(trees, trees.root[tree], NONE)
    node = _new_node(trees)
    trees.P[node] = 0
    copy_position(source, slot, trees.positions, node)
    count = len(hashes)
    for k in range(count):
        trees.hashes[tree, k] = hashes[k]
    trees.hash_count[tree] = count
    trees.root[tree] = node
    trees.remaining[tree] = 0
    trees.noisy[tree] = 0
    _open_node(trees, tree, node, count, geometry, settings)


@njit
def advance_root(trees, tree, move, geometry, settings):
    """Play `move`: the node behind it becomes the root with all that is below it; the rest is given back."""
    old = trees.root[tree]
    node = trees.child[old, move]
    count = trees.hash_count[tree]
    if node == NONE:
        node = new_child(trees, tree, old, move, count, geometry, settings)
        trees.P[node] = 0
    _release(trees, old, node)
    trees.hashes[tree, count] = trees.positions.hash[node]
    trees.hash_count[tree] = count + 1
    trees.root[tree] = node
    trees.remaining[tree] = 0
    trees.noisy[tree] = 0


@njit
def _release(trees, node, keep):
    """Give back `node` and all nodes below it, but for the subtree of `keep`."""
    # The free stack above its count serves as the list of what is still to be visited.
    start = trees.free_count[0]
    trees.free[start] = node
    count, done = start + 1, start
    while done < count:
        node = trees.free[done]
        done += 1
        for k in range(trees.tried_count[node]):
            move = trees.tried[node, k]
            child = trees.child[node, move]
            if child != NONE and child != keep:
                trees.free[count] = child
                count += 1
            trees.N[node, move] = 0
            trees.W[node, move] = 0
            trees.child[node, move] = NONE
        trees.tried_count[node] = 0
        trees.total[node] = 0
    trees.free_count[0] = count


@njit
def begin_searches(trees, games, readouts, noise, settings, actions):
    """Let these games search on; all are [K]. Fills `actions` (int) with how many moves the roots allow."""
    for k in range(len(games)):
        tree = games[k]
        root = trees.root[tree]
        trees.remaining[tree] = readouts[k]
        if trees.noisy[tree] == 2:
            for move in range(trees.P.shape[1]):
                trees.P[root, move] = trees.root_P[tree, move]
        trees.noisy[tree] = noise[k]
        trees.untried[root] = UNKNOWN  # priors are others now, and perhaps what may be tried
        if settings.gumbel:  # counts its visits anew; the evaluations below the root stay known
            _forget_visits(trees, root)
        actions[k] = 0
        for move in range(trees.legal.shape[1]):
            actions[k] += trees.legal[root, move]


@njit
def _forget_visits(trees, root):
    """Set all counts in a tree to zero."""
    # As in `_release`, the free stack above its count is the list of what is still to be visited.
    done = trees.free_count[0]
    count = done + 1
    trees.free[done] = root
    while done < count:
        node = trees.free[done]
        done += 1
        if trees.total[node] > 0:
            count = _forget_edges(trees, node, count)


@njit
def _forget_edges(trees, node, count):
    """No edge was visited; those that lead to a node stay known. Notes these in `free[count:]`, returns their end."""
    known = 0
    for k in range(trees.tried_count[node]):
        move = trees.tried[node, k]
        trees.N[node, move] = 0
        trees.W[node, move] = 0
        if trees.child[node, move] != NONE:
            trees.tried[node, known] = move
            known += 1
            trees.free[count] = trees.child[node, move]
            count += 1
    trees.tried_count[node] = known
    trees.untried[node] = UNKNOWN
    trees.total[node] = 0
    return count


# --- what a search found ----------------------------------------------------------------------------------------------


@njit
def most_visited(N, P):
    """argmax_a N(a); the better prior decides a tie."""
    best = 0
    for move in range(1, len(N)):
        if N[move] > N[best] or (N[move] == N[best] and P[move] >= P[best]):
            best = move
    return best


@njit
def root_value(trees, root):
    """Mean value of all simulations through an evaluated node, for the player to move."""
    total = np.float32(0.0)
    for k in range(trees.tried_count[root]):
        total += trees.W[root, trees.tried[root, k]]
    return (trees.value[root] + total) / np.float32(1 + trees.total[root])


@njit
def principal_variation(trees, node, line):
    """Fill `line` with the most visited moves one after another, and NONE behind the last."""
    for k in range(len(line)):
        line[k] = NONE
        if node != NONE and trees.total[node] > 0:
            line[k] = most_visited(trees.N[node], trees.P[node])
            node = trees.child[node, line[k]]
        else:
            node = NONE
