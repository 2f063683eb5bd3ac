"""The 17 planes: own and opposing stones of the last 8 positions, and whose turn it is."""

import numpy as np
import pytest

from alphago_zero.coordinates import from_gtp
from alphago_zero.features import PLANES, extract_features, write_planes
from alphago_zero.go import BLACK, WHITE, BoardState, Rules, copy_position, empty_positions
from alphago_zero.symmetries import apply_to_planes, point_permutations


def game(size, *vertices, **rules):
    state = BoardState(Rules(board_size=size, **rules))
    for vertex in vertices:
        state = state.play_move(from_gtp(vertex, size))
    return state


def random_states(size, seed=0, length=40):
    """The positions of a random game, from the empty board on."""
    rng = np.random.default_rng(seed)
    states = [BoardState(Rules(board_size=size))]
    while len(states) <= length and not states[-1].is_game_over:
        states.append(states[-1].play_move(rng.choice(np.flatnonzero(states[-1].legal_moves()))))
    return states


def test_the_empty_board_has_no_stones_and_black_to_play():
    planes = extract_features(BoardState())
    assert planes.shape == (9, 9, 17) and planes.dtype == np.uint8
    assert not planes[..., :16].any()
    assert planes[..., 16].all()


def test_the_last_plane_is_of_ones_only_if_black_is_to_play():
    state = game(9, "E5")
    assert not extract_features(state)[..., 16].any()
    assert extract_features(state.pass_move())[..., 16].all()


def test_own_and_opposing_stones_alternate_back_in_time():
    planes = extract_features(game(9, "E5", "C3", "G7"))  # White to play
    e5, c3, g7 = (from_gtp(vertex, 9) for vertex in ("E5", "C3", "G7"))
    now, one_ago, two_ago, before = [{c3}, {e5, g7}], [{c3}, {e5}], [set(), {e5}], [set()] * 10
    stones = [set(np.flatnonzero(planes[..., k]).tolist()) for k in range(16)]
    assert stones == now + one_ago + two_ago + before


def test_a_row_of_the_planes_is_a_row_of_the_board():
    planes = extract_features(game(9, "J9", "A1"))  # upper right, lower left
    assert planes[0, 8, 0] == 1 and planes[8, 0, 1] == 1


def test_captured_stones_stay_in_the_history():
    state = game(3, "A3", "B3", "C1", "A2")  # White takes A3
    planes = extract_features(state)
    assert planes[0, 0, 0] == 0  # Black's stone now
    assert planes[0, 0, 2] == 1  # one move ago


def test_a_pass_repeats_the_position():
    planes = extract_features(game(9, "E5", "pass"))
    assert planes[4, 4, 0] == planes[4, 4, 2] == 1 and planes[4, 4, 4] == 0


@pytest.mark.parametrize("size", [2, 5, 9, 13])
def test_the_planes_are_those_of_the_last_8_boards(size):
    """Computed once more from the boards themselves."""
    states = random_states(size)
    for t, state in enumerate(states):
        boards = [states[t - k].board if t >= k else np.zeros((size, size)) for k in range(8)]
        me = state.to_play
        expected = [plane for board in boards for plane in (board == me, board == 3 - me)]
        expected.append(np.full((size, size), me == BLACK))
        assert np.array_equal(extract_features(state), np.stack(expected, axis=-1))


def test_stones_that_were_set_up_have_no_history():
    planes = extract_features(BoardState.setup(Rules(), black=[40], white=[41], to_play=WHITE))
    assert [np.flatnonzero(planes[..., k]).tolist() for k in range(4)] == [[41], [40], [], []]


@pytest.mark.parametrize("size", [4, 9])
def test_a_batch_under_any_symmetry_is_its_positions_one_by_one(size):
    """`write_planes`, which the search calls slot by slot, agrees with `extract_features`."""
    states = random_states(size)
    positions = empty_positions(size, len(states))
    for i, state in enumerate(states):
        copy_position(state._positions, 0, positions, i)
    planes = np.full((size * size, PLANES), 255, np.uint8)
    for i, state in enumerate(states):
        symmetry = i % 8
        write_planes(positions, i, point_permutations(size)[symmetry], planes)
        expected = apply_to_planes(extract_features(state), symmetry)
        assert np.array_equal(planes.reshape(size, size, PLANES), expected)
