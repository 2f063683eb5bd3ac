"""Games as SGF: written, read back, read from the wild, and refused with a reason."""

import doctest

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alphago_zero import sgf
from alphago_zero.coordinates import from_gtp, to_gtp
from alphago_zero.go import BLACK, EMPTY, WHITE, BoardState, Rules
from alphago_zero.sgf import GameRecord, Note, SgfError, Variation, read_sgf, write_sgf


def moves(*vertices, size=9, first=BLACK):
    colors = (first, 3 - first)
    return tuple((colors[k % 2], from_gtp(vertex, size)) for k, vertex in enumerate(vertices))


def read(text):
    return read_sgf(text.encode())


# --- writing and reading back ---------------------------------------------------------------------------------------


def test_a_game_is_written_with_all_that_others_need():
    text = write_sgf(
        GameRecord(
            rules=Rules(komi=6.5),
            moves=moves("E5", "D4", "pass"),
            result="W+R",
            black_name="000001-bold-carp",
            white_name="a [person]",
            notes=(Note("start"), Note("Q 0.1\nsecond line", 0.55), Note(black_win_rate=0.5), Note()),
        )
    )
    for expected in [
        "FF[4]", "GM[1]", "CA[UTF-8]", "SZ[9]", "KM[6.5]", "RU[Chinese]", "RE[W+R]", "PB[000001-bold-carp]",
        r"PW[a [person\]]", "C[start]", ";B[ee]C[Q 0.1\nsecond line]SBKV[55.00]", "SBKV[50.00]W[df]", ";B[]",
    ]:  # fmt: skip
        assert expected in text


TEXT = st.text(st.characters(blacklist_categories=["C", "Z"]) | st.sampled_from(" \n]\\[;:()"), max_size=30).map(
    str.strip
)


@given(
    rules=st.builds(
        Rules,
        board_size=st.integers(2, 19),
        komi=st.integers(-20, 20).map(lambda k: k / 2) | st.sampled_from([6.25, 3.75]),
        allow_suicide=st.booleans(),
    ),
    seed=st.integers(0, 2**32),
    length=st.integers(0, 30),
    result=st.sampled_from(["B+3.5", "W+R", "B+T", "W+F", "B+", "0", "Void", "?"]),
    names=st.tuples(TEXT, TEXT),
    comments=st.lists(TEXT, min_size=31, max_size=31),
    win_rates=st.lists(st.none() | st.integers(0, 100).map(lambda p: p / 100), min_size=31, max_size=31),
)
@settings(max_examples=100, deadline=None)
def test_what_is_written_is_read_back(rules, seed, length, result, names, comments, win_rates):
    rng = np.random.default_rng(seed)
    state = BoardState(rules)
    played = []
    while len(played) < length and not state.is_game_over:
        move = int(rng.choice(np.flatnonzero(state.legal_moves())))
        played.append((state.to_play, move))
        state = state.play_move(move)
    notes = tuple(Note(*note) for note in list(zip(comments, win_rates))[: len(played) + 1])
    record = GameRecord(
        rules=rules,
        moves=tuple(played),
        result=result,
        black_name=names[0].replace("\n", " "),
        white_name=names[1].replace("\n", " "),
        notes=notes if any(note != Note() for note in notes) else (),
    )
    again = read(write_sgf(record))
    assert again == record
    assert repr(list(again.states())[-1]) == repr(state)


def test_setup_stones_and_turn_are_read_back():
    record = GameRecord(black_setup=(20, 24), white_setup=(40,), to_play=BLACK, moves=moves("A1", "B1"))
    assert read(write_sgf(record)) == record
    handicap = GameRecord(black_setup=(20, 24), to_play=WHITE, moves=moves("A1", first=WHITE))
    assert read(write_sgf(handicap)) == handicap
    white_first = GameRecord(to_play=WHITE)
    assert read(write_sgf(white_first)) == white_first


