"""Who owns what when the game is played on: living stones live, dead ones are found, whatever the network knows."""

import numpy as np
import pytest
from fake_networks import FlatNetwork, HashNetwork, ScoreNetwork

from alphago_zero.config import load_config
from alphago_zero.coordinates import from_gtp, to_gtp
from alphago_zero.go import BLACK, EMPTY, WHITE, BoardState, Rules
from alphago_zero.scoring import chains, dead_stones, final_owners, score, seki_stones

CONFIG = load_config()


def judge(board, network, to_play=BLACK, seed=0, komi=7.5):
    """The position, and who owns its points."""
    size = len([line for line in board.splitlines() if line.strip()])
    state = BoardState.from_ascii(board, Rules(board_size=size, komi=komi), to_play)
    return state, final_owners(state, network, CONFIG, readouts=16, rng=np.random.default_rng(seed))


def vertices(points, state):
    return {to_gtp(point, state.size) for point in points}


# Black has the left, White the right, each with two eyes; nothing is left to play.
TWO_LIVE_GROUPS = """
    . X X X O O O O .
    X X X X O O O O O
    X X X X O O O O O
    X X X X O O O O O
    X X X X O O O O O
    X X X X O O O O O
    X X X X O O O O O
    X X X X O O O O O
    . X X X O O O O .
"""

# The same with a white stone in a black corner and a black one in a white corner.
WITH_DEAD_STONES = """
    . X . X . O . . .
    X X X X . O . X .
    . . . X O O . . .
    . O . X O . O O O
    . . . X O . O . .
    X X . X O O O . .
    . X X X O . . O .
    X . X . O . O . O
    . X X X O O . O .
"""


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("network", [FlatNetwork(), HashNetwork()], ids=["flat", "random"])
def test_two_eyes_live_whatever_the_network_says(network, seed):
    state, owners = judge(TWO_LIVE_GROUPS, network, seed=seed)
    assert dead_stones(state, owners) == []
    assert score(owners, 7.5) == state.score() == 36 - 45 - 7.5


# White's eyes are the last two empty points on its side.
TWO_SMALL_EYES = """
    . X X O O
    . . X O .
    . X X O O
    . . X O .
    . X X O O
"""


@pytest.mark.parametrize("seed", range(20))
def test_two_small_eyes_live_though_the_search_looked_at_filling_them(seed):
    state, owners = judge(TWO_SMALL_EYES, HashNetwork(), seed=seed)
    assert (owners.reshape(5, 5)[:, 3:] == WHITE).all()


@pytest.mark.parametrize("to_play", [BLACK, WHITE])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("network", [FlatNetwork(), HashNetwork()], ids=["flat", "random"])
def test_lonely_stones_inside_a_territory_are_dead(network, seed, to_play):
    state, owners = judge(WITH_DEAD_STONES, network, to_play, seed)
    assert vertices(dead_stones(state, owners), state) == {"B6", "H8"}


@pytest.mark.parametrize("seed", range(5))
def test_a_closed_border_is_counted_as_it_stands(seed):
    """However badly the network would play on: of a finished position only the dead stones are in question."""
    state, owners = judge(WITH_DEAD_STONES, HashNetwork(), seed=seed)
    dead = {from_gtp("B6", 9), from_gtp("H8", 9)}
    black, white = (set(np.flatnonzero(state.board == color)) - dead for color in (BLACK, WHITE))
    cleaned = BoardState.setup(state.rules, black, white)
    closed = cleaned.owners().ravel() != EMPTY
    assert (owners[closed] == cleaned.owners().ravel()[closed]).all()


def test_dead_stones_are_found_by_a_player_who_is_far_ahead_and_would_pass():
    state, owners = judge(WITH_DEAD_STONES, ScoreNetwork(Rules()), komi=-60.0)
    assert vertices(dead_stones(state, owners), state) == {"B6", "H8"}


def test_a_game_ended_by_two_passes_is_judged_as_one_that_goes_on():
    state = BoardState.from_ascii(WITH_DEAD_STONES).pass_move().pass_move()
    assert state.is_game_over
    owners = final_owners(state, FlatNetwork(), CONFIG, readouts=8, rng=np.random.default_rng(0))
    assert vertices(dead_stones(state, owners), state) == {"B6", "H8"}


def test_a_game_at_its_length_limit_is_judged():
    rules = Rules(board_size=5, max_moves=4)
    state = BoardState(rules)
    for vertex in ("C3", "C2", "B2", "B3"):
        state = state.play_move(from_gtp(vertex, 5))
    assert state.is_game_over
    assert final_owners(state, FlatNetwork(), CONFIG, readouts=4).shape == (25,)


def test_the_score_counts_owners_and_komi():
    owners = np.array([BLACK] * 5 + [WHITE] * 3 + [EMPTY], np.uint8)
    assert score(owners, 0.5) == 1.5


def test_a_chain_is_dead_as_a_whole_or_not_at_all():
    state = BoardState.from_ascii("X X . \n . . . \n O O . ")
    owners = np.full(9, WHITE, np.uint8)
    assert dead_stones(state, owners) == [0, 1]
    owners[0] = BLACK
    assert dead_stones(state, owners) == []  # half of it is not most of it
    assert sorted(chains(state)) == [[0, 1], [6, 7]]


@pytest.mark.parametrize("row, seki", [("X . O", True), (". X . O .", False)])
def test_living_stones_without_a_liberty_of_their_own_are_in_seki(row, seki):
    size = len(row.split())
    state = BoardState.from_ascii("\n".join([row] * size))
    assert seki_stones(state, state.owners().ravel()) == (np.flatnonzero(state.board).tolist() if seki else [])


def test_an_empty_board_is_judged_without_fault():
    owners = final_owners(BoardState(Rules(board_size=5)), FlatNetwork(), CONFIG, readouts=4)
    assert set(np.unique(owners)) <= {EMPTY, BLACK, WHITE}


def test_a_small_evaluator_plays_the_continuations_one_after_another():
    class Small(FlatNetwork):
        batch_size = 3

        def evaluate(self, planes):
            assert len(planes) <= self.batch_size
            return super().evaluate(planes)

    state, owners = judge(TWO_LIVE_GROUPS, Small())
    assert dead_stones(state, owners) == []
