"""Our rules against those of GNU Go, move by move, through the Go Text Protocol."""

import shutil
import subprocess

import numpy as np
import pytest

from alphago_zero.coordinates import from_gtp, to_gtp
from alphago_zero.go import BLACK, WHITE, BoardState, Rules

GNUGO = shutil.which("gnugo") or shutil.which("gnugo", path="/usr/games")
NAMES = {BLACK: "black", WHITE: "white"}

pytestmark = [
    pytest.mark.gnugo,
    pytest.mark.skipif(GNUGO is None, reason="GNU GO IS NOT INSTALLED (apt-get install gnugo)"),
]


class GnuGo:
    """GNU Go as a keeper of the rules: Chinese, positional superko."""

    def __init__(self, size, allow_suicide):
        suicide = "--allow-suicide" if allow_suicide else "--forbid-suicide"
        options = ["--mode", "gtp", "--chinese-rules", "--positional-superko", suicide]
        self.process = subprocess.Popen([GNUGO, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ask(f"boardsize {size}")
        self.ask("clear_board")

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        answer = "".join(iter(self.process.stdout.readline, "\n"))
        assert answer.startswith("="), f"{command}: {answer}"
        return answer[1:].split()

    def close(self):
        self.process.communicate("quit\n")


@pytest.fixture
def gnugo():
    engines = []

    def start(*arguments):
        engines.append(GnuGo(*arguments))
        return engines[-1]

    yield start
    for engine in engines:
        engine.close()


def assert_agreement(state, engine):
    for color, name in NAMES.items():
        stones = {from_gtp(vertex, state.size) for vertex in engine.ask(f"list_stones {name}")}
        assert stones == set(np.flatnonzero(state.board == color)), f"\n{state}"
        assert engine.ask(f"captures {name}") == [str(state.captures[color])], f"\n{state}"
    legal = {from_gtp(vertex, state.size) for vertex in engine.ask(f"all_legal {NAMES[state.to_play]}")}
    assert legal - {state.rules.points} == set(np.flatnonzero(state.legal_moves()[:-1])), f"\n{state}"


@pytest.mark.parametrize("allow_suicide", [False, True])
@pytest.mark.parametrize("size, games", [(5, 20), (7, 10), (9, 8), (13, 2), (19, 1)])
def test_gnugo_agrees_move_by_move(gnugo, size, games, allow_suicide):
    rng = np.random.default_rng(size)
    for _ in range(games):
        state = BoardState(Rules(board_size=size, allow_suicide=allow_suicide))
        engine = gnugo(size, allow_suicide)
        while not state.is_game_over:
            assert_agreement(state, engine)
            points = np.flatnonzero(state.legal_moves()[:-1])
            move = rng.choice(points) if len(points) else state.rules.points
            engine.ask(f"play {NAMES[state.to_play]} {to_gtp(move, size)}")
            state = state.play_move(move)
