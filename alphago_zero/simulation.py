"""Simulations, compiled: select, expand and back up (paper: Methods, 'Search algorithm').

In: trees, evaluations p, v of leaves. Out: visit counts N and values W at the trees' edges. One simulation is

    select   walk from the root along argmax_a Q(s, a) + U(s, a) to an edge that was never visited
    expand   make the position behind it; unless the game is over there, it waits for the network's p and v
    back up  add v, with alternating sign, to W, and 1 to N, of all edges on the way

A simulation in flight counts as a lost visit (V, 'virtual loss') at its edges, so that others in flight with it look
elsewhere.
"""

from __future__ import annotations

import numpy as np

from alphago_zero.features import write_planes
from alphago_zero.go import prefetch_position
from alphago_zero.gumbel import best_root_action, improved_policy_action
from alphago_zero.jit import njit, prefetch
from alphago_zero.tree import (
    EVALUATED,
    EVALUATIONS,
    LOSS,
    NONE,
    PARENT,
    REUSED,
    SIMULATIONS,
    TERMINAL,
    UNKNOWN,
    WAITING,
    new_child,
)

# --- select ----------------------------------------------------------------------------------------------------------


@njit
def _puct_action(trees, node, settings, scores):
    """argmax_a Q(s, a) + U(s, a), with U(s, a) = c_puct P(s, a) sqrt(sum_b N(s, b)) / (1 + N(s, a))."""
    # Before any visit the sum is 0 and U would not look at P: 1 is taken instead.
    exploration = np.float32(settings.c_puct) * np.sqrt(np.float32(max(trees.total[node], 1)))
    first = np.float32(0.0)
    if settings.first_visit == LOSS:
        first = np.float32(-1.0)
    elif settings.first_visit == PARENT:
        first = max(trees.value[node] - np.float32(settings.first_visit_reduction), np.float32(-1.0))
    one = np.float32(1.0)
    best, highest = _highest_untried(trees, node, scores), np.float32(-np.inf)
    if best != NONE:
        highest = first + exploration * trees.P[node, best]
    for k in range(trees.tried_count[node]):
        move = trees.tried[node, k]
        V = np.float32(trees.V[node, move])
        n = np.float32(trees.N[node, move]) + V
        Q = (trees.W[node, move] - V) / n if n > 0 else first
        U = exploration * trees.P[node, move] / (one + n)
        score = Q + U
        # Of equal moves the first of the board is taken, in whatever order they were tried.
        if (score > highest or (score == highest and move < best)) and trees.legal[node, move]:
            best, highest = move, score
    return best


@njit
def _highest_untried(trees, node, scores):
    """The edge with the highest P of those that may be tried and were not, or NONE."""
    if trees.untried[node] == UNKNOWN:
        P, legal = trees.P[node], trees.legal[node]
        nothing = np.float32(-1.0)
        for move in range(len(scores)):
            scores[move] = P[move] if legal[move] else nothing
        for k in range(trees.tried_count[node]):
            scores[trees.tried[node, k]] = nothing
        best = _argmax(scores)
        trees.untried[node] = best if scores[best] >= 0 else NONE
    return trees.untried[node]


@njit(fastmath={"nnan", "nsz"})
def _argmax(scores):
    """The first of the highest; no score is NaN, which allows vector instructions."""
    highest = scores[0]
    for move in range(len(scores)):
        highest = max(highest, scores[move])
    best = 0
    while scores[best] != highest:
        best += 1
    return best


@njit
def _choose_action(trees, tree, node, geometry, settings, schedule, scores):
    """The edge that a walk takes from `node`."""
    pass_move = geometry.points
    if settings.pass_answers_pass and trees.after_pass[node] and trees.legal[node, pass_move]:
        if trees.N[node, pass_move] + trees.V[node, pass_move] == 0:
            return pass_move
    if not settings.gumbel:
        return _puct_action(trees, node, settings, scores)
    N, W, V, P, legal = trees.N[node], trees.W[node], trees.V[node], trees.P[node], trees.legal[node]
    visit, scale = settings.gumbel_visit, settings.gumbel_scale
    if node != trees.root[tree]:
        return improved_policy_action(N, W, V, P, legal, trees.value[node], visit, scale, scores)
    considered = schedule[tree, trees.total[node]]
    noise = trees.noise[tree]
    return best_root_action(N, W, V, P, legal, trees.value[node], noise, considered, visit, scale, scores)


