"""The rules against an independent reference, over random games; and counted, against published numbers."""

import random
from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_go import ReferenceGame

from alphago_zero.go import (
    BLACK,
    EMPTY,
    LEGAL,
    WHITE,
    BoardState,
    Rules,
    copy_position,
    empty_positions,
    geometry,
    move_status,
    place_stone,
    play,
)
from alphago_zero.jit import njit

KOMI = 0.5


def start(size, allow_suicide):
    rules = Rules(board_size=size, komi=KOMI, allow_suicide=allow_suicide, max_moves=30_000)
    return BoardState(rules), ReferenceGame(size, allow_suicide)


def play_both(state, game, move):
    game.play(None if move == state.rules.points else divmod(move, state.size))
    return state.play_move(move)


def assert_same_position(state, game):
    black, white = ({divmod(int(p), state.size) for p in np.flatnonzero(state.board == c)} for c in (BLACK, WHITE))
    assert (black, white) == game.position, f"\n{state}"
    assert [state.captures[BLACK], state.captures[WHITE]] == game.captures
    assert state.to_play == (BLACK, WHITE)[game.to_play]


def assert_same_legal_moves(state, game):
    legal = np.flatnonzero(state.legal_moves()[:-1])
    assert [divmod(int(point), state.size) for point in legal] == game.legal_points(), f"\n{state}"


def assert_same_score(state, game):
    assert state.score() == game.score(KOMI), f"\n{state}"


def assert_hash_is_of_the_stones(state):
    zobrist = geometry(state.size).zobrist
    stones = ((color, point) for point, color in enumerate(state.board.ravel()) if color)
    assert state.hash == reduce(lambda x, stone: x ^ int(zobrist[stone]), stones, 0)


def random_game(seed, size, allow_suicide, checked_share):
    """A random game, the positions compared after every move and the legal moves after `checked_share` of them."""
    rng = random.Random(seed)
    state, game = start(size, allow_suicide)
    for _ in range(3 * state.rules.points):
        if rng.random() < checked_share:
            assert_same_legal_moves(state, game)
            assert_same_score(state, game)
        legal = np.flatnonzero(state.legal_moves()[:-1])
        move = int(rng.choice(legal)) if len(legal) and rng.random() < 0.98 else state.rules.points
        state = play_both(state, game, move)
        assert_same_position(state, game)
        if state.is_game_over:
            break
    assert_same_score(state, game)
    assert_hash_is_of_the_stones(state)


# --- against the reference ------------------------------------------------------------------------------------------


@given(
    size=st.sampled_from([2, 3, 4, 5, 9]),
    allow_suicide=st.booleans(),
    choices=st.lists(st.integers(0, 10_000), max_size=120),
)
@settings(max_examples=100, deadline=None)
def test_any_game_is_played_as_the_reference_plays_it(size, allow_suicide, choices):
    state, game = start(size, allow_suicide)
    for choice in choices:
        assert_same_legal_moves(state, game)
        legal = np.flatnonzero(state.legal_moves())
        state = play_both(state, game, int(legal[choice % len(legal)]))
        assert_same_position(state, game)
        assert_same_score(state, game)
        assert_hash_is_of_the_stones(state)
        if state.is_game_over:
            break


@pytest.mark.parametrize("allow_suicide", [False, True])
@pytest.mark.parametrize("size, games", [(2, 600), (3, 600), (4, 300), (5, 100), (6, 40), (9, 10), (19, 1)])
def test_random_games_are_those_of_the_reference(size, games, allow_suicide):
    for seed in range(games):
        random_game(seed, size, allow_suicide, checked_share=0.3)


@pytest.mark.slow
def test_100_000_random_games_are_those_of_the_reference():
    sizes = [2, 3, 4, 5, 5, 5, 6, 7, 9, 9]
    for seed in range(100_000):
        random_game(1_000_000 + seed, sizes[seed % len(sizes)], seed % 3 == 0, checked_share=0.05)


