"""The 8 symmetries of the square, for planes and for policies (paper: the rules of Go are invariant under them).

A symmetry is a number 0 to 7, 0 the identity: `transformed[p] = original[permutation[p]]`.
"""

from __future__ import annotations

from functools import cache

import numpy as np

IDENTITY = 0
COUNT = 8
_INVERSES = (0, 3, 2, 1, 4, 5, 6, 7)  # only the quarter turns differ from their inverses


def _transform(square: np.ndarray, symmetry: int) -> np.ndarray:
    """Turn by `symmetry % 4` quarters, first mirrored if `symmetry` >= 4; the board is the first two axes."""
    return np.rot90(square[:, ::-1] if symmetry >= 4 else square, symmetry % 4)


@cache
def point_permutations(size: int) -> np.ndarray:
    """int16 [8, N * N + 1]; the pass, last, stays where it is."""
    points = size * size
    board = np.arange(points).reshape(size, size)
    table = np.array([[*_transform(board, s).ravel(), points] for s in range(COUNT)], np.int16)
    table.setflags(write=False)
    return table


def inverse(symmetry: int) -> int:
    return _INVERSES[symmetry]


def apply_to_planes(planes: np.ndarray, symmetry: int) -> np.ndarray:
    """Planes [..., N, N, C] seen under a symmetry."""
    *batch, size, _, channels = planes.shape
    flat = planes.reshape(*batch, size * size, channels)
    return flat[..., point_permutations(size)[symmetry, :-1], :].reshape(planes.shape)


def apply_to_policy(policy: np.ndarray, symmetry: int) -> np.ndarray:
    """Probabilities [..., N * N + 1] seen under the same symmetry."""
    size = int(round((policy.shape[-1] - 1) ** 0.5))
    return policy[..., point_permutations(size)[symmetry]]