@njit
def select_leaves(trees, leaves, geometry, settings, schedule, symmetries, permutations, planes):
    """Begin simulations: up to `leaves` a tree that wait for the network; those that need none end at once.

    Takes a node of the pool for each leaf that waits. Fills `planes` (uint8 [batch, points, 17]) under the symmetries
    given, and returns how many leaves wait; their rows stand in `trees.waiting`.
    """
    waiting = 0
    trees.in_flight[:] = 0
    for flight in range(leaves):
        count = 0
        for tree in range(len(trees.root)):  # those that found no leaf in an earlier round are left out
            if trees.remaining[tree] > 0 and trees.in_flight[tree] == flight:
                trees.walking[count] = tree
                count += 1
        while count > 0:
            _walk(trees, count, leaves, flight, geometry, settings, schedule)
            still = 0
            for k in range(count):
                tree = trees.walking[k]
                row = tree * leaves + flight
                _reach_leaf(trees, tree, row, geometry, settings)
                leaf = trees.leaf[row]
                if trees.status[leaf] != WAITING:
                    _end_at_once(trees, row)
                    trees.remaining[tree] -= 1
                    if trees.remaining[tree] > 0:
                        trees.walking[still] = tree
                        still += 1
                elif _is_in_flight(trees, row, flight):
                    _undo_walk(trees, row)
                else:
                    trees.waiting[waiting] = row
                    trees.in_flight[tree] += 1
                    trees.remaining[tree] -= 1
                    write_planes(trees.positions, leaf, permutations[symmetries[waiting]], planes[waiting])
                    waiting += 1
            count = still
    return waiting


@njit
def _walk(trees, count, leaves, flight, geometry, settings, schedule):
    """One walk in each of the trees `walking[:count]`; its way stands in `path`, its end in `leaf`.

    All walk side by side, an edge at a time: so what one of them will need of memory arrives while others compute.
    """
    for k in range(count):
        tree = trees.walking[k]
        row = tree * leaves + flight
        _add_noise(trees, tree, settings)
        trees.leaf[row] = trees.root[tree]
        trees.depth[row] = 0
        trees.going[k] = tree
        prefetch(trees.tried, trees.root[tree], 64)
    going = count
    while going > 0:
        still = 0
        for k in range(going):
            tree = trees.going[k]
            node = trees.leaf[tree * leaves + flight]
            if trees.status[node] == EVALUATED:
                _prefetch_edges(trees, node)
                trees.going[still] = tree
                still += 1
        going, still = still, 0
        for k in range(going):
            tree = trees.going[k]
            if _take_edge(trees, tree, tree * leaves + flight, geometry, settings, schedule):
                trees.going[still] = tree
                still += 1
        going = still


@njit
def _prefetch_edges(trees, node):
    """Ask for the memory that a choice at `node` will look at."""
    for k in range(min(trees.tried_count[node], 32)):
        prefetch(trees.N[node], trees.tried[node, k], 0)
    for line in range(0, 4 * trees.P.shape[1], 64):
        prefetch(trees.P, node, line)
    for line in range(0, trees.legal.shape[1], 64):
        prefetch(trees.legal, node, line)


@njit
def _take_edge(trees, tree, row, geometry, settings, schedule):
    """Go on from where the walk stands. Is there a node behind the edge that may have to be left again?"""
    node, depth = trees.leaf[row], trees.depth[row]
    move = _choose_action(trees, tree, node, geometry, settings, schedule, trees.scores)
    trees.path[row, depth] = node
    trees.path_move[row, depth] = move
    trees.depth[row] = depth + 1
    first = trees.N[node, move] + trees.V[node, move] == 0
    trees.V[node, move] += 1
    trees.total[node] += 1
    child = trees.child[node, move]
    trees.leaf[row] = child
    if child == NONE:
        if first:
            _note_try(trees, node, move)
        prefetch_position(trees.positions, node)
        return False
    prefetch(trees.tried, child, 0)
    prefetch(trees.tried, child, 64)
    return not first  # else known from an earlier search


@njit
def _note_try(trees, node, move):
    trees.tried[node, trees.tried_count[node]] = move
    trees.tried_count[node] += 1
    if trees.untried[node] == move:
        trees.untried[node] = UNKNOWN


@njit
def _reach_leaf(trees, tree, row, geometry, settings):
    """Note the positions on the way, for superko, and make the node at its end if there is none."""
    count, depth = trees.hash_count[tree], trees.depth[row]
    for d in range(1, depth):
        trees.hashes[tree, count + d - 1] = trees.positions.hash[trees.path[row, d]]
    if trees.leaf[row] == NONE:
        node, move = trees.path[row, depth - 1], trees.path_move[row, depth - 1]
        leaf = new_child(trees, tree, node, move, count + depth - 1, geometry, settings)
        trees.child[node, move] = leaf
        trees.leaf[row] = leaf


