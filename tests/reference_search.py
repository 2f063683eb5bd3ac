"""The search once more: slow, plain objects, written straight from the paper, to prove `alphago_zero.tree` against.

Rules come from `BoardState`. Arithmetic is float32, in the order in which the formulas are written, so that both
searches must agree to the last bit and in every visit count.
"""

from __future__ import annotations

import numpy as np

from alphago_zero.features import extract_features
from alphago_zero.go import BLACK, BoardState
from alphago_zero.symmetries import COUNT, apply_to_planes, point_permutations

ONE = np.float32(1.0)


class Node:
    """A position in the tree, with the statistics of its edges."""

    def __init__(self, state: BoardState, no_pass_before: int):
        moves = state.rules.points + 1
        self.state = state
        self.N = np.zeros(moves, np.int64)
        self.W = np.zeros(moves, np.float32)
        self.in_flight = np.zeros(moves, np.int64)  # each counts as a lost visit
        self.P = None  # float32 [moves] once evaluated
        self.value = None  # float32 for the player to move, once known
        self.children = {}  # move -> Node
        self.legal = state.legal_moves()
        if state.is_game_over:
            score = state.score() if state.to_play == BLACK else -state.score()
            self.value = np.float32(1 if score > 0 else -1 if score < 0 else 0)
        elif state.move_number < no_pass_before and self.legal[:-1].any():
            self.legal[-1] = False


class ReferenceSearch:
    """One tree; `step` evaluates up to `leaves` leaves together."""

    def __init__(self, state: BoardState, config, rng, *, leaves: int = 1, no_pass_before: int = 0):
        self.config, self.rng, self.leaves, self.no_pass_before = config, rng, leaves, no_pass_before
        self.root = Node(state, no_pass_before)
        self.remaining = 0
        self.noise = None

    def begin(self, readouts: int, noise=None) -> None:
        """`noise`: float32 [moves], Gamma(alpha) distributed, so that the part of the legal moves is Dirichlet."""
        self.remaining, self.noise = readouts, noise

    def play(self, move: int) -> None:
        """The subtree under the move is kept."""
        child = self.root.children.get(move)
        self.root = child or Node(self.root.state.play_move(move), self.no_pass_before)

    def run(self, evaluator) -> None:
        while self.remaining:
            self.step(evaluator)

    def step(self, evaluator) -> None:
        symmetries = self.rng.integers(COUNT, size=self.leaves)
        waiting = []  # (path, leaf)
        while self.remaining and len(waiting) < self.leaves:
            self.add_noise()
            path, leaf = self.walk()
            if leaf.value is not None:  # the game is over there
                self.back_up(path, leaf.value)
            elif any(leaf is other for _, other in waiting):
                for node, move in path:
                    node.in_flight[move] -= 1
                break
            else:
                waiting.append((path, leaf))
            self.remaining -= 1
        if not waiting:
            return
        planes = [apply_to_planes(extract_features(leaf.state), s) for (_, leaf), s in zip(waiting, symmetries)]
        p, v = evaluator.evaluate(np.array(planes))
        for k, (path, leaf) in enumerate(waiting):
            leaf.P = masked(p[k], leaf.legal, symmetries[k])
            leaf.value = v[k]
            self.back_up(path, v[k])

    def walk(self):
        """From the root along argmax Q + U to a node that is not evaluated, or at which the game is over."""
        node, path = self.root, []
        while node.P is not None:
            move = self.choose(node)
            path.append((node, move))
            node.in_flight[move] += 1
            if move not in node.children:
                node.children[move] = Node(node.state.play_move(move), self.no_pass_before)
            node = node.children[move]
        return path, node

    def choose(self, node: Node) -> int:
        visits = node.N + node.in_flight
        after_pass = node.state.last_move == node.state.rules.points
        if self.config.pass_answers_pass and after_pass and node.legal[-1] and visits[-1] == 0:
            return node.state.rules.points
        n = visits.astype(np.float32)
        first = {
            "zero": np.float32(0.0),
            "loss": np.float32(-1.0),
            "parent": max(node.value - np.float32(self.config.first_visit_reduction), np.float32(-1.0)),
        }[self.config.first_visit]
        Q = np.where(visits > 0, (node.W - node.in_flight.astype(np.float32)) / np.maximum(n, ONE), first)
        sqrt_sum = np.sqrt(np.float32(max(visits.sum(), 1)))
        U = np.float32(self.config.c_puct) * sqrt_sum * node.P / (ONE + n)
        return int(np.argmax(np.where(node.legal, Q + U, np.float32(-np.inf))))

    def add_noise(self) -> None:
        """P = (1 - epsilon) p + epsilon eta, once for a search."""
        if self.noise is None or self.root.P is None:
            return
        legal, epsilon = self.root.legal, np.float32(self.config.noise_fraction)
        eta = self.noise / one_by_one(self.noise[legal])
        self.root.P = np.where(legal, (ONE - epsilon) * self.root.P + epsilon * eta, np.float32(0.0))
        self.noise = None

    @staticmethod
    def back_up(path, value) -> None:
        for node, move in reversed(path):
            value = -value
            node.in_flight[move] -= 1
            node.N[move] += 1
            node.W[move] += value


def masked(p, legal, symmetry):
    """The network's p, turned back, over legal moves only, with sum 1."""
    size = int(len(p) ** 0.5)
    permutation = point_permutations(size)[symmetry]
    total = one_by_one(p[legal[permutation]])
    P = np.zeros(len(p), np.float32)
    P[permutation] = p
    return np.where(legal, P / total, np.float32(0.0))


def one_by_one(values):
    """The sum in the order given (np.sum adds in pairs, which rounds otherwise)."""
    return np.cumsum(values, dtype=np.float32)[-1]
