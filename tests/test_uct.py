"""UCT with random playouts: it sees what there is to see."""

import numpy as np
import pytest

from alphago_zero.coordinates import from_gtp, to_gtp
from alphago_zero.go import BLACK, WHITE, BoardState, Rules
from alphago_zero.random_play import random_seed, sensible_random_move
from alphago_zero.uct import UctSearch


def best_move(board, playouts=1000, to_play=BLACK, komi=0.5):
    rows = [line for line in board.splitlines() if line.strip()]
    rules = Rules(board_size=len(rows), komi=komi)
    search = UctSearch(rules, playouts, np.random.default_rng(0))
    return to_gtp(search.best_move(BoardState.from_ascii(board, rules, to_play)), rules.board_size)


@pytest.mark.parametrize("to_play", [BLACK, WHITE])
def test_it_takes_before_it_is_taken(to_play):
    board = """
        X X X O O
        X X X O O
        X X . O O
        X X O O O
        X X O O O
    """
    assert best_move(board, to_play=to_play) == "C3"


@pytest.mark.parametrize("to_play", [BLACK, WHITE])
def test_it_wins_against_random_play(to_play):
    rules = Rules(board_size=5, komi=0.5)
    rng = np.random.default_rng(1)
    search, random = UctSearch(rules, 100, rng), random_seed(rng)
    won = 0
    for _ in range(10):
        state = BoardState(rules)
        while not state.is_game_over:
            own = state.to_play == to_play
            state = state.play_move(search.best_move(state) if own else sensible_random_move(state, random))
        won += state.winner() == to_play
    assert won >= 8


def test_it_passes_when_that_wins():
    board = """
        . X . X .
        X X X X X
        X X X X X
        X X X X X
        . X . X .
    """
    state = BoardState.from_ascii(board, Rules(board_size=5, komi=0.5), WHITE).pass_move()
    assert UctSearch(state.rules, 50, np.random.default_rng(0)).best_move(state) == 25


def test_the_same_seed_finds_the_same_move():
    state = BoardState(Rules(board_size=7)).play_move(from_gtp("D4", 7))
    moves = [UctSearch(state.rules, 300, np.random.default_rng(5)).best_move(state) for _ in range(2)]
    assert moves[0] == moves[1] and state.is_legal(moves[0])
