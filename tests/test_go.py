"""The rules of Go, on boards drawn in ASCII: X is Black, O is White."""

import copy
import doctest
import pickle

import numpy as np
import pytest

from alphago_zero import go
from alphago_zero.coordinates import from_gtp
from alphago_zero.go import BLACK, EMPTY, WHITE, BoardState, IllegalMove, Rules


def board(drawing, to_play=BLACK, **rules):
    """A square board; rows below those drawn are empty."""
    rows = drawing.split()
    size = len(rows[0])
    rows += ["." * size] * (size - len(rows))
    return BoardState.from_ascii("\n".join(rows), Rules(board_size=size, **rules), to_play)


def play(state, *vertices):
    for vertex in vertices:
        state = state.play_move(from_gtp(vertex, state.size))
    return state


def is_legal(state, vertex):
    return state.is_legal(from_gtp(vertex, state.size))


def assert_board(state, drawing):
    assert np.array_equal(state.board, board(drawing).board), f"\n{state}"


# --- capture --------------------------------------------------------------------------------------------------------

CAPTURES = {
    "a stone in the middle": (
        """
        .X..
        XO..
        .X..
        """,
        "C3",
        """
        .X..
        X.X.
        .X..
        """,
        1,
    ),
    "a stone in the corner": (
        """
        OX..
        """,
        "A3",
        """
        .X..
        X...
        """,
        1,
    ),
    "a chain along the edge": (
        """
        OOO.
        XXX.
        """,
        "D4",
        """
        ...X
        XXX.
        """,
        3,
    ),
    "two chains at once": (
        """
        XO.OX
        XOXOX
        .XXX.
        """,
        "C5",
        """
        X.X.X
        X.X.X
        .XXX.
        """,
        4,
    ),
    "a ring that touches its last liberty four times": (
        """
        .XXXX
        XOOOX
        XO.OX
        XOOOX
        XXXXX
        """,
        "C3",
        """
        .XXXX
        X...X
        X.X.X
        X...X
        XXXXX
        """,
        8,
    ),
}


@pytest.mark.parametrize("before, vertex, after, taken", CAPTURES.values(), ids=CAPTURES)
def test_a_chain_without_liberties_is_taken(before, vertex, after, taken):
    state = play(board(before), vertex)
    assert_board(state, after)
    assert state.captures == {BLACK: taken, WHITE: 0}


def test_what_white_takes_is_counted_for_white():
    state = board(
        """
        XO.
        ...
        """,
        to_play=WHITE,
    )
    assert play(state, "A2").captures == {BLACK: 0, WHITE: 1}


def test_a_move_without_liberties_is_legal_if_it_captures():
    state = board(
        """
        .XO.
        XOO.
        OO..
        """,
        to_play=WHITE,
    )
    assert_board(
        play(state, "A4"),
        """
        O.O.
        .OO.
        OO..
        """,
    )


def test_liberties_that_a_capture_gives_back_are_counted():
    """Black's corner stone is in atari until it is Black who captures; then White may not take it."""
    state = play(
        board(
            """
            XO...
            .XO..
            XX...
            """
        ),
        "C5",
    )
    assert state.captures == {BLACK: 1, WHITE: 0}
    assert_board(
        state,
        """
        X.X..
        .XO..
        XX...
        """,
    )
    assert not is_legal(state, "B5")


def test_snapback():
    """White throws in a stone, Black takes it and so fills the own liberty, White takes five back: that is no ko."""
    state = board(
        """
        ..XO.
        XXXO.
        OOOO.
        """,
        to_play=WHITE,
    )
    state = play(state, "A5", "B5")
    assert state.captures == {BLACK: 1, WHITE: 0}
    state = play(state, "A5")
    assert_board(
        state,
        """
        O..O.
        ...O.
        OOOO.
        """,
    )
    assert state.captures == {BLACK: 1, WHITE: 5}


# --- suicide --------------------------------------------------------------------------------------------------------

SUICIDE_OF_TWO = """
    X.O..
    OO...
    """