def test_variations_stand_beside_the_move_that_was_played():
    line = Variation(moves("D4", "D5", first=WHITE), Note("better", 0.4, labels=((from_gtp("C3", 9), "A:1"),)))
    record = GameRecord(moves=moves("E5", "F5", "E6"), variations=((), (line,), ()))
    text = write_sgf(record)
    assert ";B[ee](;W[fe];B[ed])(;C[better]LB[cg:A:1]SBKV[40.00]W[df];B[de]))" in text.replace("\n", "")
    assert read(text).moves == record.moves  # the main line comes first


@pytest.mark.parametrize("number", [0, 2])
def test_the_first_and_the_last_move_may_have_variations(number):
    lines = tuple((Variation(moves("D4")), Variation(moves("D5"))) if k == number else () for k in range(3))
    record = GameRecord(moves=moves("E5", "F5", "E6"), variations=lines)
    text = write_sgf(record)
    assert text.count("(") == 4 and text.count(")") == 4
    assert read(text).moves == record.moves


@pytest.mark.parametrize(
    "result, winner",
    [("B+3.5", BLACK), ("W+R", WHITE), ("B+", BLACK), ("0", EMPTY), ("Void", None), ("?", None)],
)
def test_a_result_names_its_winner(result, winner):
    assert GameRecord(result=result).winner == winner


def test_the_examples_in_the_module_are_true():
    assert doctest.testmod(sgf).failed == 0


# --- reading what others wrote --------------------------------------------------------------------------------------


def test_a_handicap_game():
    record = read("(;GM[1]SZ[9]HA[2]KM[0.5]AB[cg][gc];W[ee];B[ec])")
    assert record.black_setup == tuple(sorted(from_gtp(vertex, 9) for vertex in ("C3", "G7")))
    assert record.to_play == WHITE and record.rules.komi == 0.5
    assert [to_gtp(move, 9) for _, move in record.moves] == ["E5", "E7"]


@pytest.mark.parametrize(
    "text, to_play",
    [
        ("(;SZ[9])", BLACK),
        ("(;SZ[9];W[aa])", WHITE),
        ("(;SZ[9]AB[aa])", WHITE),  # handicap
        ("(;SZ[9]AB[aa]AW[bb])", BLACK),
        ("(;SZ[9]AB[aa]PL[B])", BLACK),
        ("(;SZ[9]PL[white])", WHITE),
        ("(;SZ[9]AB[aa];PL[B])", BLACK),
    ],
)
def test_who_plays_first(text, to_play):
    assert read(text).to_play == to_play
    assert next(read(text).states()).to_play == to_play


def test_setup_before_the_first_move_may_take_stones_away_and_name_rectangles():
    record = read("(;SZ[9]AB[aa:cb]AW[ee];AE[bb][ee]AW[ff];B[ii])")
    assert [to_gtp(p, 9) for p in record.black_setup] == ["A9", "B9", "C9", "A8", "C8"]
    assert [to_gtp(p, 9) for p in record.white_setup] == ["F4"]


@pytest.mark.parametrize("notation", ["", "tt"])
def test_a_pass_in_both_notations(notation):
    assert read(f"(;SZ[9];B[{notation}])").moves == ((BLACK, 81),)


def test_a_third_pass_after_the_end_is_left_out():
    assert read("(;SZ[9];B[ee];W[];B[];W[])").moves == moves("E5", "pass", "pass")


@pytest.mark.parametrize("to_play", [BLACK, WHITE])
@pytest.mark.parametrize("first", [BLACK, WHITE])
def test_whose_turn_it_was_is_read_back_whoever_moved(to_play, first):
    record = GameRecord(rules=Rules(board_size=9), moves=((first, 40),), to_play=to_play)
    assert read(write_sgf(record)) == record


def test_two_moves_of_one_colour_in_a_row():
    record = read("(;SZ[9];B[ee];B[dd])")
    assert list(record.states())[-1].board.sum() == 2 * BLACK


@pytest.mark.parametrize(
    "komi, value", [("0", 0), ("7.5", 7.5), ("-3", -3), ("6,5", 6.5), (" 5.5 ", 5.5), ("", 7.5), ("3.75", 3.75)]
)
def test_any_komi(komi, value):
    assert read(f"(;SZ[9]KM[{komi}])").rules.komi == value


