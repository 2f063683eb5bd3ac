"""Gumbel search (Danihelka et al., ICLR 2022): a switch beyond the paper, `search.algorithm: gumbel`.

At the root, noise g(a) from a Gumbel distribution is added to the logits, sequential halving spends the simulations on
the best few actions by g(a) + logits(a) + sigma(q(a)), and the last survivor is played. Inside the tree the walk
follows the improved policy pi'(a) = softmax(logits + sigma(completed q)). The root's pi' is the target of learning.
Here sigma(q) = (c_visit + max_b N(b)) c_scale q; q of an action never visited is completed by a mean of v and known q.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from alphago_zero.jit import njit


@lru_cache(maxsize=1024)
def sequential_halving(actions: int, simulations: int) -> np.ndarray:
    """int32 [simulations]: how often the action of each simulation was visited before it.

    Among the actions with that many visits the best one is taken; so the first `actions` simulations visit the best
    `actions` once, the next ones the better half of these again, and so on.

    >>> sequential_halving(4, 8).tolist()
    [0, 0, 0, 0, 1, 1, 2, 2]
    """
    rounds = max(1, int(np.ceil(np.log2(actions))))
    schedule: list = []
    visits = [0] * actions
    considered = actions
    while len(schedule) < simulations:
        for _ in range(max(1, simulations // (rounds * considered))):
            for k in range(considered):
                schedule.append(visits[k])
                visits[k] += 1
        considered = max(2, considered // 2)
        if actions == 1:
            considered = 1
    table = np.array(schedule[:simulations], np.int32)
    table.setflags(write=False)
    return table


@njit
def _what_is_known(N, W, V, P, legal, value):
    """(q of an action never visited, the highest q, all visits, the sum of P over the actions visited).

    The first is v mixed with the known q, weighted by the priors.
    """
    visits, weight, total, highest = np.float32(0.0), np.float32(0.0), np.float32(0.0), np.float32(-1.0)
    for move in range(len(N)):
        n = N[move] + V[move]
        if n > 0 and legal[move]:
            q = (W[move] - V[move]) / np.float32(n)
            visits += n
            weight += P[move]
            total += P[move] * q
            highest = max(highest, q)
    unvisited = value
    if weight > 0:
        unvisited = (value + visits * total / weight) / (1 + visits)
    return unvisited, max(highest, unvisited), visits, weight


@njit
def _sigma_factor(N, visit, scale):
    most = 0
    for move in range(len(N)):
        most = max(most, N[move])
    return np.float32((visit + most) * scale)


@njit
def improved_policy(N, W, V, P, legal, value, visit, scale, pi):
    """Fill `pi` with softmax(logits + sigma(completed q)) over the legal moves."""
    unvisited, highest, _, _ = _what_is_known(N, W, V, P, legal, value)
    factor = _sigma_factor(N, visit, scale)
    base = np.exp(factor * (unvisited - highest))
    total = np.float32(0.0)
    for move in range(len(N)):
        n = N[move] + V[move]
        weight = np.exp(factor * ((W[move] - V[move]) / np.float32(n) - highest)) if n > 0 else base
        pi[move] = P[move] * weight if legal[move] else np.float32(0.0)
        total += pi[move]
    if total > 0:
        for move in range(len(N)):
            pi[move] /= total
    else:
        for move in range(len(N)):
            pi[move] = P[move]


@njit
def improved_policy_action(N, W, V, P, legal, value, visit, scale, scores):
    """argmax_a pi'(a) - N(a) / (1 + sum_b N(b)): visits follow pi' without chance.

    Of the actions never visited, which share one q, only the one with the highest P can win.
    """
    unvisited, highest, visits, weight = _what_is_known(N, W, V, P, legal, value)
    factor = _sigma_factor(N, visit, scale)
    base = np.exp(factor * (unvisited - highest))
    total = base * max(np.float32(1.0) - weight, np.float32(0.0))  # of all weights, here of actions never visited
    best, prior = -1, np.float32(-1.0)
    for move in range(len(N)):
        n = N[move] + V[move]
        if n > 0:
            scores[move] = P[move] * np.exp(factor * ((W[move] - V[move]) / np.float32(n) - highest))
            total += scores[move] if legal[move] else np.float32(0.0)
        elif legal[move] and P[move] > prior:
            best, prior = move, P[move]
    if total <= 0:  # as in `improved_policy`, where all weights are too small to be told from 0
        base, total = np.float32(1.0), np.float32(1.0)
        for move in range(len(N)):
            scores[move] = P[move]
    score = prior * base / total if best >= 0 else np.float32(-np.inf)
    for move in range(len(N)):
        n = N[move] + V[move]
        if n > 0 and legal[move]:
            pi = scores[move] / total
            if pi - n / (1 + visits) > score:
                best, score = move, pi - n / (1 + visits)
    return best


@njit
def best_root_action(N, W, V, P, legal, value, noise, considered, visit, scale, scores):
    """argmax of g + logits + sigma(q) among the actions visited `considered` times (any, if there is none)."""
    exact = False
    for move in range(len(N)):
        exact |= legal[move] and N[move] + V[move] == considered
    unvisited, _, _, _ = _what_is_known(N, W, V, P, legal, value)
    factor = _sigma_factor(N, visit, scale)
    best, highest = -1, np.float32(-np.inf)
    for move in range(len(N)):
        n = N[move] + V[move]
        if legal[move] and (n == considered or not exact):
            q = (W[move] - V[move]) / np.float32(n) if n > 0 else unvisited
            score = noise[move] + np.log(max(P[move], np.float32(1e-20))) + factor * q
            if best < 0 or score > highest:
                best, highest = move, score
    return best