@pytest.mark.parametrize("allow_suicide", [False, True])
def test_suicide_of_one_stone_is_never_allowed(allow_suicide):
    """Under either rule, for it would leave the board as it was."""
    state = board(
        """
        .O...
        O....
        """,
        allow_suicide=allow_suicide,
    )
    with pytest.raises(IllegalMove, match="A5 is suicide"):
        play(state, "A5")


def test_suicide_of_more_stones_is_forbidden_by_default():
    with pytest.raises(IllegalMove, match="B5 is suicide"):
        play(board(SUICIDE_OF_TWO), "B5")


def test_suicide_of_more_stones_can_be_allowed():
    state = play(board(SUICIDE_OF_TWO, allow_suicide=True), "B5")
    assert_board(
        state,
        """
        ..O..
        OO...
        """,
    )
    assert state.captures == {BLACK: 0, WHITE: 2}
    assert state.to_play == WHITE


def test_suicide_that_repeats_a_position_is_refused():
    state = play(board(SUICIDE_OF_TWO, allow_suicide=True), "B5", "E1", "A5", "pass")
    with pytest.raises(IllegalMove, match="B5 is forbidden by superko"):
        play(state, "B5")


# --- ko and superko -------------------------------------------------------------------------------------------------

KO = """
    .XO..
    XO.O.
    .XO..
    """


def test_a_ko_may_not_be_taken_back_at_once():
    state = play(board(KO), "C4")
    assert_board(
        state,
        """
        .XO..
        X.XO.
        .XO..
        """,
    )
    with pytest.raises(IllegalMove, match="B4 is forbidden by superko"):
        play(state, "B4")


def test_a_ko_may_be_taken_back_after_a_threat_and_its_answer():
    assert is_legal(play(board(KO), "C4", "E1", "E2"), "B4")


def test_a_pass_is_no_ko_threat():
    """Superko is positional: it does not ask who is to move."""
    state = play(board(KO), "C4").with_to_play(BLACK).pass_move()
    assert not is_legal(state, "B4")


def test_double_ko():
    """Two kos, one taken by each side: each capture is allowed until it would bring a position back."""
    state = board(
        """
        .XO.OX.
        XO.OX.X
        .XO.OX.
        """
    )
    state = play(state, "C6", "F6")  # Black takes the left ko, White answers in the right one
    assert not is_legal(state, "E6")  # the position after C6
    state = play(state, "E1", "B6")  # so Black plays elsewhere, and White has both
    assert not is_legal(state, "C6")  # the position after E1
    assert is_legal(state, "E6")
    assert not is_legal(play(state, "E6"), "F6")


def test_triple_ko_is_refused():
    """Three kos taken in turn. No capture undoes the one before, so the simple ko rule would let it go on for ever."""
    state = board(
        """
        .XO..XO..OX..
        XO.OXO.OOX.X.
        .XO..XO..OX..
        """
    )
    state = play(state, "C12", "L12", "G12", "B12", "K12")
    with pytest.raises(IllegalMove, match="F12 is forbidden by superko"):
        play(state, "F12")


def test_sending_two_returning_one_is_refused():
    """White adds a stone, Black takes two, White takes one back: the position with which it began."""
    state = board(
        """
        .O.O.
        XXOO.
        """,
        to_play=WHITE,
    )
    state = play(state, "A5", "C5")
    assert state.captures == {BLACK: 2, WHITE: 0}
    with pytest.raises(IllegalMove, match="B5 is forbidden by superko"):
        play(state, "B5")


def test_the_position_that_was_set_up_counts_as_played():
    """The stones of a setup may not be restored either."""
    state = play(board(KO), "C4", "pass", "pass")
    assert state.is_game_over
    assert state.position_hashes[0] == board(KO).hash


def test_legal_moves_agree_with_each_single_answer():
    state = play(board(KO), "C4")
    legal = state.legal_moves()
    assert legal.shape == (26,) and legal.dtype == bool
    assert [state.is_legal(move) for move in range(26)] == legal.tolist()


