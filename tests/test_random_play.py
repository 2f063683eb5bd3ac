"""Random play: any sensible move as likely as any other, and no own eye filled."""

import numpy as np
import pytest

from alphago_zero.coordinates import from_gtp
from alphago_zero.go import BLACK, WHITE, BoardState, Rules, empty_positions, geometry
from alphago_zero.random_play import is_own_eye, random_playout, random_seed, sensible_random_move

EYES = {
    "in the middle": (". . . . .|. X X X .|. X . X .|. X X X .|. . . . .", True),
    "in the middle, one diagonal lost": (". . . . .|. O X X .|. X . X .|. X X X .|. . . . .", True),
    "in the middle, two diagonals lost": (". . . . .|. O X X .|. X . X .|. X X O .|. . . . .", False),
    "in the middle, a side open": (". . . . .|. X X X .|. X . X .|. X . X .|. . . . .", False),
    "in the middle, a side lost": (". . . . .|. X X X .|. X . X .|. X O X .|. . . . .", False),
}
EYES_AT_THE_EDGE = {
    "at the edge": (". X . X .|. X X X .|. . . . .|. . . . .|. . . . .", "C5", True),
    "at the edge, one diagonal lost": (". X . X .|. X X O .|. . . . .|. . . . .|. . . . .", "C5", False),
    "in the corner": (". X . . .|X X . . .|. . . . .|. . . . .|. . . . .", "A5", True),
    "in the corner, its diagonal lost": (". X . . .|X O . . .|. . . . .|. . . . .|. . . . .", "A5", False),
}
ALL_EYES = {name: (drawing, "C3", eye) for name, (drawing, eye) in EYES.items()} | EYES_AT_THE_EDGE


@pytest.mark.parametrize("drawing, vertex, eye", ALL_EYES.values(), ids=ALL_EYES)
def test_an_eye(drawing, vertex, eye):
    drawing = drawing.replace("|", "\n")
    swapped = drawing.translate(str.maketrans("XO", "OX"))
    for state, answer in (
        (BoardState.from_ascii(drawing), eye),
        (BoardState.from_ascii(drawing, to_play=WHITE), False),
        (BoardState.from_ascii(swapped, to_play=WHITE), eye),
    ):
        assert bool(is_own_eye(state._positions, 0, from_gtp(vertex, 5), geometry(5))) == answer


@pytest.mark.parametrize(
    "drawing, vertices",
    [
        ("...|...|...", "A1 A2 A3 B1 B2 B3 C1 C2 C3"),
        (".XO|XXO|XX.", "C1"),  # A3 is Black's eye
        (".X.|XXX|.X.", "pass"),
    ],
)
def test_every_legal_move_but_own_eyes_is_equally_likely(drawing, vertices):
    state = BoardState.from_ascii(drawing.replace("|", "\n"))
    random = random_seed(np.random.default_rng(0))
    count = 4000
    drawn = np.bincount([sensible_random_move(state, random) for _ in range(count)], minlength=10)
    moves = [from_gtp(vertex, 3) for vertex in vertices.split()]
    expected = count / len(moves)
    assert drawn.sum() == drawn[moves].sum()
    assert (np.abs(drawn[moves] - expected) < 5 * np.sqrt(expected)).all()


def test_a_random_game_ends_when_only_eyes_are_left():
    rules = Rules(board_size=5)
    tables, hashes = geometry(5), np.zeros(1001, np.uint64)
    random = random_seed(np.random.default_rng(1))
    for _ in range(50):
        positions = empty_positions(5, 1)
        random_playout(positions, 0, tables, False, 1000, hashes, 1, random)
        assert positions.passes[0] == 2 and positions.move_number[0] < 1000
        state = BoardState._make(rules, positions, (), hashes[: positions.move_number[0] + 1])
        for color in (BLACK, WHITE):
            turned = state.resumed().with_to_play(color)
            for move in np.flatnonzero(turned.legal_moves()[:-1]):
                assert is_own_eye(turned._positions, 0, move, tables), f"{move} was left\n{turned}"