@njit
def _end_at_once(trees, row):
    """Back up from a leaf whose value is known."""
    leaf, depth = trees.leaf[row], trees.depth[row]
    trees.counters[REUSED] += trees.status[leaf] == EVALUATED
    _back_up(trees, row, trees.value[leaf])
    if trees.status[leaf] == TERMINAL and depth > 0:
        _give_back_leaf(trees, row, depth, leaf)


@njit
def _give_back_leaf(trees, row, depth, leaf):
    """Finished games are scored anew at every visit: walks that end at once would take any number of nodes."""
    trees.child[trees.path[row, depth - 1], trees.path_move[row, depth - 1]] = NONE
    trees.free[trees.free_count[0]] = leaf
    trees.free_count[0] += 1


@njit
def _is_in_flight(trees, row, flight):
    """Does the leaf wait already, reached by an earlier walk in this step?"""
    for earlier in range(row - flight, row):
        if trees.leaf[earlier] == trees.leaf[row]:
            return True
    return False


@njit
def _undo_walk(trees, row):
    for d in range(trees.depth[row]):
        node, move = trees.path[row, d], trees.path_move[row, d]
        trees.V[node, move] -= 1
        trees.total[node] -= 1


# --- expand and back up ----------------------------------------------------------------------------------------------


@njit
def _set_priors(trees, node, p, permutation):
    """P of the legal moves from the network's p, which was asked under a symmetry; they sum to 1."""
    P, legal = trees.P[node], trees.legal[node]
    total, count = np.float32(0.0), 0
    for k in range(len(permutation)):
        move = permutation[k]
        P[move] = p[k] if legal[move] else np.float32(0.0)
        total += P[move]
        count += legal[move]
    if total > 0:
        for move in range(len(P)):
            P[move] /= total
    else:
        for move in range(len(P)):
            P[move] = np.float32(legal[move]) / np.float32(count)


@njit
def _add_noise(trees, tree, settings):
    """P(s, a) = (1 - epsilon) p_a + epsilon eta_a at the root, over the moves that may be tried."""
    root = trees.root[tree]
    if trees.noisy[tree] != 1 or trees.status[root] != EVALUATED:
        return
    trees.noisy[tree] = 2
    trees.untried[root] = UNKNOWN
    P, legal, noise = trees.P[root], trees.legal[root], trees.noise[tree]
    for move in range(len(P)):
        trees.root_P[tree, move] = P[move]
    if settings.gumbel:  # its noise goes into the choice, not into the priors
        return
    total = np.float32(0.0)
    for move in range(len(P)):
        if legal[move]:
            total += noise[move]
    epsilon = np.float32(settings.noise_fraction)
    if total > 0:
        for move in range(len(P)):
            if legal[move]:
                P[move] = (np.float32(1.0) - epsilon) * P[move] + epsilon * (noise[move] / total)


@njit
def _back_up(trees, row, value):
    """Add the value of a leaf, seen by the player to move there, to the edges that led to it."""
    trees.counters[SIMULATIONS] += 1
    for d in range(trees.depth[row] - 1, -1, -1):
        value = -value
        node, move = trees.path[row, d], trees.path_move[row, d]
        trees.V[node, move] -= 1
        trees.N[node, move] += 1
        trees.W[node, move] += value


@njit
def expand_and_back_up(trees, waiting, p, v, symmetries, permutations):
    """Finish the simulations that `select_leaves` began, with p [batch, moves] and v [batch] of their leaves."""
    trees.counters[EVALUATIONS] += waiting
    for k in range(waiting):
        row = trees.waiting[k]
        leaf = trees.leaf[row]
        if k + 1 < waiting:
            _prefetch_way(trees, trees.waiting[k + 1])
        _set_priors(trees, leaf, p[k], permutations[symmetries[k]])
        trees.value[leaf] = v[k]
        trees.status[leaf] = EVALUATED
        _back_up(trees, row, v[k])


@njit
def _prefetch_way(trees, row):
    """Ask for the memory that `expand_and_back_up` will write."""
    leaf = trees.leaf[row]
    prefetch(trees.tried, leaf, 0)
    for line in range(0, 4 * trees.P.shape[1], 64):
        prefetch(trees.P, leaf, line)
    for line in range(0, trees.legal.shape[1], 64):
        prefetch(trees.legal, leaf, line)
    for d in range(trees.depth[row]):
        prefetch(trees.N[trees.path[row, d]], trees.path_move[row, d], 0)