@given(
    size=st.integers(2, 9),
    colors=st.lists(st.sampled_from([EMPTY, BLACK, WHITE]), min_size=81, max_size=81),
    to_play=st.sampled_from([BLACK, WHITE]),
    allow_suicide=st.booleans(),
)
@settings(max_examples=100, deadline=None)
def test_any_position_that_can_be_set_up_is_judged_as_the_reference_judges_it(size, colors, to_play, allow_suicide):
    """Dense positions, where random games seldom come: chains without liberty are left out."""
    game = ReferenceGame(size, allow_suicide)
    stones = tuple(frozenset(p for p, c in zip(game.points, colors) if c == color) for color in (BLACK, WHITE))
    game.position = tuple(
        frozenset(p for p in own if game.has_liberty(game.connected(p, own), stones)) for own in stones
    )
    game.history = {game.position}
    game.to_play = to_play - BLACK
    black, white = ([row * size + column for row, column in own] for own in game.position)
    state = BoardState.setup(Rules(size, KOMI, allow_suicide), black, white, to_play)
    assert_same_position(state, game)
    assert_same_legal_moves(state, game)
    assert_same_score(state, game)
    assert_hash_is_of_the_stones(state)


# --- counting -------------------------------------------------------------------------------------------------------


def sequences(state, depth):
    """How many sequences of `depth` moves there are (chess programmers call it perft)."""
    if depth == 0:
        return 1
    return sum(sequences(state.play_move(move), depth - 1) for move in np.flatnonzero(state.legal_moves()))


def reference_sequences(game, depth, passes=0):
    if depth == 0:
        return 1
    if passes == 2:
        return 0
    total = 0
    for point in [*game.legal_points(), None]:
        saved = game.position, set(game.history), list(game.captures), game.to_play
        game.play(point)
        total += reference_sequences(game, depth - 1, passes + 1 if point is None else 0)
        game.position, game.history, game.captures, game.to_play = saved
    return total


@pytest.mark.parametrize("allow_suicide", [False, True])
@pytest.mark.parametrize("size, depth", [(2, 7), (3, 4), (4, 3), (5, 3)])
def test_move_sequences_are_as_many_as_in_the_reference(size, depth, allow_suicide):
    state, game = start(size, allow_suicide)
    assert sequences(state, depth) == reference_sequences(game, depth)


@njit(_nrt=True)
def reachable_positions(geometry, positions, hashes):
    """How many positions there are that play reaches from the empty board, either side to move.

    Slot 0 of `positions` stays empty, 1 is the position looked at, 2 the one after a move. A position's number has a
    digit of base 3 for each point. Each is looked at without its history: as every legal position can be built
    without captures, by stones of either side, superko keeps none out.
    """
    count = 3**geometry.points
    seen = np.zeros(count, np.uint8)
    waiting = np.empty(count, np.int32)
    waiting[0], found, looked_at = 0, 1, 0
    seen[0] = 1
    while looked_at < found:
        copy_position(positions, 0, positions, 1)
        rest = waiting[looked_at]
        looked_at += 1
        for point in range(geometry.points):
            if rest % 3 != EMPTY:
                place_stone(positions, 1, point, rest % 3, geometry)
            rest //= 3
        hashes[0] = positions.hash[1]
        for color in (BLACK, WHITE):
            positions.to_play[1] = color
            for point in range(geometry.points):
                if move_status(positions, 1, point, geometry, False, hashes, 1) == LEGAL:
                    copy_position(positions, 1, positions, 2)
                    play(positions, 2, point, geometry)
                    number = 0
                    for p in range(geometry.points - 1, -1, -1):
                        number = 3 * number + positions.stones[2, p]
                    if not seen[number]:
                        seen[number] = 1
                        waiting[found] = number
                        found += 1
    return found


@pytest.mark.parametrize(
    "size, legal_positions",  # John Tromp and Gunnar Farnebäck, "Combinatorics of Go"
    [(2, 57), (3, 12_675), pytest.param(4, 24_318_165, marks=pytest.mark.slow)],
)
def test_play_reaches_exactly_the_legal_positions(size, legal_positions):
    assert reachable_positions(geometry(size), empty_positions(size, 3), np.zeros(1, np.uint64)) == legal_positions