@pytest.mark.parametrize(
    "text, size", [("SZ[9]", 9), ("SZ[13:13]", 13), ("", 19), ("SZ[ 7 ]", 7), ("SZ[2]", 2), ("SZ[19]", 19)]
)
def test_sizes(text, size):
    assert read(f"(;{text})").rules.board_size == size


@pytest.mark.parametrize(
    "text, result",
    [
        ("B+3.5", "B+3.5"),
        ("b+r", "B+R"),
        ("W+Resign", "W+R"),
        ("W+Time", "W+T"),
        ("B+Forfeit", "B+F"),
        ("B+10.0", "B+10"),
        ("B+", "B+"),
        ("Draw", "0"),
        ("jigo", "0"),
        ("0", "0"),
        ("Void", "Void"),
        ("None", "?"),
        ("", "?"),
    ],
)
def test_results_in_one_spelling(text, result):
    assert read(f"(;RE[{text}])").result == result


@pytest.mark.parametrize(
    "rules, allow_suicide", [("Chinese", False), ("NZ", True), ("Tromp-Taylor", True), ("", False)]
)
def test_rules_that_allow_suicide(rules, allow_suicide):
    assert read(f"(;RU[{rules}])").rules.allow_suicide is allow_suicide


def test_the_main_line_of_the_first_game_is_read_and_the_unknown_left_alone():
    record = read(
        "some mail header\n(;GM[1]FF[3]SiZe[9]XY[what]KGSDE[1][2] ;B[ee]TR[ee]MN[x]BL[3];W[dd]\n"
        "(;B[cc]C[main];W[bb])(;B[gg](;W[hh])(;W[ii])))\n(;SZ[19];B[aa])"
    )
    assert record.moves == moves("E5", "D6", "C7", "B8")
    assert [note.comment for note in record.notes] == ["", "", "", "main", ""]


def test_comments_between_moves_belong_to_the_position():
    record = read("(;SZ[9]C[one];C[two];B[ee]C[three];C[four])")
    assert [note.comment for note in record.notes] == ["one\ntwo", "three\nfour"]


@pytest.mark.parametrize("value", ["", "much", "nan", "-5", "170"])
def test_a_win_rate_that_is_none_is_left_out(value):
    assert read(f"(;SZ[9];B[ee]SBKV[{value}])").notes == ()


def test_a_game_longer_than_the_usual_cap_is_read():
    rng = np.random.default_rng(0)
    state = BoardState(Rules(board_size=5, max_moves=90))
    while not state.is_game_over:
        points = np.flatnonzero(state.legal_moves()[:-1])
        state = state.play_move(rng.choice(points)) if len(points) else state.pass_move()
    assert state.move_number > 50
    colors = [(BLACK, WHITE)[k % 2] for k in range(state.move_number)]
    record = read(write_sgf(GameRecord(rules=state.rules, moves=tuple(zip(colors, state.moves)))))
    assert np.array_equal(list(record.states())[-1].board, state.board)


