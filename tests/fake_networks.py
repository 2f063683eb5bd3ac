"""Evaluators for tests: they know nothing, or everything, but always say the same about the same planes."""

from __future__ import annotations

import numpy as np

from alphago_zero.features import PLANES
from alphago_zero.go import BLACK, WHITE, BoardState, Rules

_WEIGHTS = np.random.Generator(np.random.PCG64(0)).integers(1, 2**63, size=(19 * 19 * PLANES,), dtype=np.uint64)


def _mix(x: np.ndarray) -> np.ndarray:
    """splitmix64: every bit of the result depends on every bit of `x`."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _unit(x: np.ndarray) -> np.ndarray:
    """float32 in [0, 1)."""
    return (_mix(x) >> np.uint64(40)).astype(np.float32) / np.float32(2**24)


def _answer(move_hash: np.ndarray, value_hash: np.ndarray):
    """p and v from hashes uint64 [B, moves] and [B]: a few moves stand out, as with a real network."""
    p = _unit(move_hash)
    p = p * p * p * p
    return p / p.sum(axis=1, keepdims=True), np.float32(2) * _unit(value_hash) - np.float32(1)


class HashNetwork:
    """p and v are a hash of the planes. Two symmetries of a position get answers that have nothing in common."""

    def evaluate(self, planes: np.ndarray):
        flat = planes.reshape(len(planes), -1).astype(np.uint64)
        key = _mix(flat @ _WEIGHTS[: flat.shape[1]])
        moves = np.arange(planes.shape[1] * planes.shape[2] + 1, dtype=np.uint64)
        return _answer(key[:, None] + _mix(moves), key)


class EquivariantNetwork:
    """Hashes again, but the answer turns with the board: a point knows itself, its surroundings and the whole."""

    def evaluate(self, planes: np.ndarray):
        local = _mix(planes.astype(np.uint64) @ _WEIGHTS[:PLANES])
        for _ in range(3):
            padded = np.pad(local, ((0, 0), (1, 1), (1, 1)), constant_values=1)
            around = padded[:, :-2, 1:-1] + padded[:, 2:, 1:-1] + padded[:, 1:-1, :-2] + padded[:, 1:-1, 2:]
            local = _mix(local + np.uint64(3) * _mix(around))
        points = local.reshape(len(planes), -1)
        whole = _mix(points.sum(axis=1))
        return _answer(np.column_stack([_mix(points + whole[:, None]), whole]), whole + np.uint64(1))


class FlatNetwork:
    """Every move is as good as any other, and nobody is ahead."""

    def evaluate(self, planes: np.ndarray):
        moves = planes.shape[1] * planes.shape[2] + 1
        return np.full((len(planes), moves), np.float32(1 / moves)), np.zeros(len(planes), np.float32)


class ScoreNetwork:
    """Counts: v is the Tromp-Taylor score of the board as it stands, squeezed into [-1, 1]; all moves look alike."""

    def __init__(self, rules: Rules):
        self.rules = rules

    def evaluate(self, planes: np.ndarray):
        p, v = FlatNetwork().evaluate(planes)
        for k, position in enumerate(planes):
            own, opponent = (np.flatnonzero(position[:, :, t]).tolist() for t in (0, 1))
            black_to_play = bool(position[0, 0, -1])
            stones = (own, opponent) if black_to_play else (opponent, own)
            score = BoardState.setup(self.rules, *stones, BLACK if black_to_play else WHITE).score()
            v[k] = np.tanh((score if black_to_play else -score) / self.rules.points)
        return p, v