# --- eyes and the end -----------------------------------------------------------------------------------------------


def test_two_eyes_at_the_edge_cannot_be_filled():
    state = board(
        """
        .X.X.
        XXXXX
        """,
        to_play=WHITE,
    )
    assert [vertex for vertex in ("A5", "C5", "E5", "A3") if is_legal(state, vertex)] == ["A3"]


def test_the_last_point_of_a_full_board():
    """Black may not fill it, and White, by filling it, takes everything."""
    full = """
        XXX
        XXX
        XX.
        """
    assert board(full).legal_moves().tolist() == [False] * 9 + [True]
    assert board(full, komi=0).score() == 9
    state = play(board(full, to_play=WHITE), "C1")
    assert_board(
        state,
        """
        ...
        ...
        ..O
        """,
    )
    assert state.captures == {BLACK: 0, WHITE: 8}


def test_two_passes_end_the_game():
    state = play(BoardState(), "E5", "pass")
    assert not state.is_game_over
    state = play(state, "pass")
    assert state.is_game_over
    assert not state.legal_moves().any()
    with pytest.raises(IllegalMove, match="the game is over"):
        play(state, "pass")


def test_passes_with_a_move_between_do_not_end_the_game():
    assert not play(BoardState(), "pass", "E5", "pass").is_game_over


@pytest.mark.parametrize("max_moves, cap", [(0, 162), (5, 5)])
def test_a_game_ends_at_its_length_cap(max_moves, cap):
    state = BoardState(Rules(max_moves=max_moves))
    rng = np.random.default_rng(1)
    while not state.is_game_over:
        points = np.flatnonzero(state.legal_moves()[:-1])
        state = state.play_move(rng.choice(points)) if len(points) else state.pass_move()
    assert state.move_number == cap


# --- score ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "drawing, difference",
    [
        ("... ... ...", 0),  # nobody's
        (".X. ... ...", 9),  # one stone owns the board
        ("X.O X.O X.O", 0),  # dame count for nobody
        ("XX. XXO XX.", 6 - 1),  # the corners touch both colours
        (".XO X.O XXO", 5 - 3),
    ],
)
def test_area_is_stones_and_what_only_they_reach(drawing, difference):
    state = board(drawing, komi=0)
    assert state.score() == difference
    assert np.sum(state.owners() == BLACK) - np.sum(state.owners() == WHITE) == difference


def test_seki_is_scored_by_area():
    """The stones on both sides live; their two shared liberties belong to nobody."""
    state = board(
        """
        .OX.OX.
        OOX.OXX
        .OOXXX.
        OOOXXXX
        ..OX...
        ..OX...
        ..OX...
        """,
        komi=0,
    )
    assert [state.owners()[row, 3] for row in (0, 1)] == [EMPTY, EMPTY]
    assert state.score() == 26 - 21


@pytest.mark.parametrize(
    "komi, score, winner", [(7.5, 1.5, BLACK), (9.5, -0.5, WHITE), (9, 0, EMPTY), (-3, 12, BLACK), (0, 9, BLACK)]
)
def test_komi_decides_and_an_integer_komi_may_draw(komi, score, winner):
    state = board("... .X. ...", komi=komi)
    assert state.score() == score
    assert state.winner() == winner


# --- what people see ------------------------------------------------------------------------------------------------


def test_the_drawing_shows_coordinates_last_move_captures_and_move_number():
    state = play(board(KO), "C4")
    assert repr(state) == "\n".join(
        [
            "   A B C D E",
            " 5 . X O . . 5",
            " 4 X .(X)O . 4",
            " 3 . X O . . 3",
            " 2 . . . . . 2",
            " 1 . . . . . 1",
            "   A B C D E",
            "Move 1. Last move: C4. White (O) to play. Captures: Black 1, White 0.",
        ]
    )


@pytest.mark.parametrize("vertex, row", [("A3", " 3(X). . 3"), ("C3", " 3 . .(X)3")])
def test_a_last_move_at_the_edge_is_marked(vertex, row):
    assert row in repr(play(BoardState(Rules(board_size=3)), vertex))