@pytest.mark.parametrize(
    "charset, data, name",
    [
        ("UTF-8", "柯洁".encode(), "柯洁"),
        ("GB2312", "柯洁".encode("gb2312"), "柯洁"),
        (None, "柯洁".encode(), "柯洁"),
        (None, "Müller".encode("latin-1"), "Müller"),
        ("UTF-8", "Müller".encode("latin-1"), "Müller"),
        ("no-such-charset", b"Lee", "Lee"),
        ("hex", b"Lee", "Lee"),
        ("undefined", b"Lee", "Lee"),
    ],
)
def test_names_in_any_encoding(charset, data, name):
    declared = f"CA[{charset}]".encode() if charset else b""
    assert read_sgf(b"(;SZ[9]" + declared + b"PB[" + data + b"])").black_name == name


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, complaint",
    [
        ("", "no SGF data found"),
        ("hello", "no SGF data found"),
        ("(;SZ[9];B[ee]", "unexpected end of SGF data"),
        ("(;SZ[9];B[ee", "unexpected end of SGF data"),
        ("(;GM[3])", "not a game of Go"),
        ("(;SZ[20])", "board_size must be between 2 and 19, not 20"),
        ("(;SZ[9:13])", "SZ '9:13' is not the size of a square board"),
        ("(;SZ[nine])", "SZ 'nine' is not the size"),
        ("(;SZ[99999999999999999999999999])", "is not the size"),
        ("(;SZ[9]KM[some])", "KM 'some' is not a komi"),
        ("(;SZ[9]KM[nan])", "komi must be between"),
        ("(;SZ[9]KM[1e999])", "komi must be between"),
        ("(;SZ[9];B[ee];W[ee])", "move 2 of White: E5 is occupied"),
        ("(;SZ[9];B[ee];W[zz])", "move 2: 'zz' is not a point of a 9x9 board"),
        ("(;SZ[9];B[jj])", "move 1: 'jj' is not a point"),
        ("(;SZ[9];B[ee]W[dd])", "move 1: more than one move in a node"),
        ("(;SZ[9];B[ee][dd])", "move 1: more than one move in a node"),
        ("(;SZ[9];B[ee];AB[dd])", "move 2: stones are put down after the first move"),
        ("(;SZ[9]AB[zz])", "'zz' is not a point"),
        ("(;SZ[9]AB[tt])", "'tt' is not a point"),
        ("(;SZ[9]AB[aa:bb:cc])", "is not a point"),
        ("(;SZ[2]AB[aa:bb])", "a chain has no liberty"),
        ("(;SZ[9];B[];W[];B[ee])", "move 3 of Black: the game is over"),
        ("(;SZ[3]AB[ab][ba];W[aa])", "move 1 of White: A3 is suicide"),
    ],
)
def test_a_bad_file_is_refused_with_its_name_the_move_and_the_reason(tmp_path, text, complaint):
    path = tmp_path / "game.sgf"
    path.write_text(text)
    with pytest.raises(SgfError) as error:
        read_sgf(path)
    message = str(error.value)
    assert message.startswith(str(path)) and complaint in message
    assert len(message.splitlines()) == 1 and len(message) < len(str(path)) + 150


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(SgfError, match=r"cannot read .*missing\.sgf: No such file"):
        read_sgf(tmp_path / "missing.sgf")
    with pytest.raises(SgfError, match="cannot read"):
        read_sgf(str(tmp_path))


HOSTILE = {
    "huge": b"(;C[" + b"x" * 2_000_000 + b"])",
    "deep": b"(;" * 200_000,
    "deep and closed": b"(;SZ[9]" + b"(;C[x]" * 100_000 + b")" * 100_001,
    "many moves": b"(;SZ[9]" + b";B[aa]" * 100_000 + b")",
    "many nodes": b"(;SZ[9]" + b";C[x]" * 100_000 + b")",
    "many rectangles": b"(;SZ[19]AB" + b"[aa:sr]" * 100_000 + b"AE[zz])",
    "binary": bytes(range(256)) * 1000,
    "backslashes": b"(;C[" + b"\\" * 500_001 + b"])",
    "brackets": b"(;C[" + b"]" * 500_000,
    "a long name of a point": b"(;SZ[9];B[" + b"a" * 500_000 + b"])",
    "a long size": b"(;SZ[" + b"9" * 500_000 + b"])",
    "a long komi": b"(;SZ[9]KM[" + b"x" * 500_000 + b"])",
    "line breaks in a value": b"(;SZ[9]KM[x\n\ny])",
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_is_refused_in_one_short_line(data):
    with pytest.raises(SgfError) as error:
        read_sgf(data)
    assert len(str(error.value)) < 200 and len(str(error.value).splitlines()) == 1


@given(
    st.binary(max_size=200)
    | st.text("()[];:\\BWAEZSKMCTPL9abt \n", max_size=60).map(lambda text: f"(;{text})".encode())
)
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_a_game_or_an_sgf_error(data):
    try:
        record = read_sgf(data)
    except SgfError:
        return
    assert read(write_sgf(record)) == record
