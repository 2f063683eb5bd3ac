"""The network's input: 17 planes (paper: Methods, 'Neural network architecture').

In: a position with its last 8 boards. Out: uint8 [N, N, 17]: own stones now, opponent's stones now, own stones one
move ago, ... 8 times, and a plane of ones if Black is to play. Boards before the first move are empty.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from alphago_zero.go import BLACK, HISTORY, BoardState
from alphago_zero.jit import njit

PLANES = 2 * HISTORY + 1


def _spread_bits() -> np.ndarray:
    """uint64 [256, 2]: the 8 bits of a byte of history as 16 bytes, of which every other one stays 0."""
    table = np.zeros((256, 2 * HISTORY), np.uint8)
    table[:, ::2] = np.arange(256)[:, None] >> np.arange(HISTORY) & 1
    return table.view("<u8")


_SPREAD = _spread_bits()


@intrinsic
def _store_word(typing_context, array, index, word):
    """Write 8 bytes at once into an array of bytes, at any place."""

    def generate(context, builder, signature, arguments):
        data = context.make_array(array)(context, builder, arguments[0]).data
        place = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(64).as_pointer())
        builder.store(arguments[2], place, align=1)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.uint64), generate


@njit
def write_planes(positions, i, permutation, planes):
    """Slot `i` as planes (uint8 [points, 17]), seen under the symmetry whose permutation of points is given."""
    color = positions.to_play[i]
    own, opponent = positions.history[i, color - 1], positions.history[i, 2 - color]
    black_to_play = color == BLACK
    one_byte = np.uint64(8)
    for point in range(planes.shape[0]):
        source = permutation[point]
        mine, theirs = own[source], opponent[source]
        _store_word(planes, point * PLANES, _SPREAD[mine, 0] | _SPREAD[theirs, 0] << one_byte)
        _store_word(planes, point * PLANES + 8, _SPREAD[mine, 1] | _SPREAD[theirs, 1] << one_byte)
        planes[point, 2 * HISTORY] = black_to_play


def extract_features(state: BoardState) -> np.ndarray:
    """uint8 [N, N, 17] for one position."""
    planes = np.empty((state.rules.points, PLANES), np.uint8)
    write_planes(state._positions, 0, np.arange(state.rules.points, dtype=np.int16), planes)
    return planes.reshape(state.size, state.size, PLANES)