def test_a_drawing_can_be_read_again():
    state = board(KO)
    drawing = "\n".join(row[3:-2] for row in repr(state).splitlines()[1:-2])
    assert np.array_equal(BoardState.from_ascii(drawing).board, state.board)


def test_a_position_does_not_change():
    state = play(BoardState(), "E5")
    before = repr(state)
    play(state, "E6", "E4")
    assert repr(state) == before
    for array in (state.board, state.position_hashes):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(AttributeError, match="does not change"):
        state.moves = ()


def test_a_position_tells_its_game():
    state = play(BoardState(), "E5", "pass", "D4")
    assert state.moves == (40, 81, 48)
    assert state.last_move == 48 and BoardState().last_move is None
    assert (state.move_number, state.to_play) == (3, WHITE)
    assert len(state.position_hashes) == 4 and state.position_hashes[-1] == state.hash


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda state: pickle.loads(pickle.dumps(state))])
def test_a_position_can_be_copied_and_sent_to_another_process(duplicate):
    state = play(board(KO), "C4")
    other = duplicate(state)
    assert repr(other) == repr(state)
    assert np.array_equal(other.legal_moves(), state.legal_moves())


def test_the_examples_in_the_module_are_true():
    assert doctest.testmod(go).failed == 0


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("move", [-1, 82, 1000])
def test_a_move_off_the_board_is_refused(move):
    assert not BoardState().is_legal(move)
    with pytest.raises(IllegalMove, match=f"{move} is not a point of a 9x9 board"):
        BoardState().play_move(move)


def test_an_occupied_point_is_refused():
    with pytest.raises(IllegalMove, match="illegal move 2 of White: E5 is occupied"):
        play(BoardState(), "E5", "E5")


def test_the_wrong_turn_is_refused_where_a_colour_is_given():
    assert BoardState().play_move(0, BLACK).to_play == WHITE
    with pytest.raises(IllegalMove, match="it is Black's turn, not White's"):
        BoardState().play_move(0, WHITE)


@pytest.mark.parametrize("color", [EMPTY, 3, "B"])
def test_what_is_no_colour_is_refused(color):
    for use in (BoardState().with_to_play, lambda c: BoardState().play_move(0, c)):
        with pytest.raises(IllegalMove, match="a colour is BLACK"):
            use(color)


@pytest.mark.parametrize(
    "black, white, complaint",
    [
        ([81], [], "81 is not a point"),
        ([-1], [], "-1 is not a point"),
        ([0, 0], [], "two stones at A9"),
        ([0], [0], "two stones at A9"),
        ([1, 9], [0], "no liberty"),
        (range(81), [], "no liberty"),
    ],
)
def test_an_impossible_setup_is_refused(black, white, complaint):
    with pytest.raises(IllegalMove, match=complaint):
        BoardState.setup(Rules(), black, white)


@pytest.mark.parametrize("drawing", ["", "X", "X. .", "XX ..", "..\n.#", "...\n...\n.."])
def test_a_bad_drawing_is_refused(drawing):
    with pytest.raises(ValueError):
        BoardState.from_ascii(drawing)


@pytest.mark.parametrize(
    "rules, complaint",
    [
        ({"board_size": 1}, "board_size"),
        ({"board_size": 20}, "board_size"),
        ({"komi": float("nan")}, "komi"),
        ({"komi": float("inf")}, "komi"),
        ({"max_moves": -1}, "max_moves"),
        ({"max_moves": 40_000}, "max_moves"),
    ],
)
def test_impossible_rules_are_refused(rules, complaint):
    with pytest.raises(ValueError, match=complaint):
        Rules(**rules)


@pytest.mark.parametrize("size", range(2, 20))
def test_every_board_size_is_played(size):
    state = BoardState(Rules(board_size=size))
    assert state.legal_moves().all()
    state = play(state, "A1", "B2", "pass", "pass")
    assert state.is_game_over and state.board.sum() == BLACK + WHITE
