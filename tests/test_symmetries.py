"""The 8 symmetries of the square: a group, under which the rules and the planes do not change."""

import numpy as np
import pytest

from alphago_zero.features import extract_features
from alphago_zero.go import BoardState, Rules
from alphago_zero.symmetries import COUNT, apply_to_planes, apply_to_policy, inverse, point_permutations

SYMMETRIES = range(8)
SIZES = [2, 3, 9, 19]


def test_there_are_8():
    assert COUNT == 8


@pytest.mark.parametrize("size", SIZES)
def test_they_are_8_different_permutations_that_leave_the_pass_alone(size):
    table = point_permutations(size)
    assert table.shape == (8, size * size + 1) and table.dtype == np.int16
    assert len({tuple(row) for row in table}) == 8
    assert (np.sort(table, axis=1) == np.arange(size * size + 1)).all()
    assert (table[:, -1] == size * size).all()
    assert (table[0] == np.arange(size * size + 1)).all()


@pytest.mark.parametrize("size", SIZES)
def test_neighbours_stay_neighbours(size):
    def distance(p, q):
        return abs(p // size - q // size) + abs(p % size - q % size)

    for permutation in point_permutations(size).astype(int):
        for p in range(size * size - 1):
            assert distance(permutation[p], permutation[p + 1]) == distance(p, p + 1)


def test_one_after_another_is_again_one_of_them():
    table = point_permutations(5)
    rows = {tuple(row) for row in table}
    assert all(tuple(table[a][table[b]]) in rows for a in SYMMETRIES for b in SYMMETRIES)


def test_the_table_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        point_permutations(9)[0, 0] = 1


@pytest.mark.parametrize("symmetry", SYMMETRIES)
@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
def test_the_inverse_undoes_it(symmetry, batch):
    rng = np.random.default_rng(0)
    planes, policy = rng.random((*batch, 5, 5, 17)), rng.random((*batch, 26))
    assert np.array_equal(apply_to_planes(apply_to_planes(planes, symmetry), inverse(symmetry)), planes)
    assert np.array_equal(apply_to_policy(apply_to_policy(policy, symmetry), inverse(symmetry)), policy)


def test_drawn():
    """Where the corners of a board go: four turns, and the four turns of its mirror image."""
    corners = np.array([[1, 2], [3, 4]])[..., None]
    drawn = [apply_to_planes(corners, symmetry)[..., 0].tolist() for symmetry in SYMMETRIES]
    assert drawn[:4] == [[[1, 2], [3, 4]], [[2, 4], [1, 3]], [[4, 3], [2, 1]], [[3, 1], [4, 2]]]
    assert sorted(drawn[4:]) == [[[1, 3], [2, 4]], [[2, 1], [4, 3]], [[3, 4], [1, 2]], [[4, 2], [3, 1]]]


@pytest.mark.parametrize("symmetry", SYMMETRIES)
def test_planes_and_policy_are_turned_the_same_way(symmetry):
    """The point of a stone and the probability of the move that played it stay together; the pass stays last."""
    for move in range(26):
        state = BoardState(Rules(board_size=5)).play_move(move)
        policy = np.zeros(26)
        policy[move] = 1
        stones = apply_to_planes(extract_features(state), symmetry)[..., 1].ravel()
        turned = apply_to_policy(policy, symmetry)
        assert np.array_equal(stones, turned[:-1])
        assert turned[-1] == (move == 25)


@pytest.mark.parametrize("symmetry", SYMMETRIES)
def test_a_game_seen_under_a_symmetry_is_a_game(symmetry):
    """Playing the turned moves gives the turned boards, legal moves, planes and the same score."""
    rng = np.random.default_rng(symmetry)
    state = turned = BoardState(Rules(board_size=5))
    where = np.argsort(point_permutations(5)[symmetry])  # where a point goes
    while not state.is_game_over:
        move = rng.choice(np.flatnonzero(state.legal_moves()))
        state, turned = state.play_move(move), turned.play_move(where[move])
        assert np.array_equal(apply_to_planes(extract_features(state), symmetry), extract_features(turned))
        assert np.array_equal(apply_to_policy(state.legal_moves(), symmetry), turned.legal_moves())
        assert state.score() == turned.score()
