"""Who may sit at a board: names, mistakes in names, and programs that misbehave."""

import contextlib
import dataclasses
import io
import sys
import textwrap

import numpy as np
import pytest

from alphago_zero.arena import play_match
from alphago_zero.config import load_config
from alphago_zero.constants import RunPaths
from alphago_zero.go import BLACK, BoardState, Rules
from alphago_zero.gtp_client import GtpDied, GtpHang, GtpProgram, GtpRefusal
from alphago_zero.match import Match
from alphago_zero.model import ModelError
from alphago_zero.players import Concession, HumanPlayer, PlayerError, RawPlayer, parse_player, seat_player
from alphago_zero.sgf import read_sgf

# A Go program as small as it can be, for 5x5: it plays four moves around the middle, then passes, and cannot count.
# Its argument says what it does wrong at its fourth move, or else.
PROGRAM = """
    import sys, time
    fault = sys.argv[1]
    for line in sys.stdin:
        command, *words = line.split()
        answer = "= "
        if command == "boardsize" and fault == "refuses-board":
            answer = "? unacceptable size"
        elif command == "clear_board":
            taken, own = [], 0
        elif command == "play":
            taken.append(words[1])
            if fault == "refuses-move" and len(taken) > 6:
                answer = "? illegal move"
        elif command == "genmove":
            own += 1
            free = [vertex for vertex in "C3 B4 D4 B2 D2 C4 C2 B3 D3".split() if vertex not in taken]
            answer += "pass" if own > 4 else free[0]
            taken += free[:1]
            if own == 4:
                if fault == "crash":
                    sys.exit("out of memory")
                elif fault == "hang":
                    time.sleep(1000)
                elif fault == "illegal":
                    answer = "= " + taken[0]
                elif fault == "nonsense":
                    answer = "= Q99"
                elif fault == "resign":
                    answer = "= resign"
                while fault == "garbage":
                    print("lorem ipsum " * 100)
        elif command == "final_score":
            answer = "= B+100" if fault == "wrong-score" else "? cannot count"
        elif command == "quit":
            break
        print(answer + "\\n", flush=True)
"""

SMALL = ["game.board_size=5", "evaluation.opening_moves=2", "evaluation.timeout=20", "selfplay.workers=1"]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("program") / "program.py"
    path.write_text(textwrap.dedent(PROGRAM))
    return lambda fault="none": f"gtp:{sys.executable} {path} {fault}"


def parse(word, folder):
    return parse_player(word, RunPaths(folder), readouts=100)


# --- names ------------------------------------------------------------------------------------------------------------


def test_players_are_named_in_one_word(tmp_path):
    assert parse("random", tmp_path).label == "random"
    assert parse("uct:500", tmp_path).readouts == 500
    spec = parse(f"gtp:{sys.executable} -c 'print(1, 2)'", tmp_path)
    assert spec.command == (sys.executable, "-c", "print(1, 2)")


def test_a_model_may_say_its_readouts(tmp_path):
    from alphago_zero.network import initialize_random_model

    config = load_config(None, ["game.board_size=5", "network.filters=2", "network.blocks=0"])
    prefix = initialize_random_model(RunPaths(tmp_path), config)
    assert parse("latest", tmp_path).label == f"{prefix.name}@100"
    assert parse("0@7", tmp_path).readouts == 7
    assert parse("0@7", tmp_path).leaves == 1
    assert parse("0@7x4", tmp_path) == dataclasses.replace(parse("0@7", tmp_path), leaves=4, label=f"{prefix.name}@7x4")
    assert parse(f"raw:{prefix}", tmp_path).label == f"raw:{prefix.name}"
    assert parse("best@3", tmp_path).rules().board_size == 5
    legal = BoardState(Rules(board_size=5)).legal_moves()
    for word in ("best@3", "best@9x4", "raw:best", "random", "uct:10"):
        player = seat_player(parse(word, tmp_path), config, np.random.default_rng(0), boards=2, batch=2)
        for board in (0, 1):
            player.start(board, BoardState(config.game))
        moves = player.choose([0, 1], [BoardState(config.game)] * 2)
        assert all(legal[move] for move in moves)


@pytest.mark.parametrize(
    "word, culprit",
    [
        ("uct", "uct:1000"),
        ("uct:", "uct:1000"),
        ("uct:0", "1 to 100,000"),
        ("uct:many", "uct:many"),
        ("uct:99999999999999999999", "1 to 100,000"),
        ("random:3", "random"),
        ("gtp:", "command"),
        ("gtp:no-such-program --mode gtp", "no-such-program"),
        ("gtp:gnugo 'unclosed", "quot"),
        ("alice:bob", "raw:MODEL"),
        ("best@lots", "best@400"),
        ("best@0", "best@400"),
        ("best@4x", "best@400x8"),
        ("best@4x65", "1 to 64"),
        ("raw:best", "no best model"),
        ("no-such-model", "no-such-model"),
        ("", "no model"),
    ],
)
def test_a_wrong_name_gets_one_line_that_names_it(tmp_path, word, culprit):
    with pytest.raises((PlayerError, ModelError)) as caught:
        parse(word, tmp_path)
    assert culprit in str(caught.value) and "\n" not in str(caught.value)


# --- programs ---------------------------------------------------------------------------------------------------------


def play(program, fault, games=2):
    """Games of a program (A) against random play, in this process."""
    a, b = (parse_player(word, RunPaths("."), readouts=1) for word in (program(fault), "random"))
    finished = []
    settings = [*SMALL, "evaluation.timeout=2"] if fault == "hang" else SMALL
    with contextlib.closing(Match(a, b, load_config(None, settings), range(games), games, seed=0)) as match:
        while not match.is_over:
            finished += match.ply()
    return sorted(finished, key=lambda game: game.number)


def test_a_sound_program_plays_whole_games(program, tmp_path):
    a, b = parse(program("none"), tmp_path), parse("random", tmp_path)
    games = {}
    result = play_match(
        a,
        b,
        load_config(None, SMALL),
        games=4,
        sgf_folder=tmp_path,
        on_game=lambda _, game: games.update({game.number: game}),
    )
    assert result.games == result.distinct == 4
    assert result.forfeits_a == result.forfeits_b == result.disputed == 0
    for number, game in games.items():
        record = read_sgf(tmp_path / f"{number:04d}.sgf")
        assert record.result == game.result and record.winner == game.winner
        assert (record.black_name == "random") == (number % 2 == 1)
    assert games[0].moves[:2] == games[1].moves[:2] != games[2].moves[:2] == games[3].moves[:2]


@pytest.mark.parametrize(
    "fault, letter, reason",
    [
        ("crash", "F", "out of memory"),
        ("hang", "T", "within 2 seconds"),
        ("illegal", "F", "illegal move"),
        ("nonsense", "F", "Q99"),
        ("garbage", "T", "not GTP"),
        ("refuses-move", "F", "refuses"),
        ("resign", "R", "resigned"),
    ],
)
def test_a_fault_loses_the_game_and_stands_in_the_record(program, fault, letter, reason):
    games = play(program, fault)
    assert len(games) == 2
    for game in games:
        assert game.points_a == 0
        assert game.result == ("W+" if game.a_color == BLACK else "B+") + letter
        assert reason in game.reason
        assert reason in read_sgf(game.sgf.encode()).notes[-1].comment


def test_another_count_changes_nothing_and_stands_in_the_record(program):
    for game in play(program, "wrong-score"):
        record = read_sgf(game.sgf.encode())
        *_, final = record.states()
        assert game.winner == final.winner()
        assert "counts B+100" in game.disputed
        assert "counts B+100" in record.notes[-1].comment


def test_a_program_that_cannot_play_here_is_an_error(program):
    with pytest.raises(PlayerError, match="unacceptable size"):
        play(program, "refuses-board")
    with pytest.raises(PlayerError, match="ended with exit code 0"):
        play(lambda fault: "gtp:true", "")


def test_the_client_tells_refusal_death_and_silence_apart(program):
    command = program("hang")[4:].split()
    client = GtpProgram(command, timeout=20)
    try:
        assert client.ask("komi 5.5") == ""
        with pytest.raises(GtpDied, match="exit code 1"):  # it does not know a board before clear_board
            client.ask("play black A1")
    finally:
        client.close()
    silent = GtpProgram([sys.executable, "-c", "import time; time.sleep(1000)"], timeout=0.2)
    with pytest.raises(GtpHang):
        silent.ask("name")
    silent.close(patience=0)
    echo = GtpProgram([sys.executable, "-c", "print('noise\\n?7 no\\nreally\\n'); input(); input()"], timeout=20)
    with pytest.raises(GtpRefusal, match="no really"):
        echo.ask("name")
    echo.close(patience=0)


# --- people -----------------------------------------------------------------------------------------------------------


def test_a_raw_network_plays_its_strongest_legal_move():
    class Opinionated:
        def evaluate(self, planes):
            p = np.tile(np.arange(26, dtype=np.float32), (len(planes), 1))
            p[:, 25] = 0.5
            return p / p.sum(axis=1, keepdims=True), np.zeros(len(planes), np.float32)

    empty = BoardState(Rules(board_size=5))
    states = [empty, empty.play_move(24), empty.play_move(24).play_move(23)]
    assert RawPlayer(Opinionated()).choose([0, 1, 2], states) == [24, 23, 22]


def test_a_person_is_asked_until_the_move_is_legal(monkeypatch, capsys):
    state = BoardState(Rules(board_size=5)).play_move(12)
    monkeypatch.setattr(sys, "stdin", io.StringIO("Z9\nC3\nd4\nresign\n"))
    player = HumanPlayer()
    assert player.choose([0], [state]) == [8]
    assert player.choose([0], [state])[0] == Concession("R", "resigned")
    with pytest.raises(PlayerError, match="input ended"):
        player.choose([0], [state])
    shown = capsys.readouterr()
    assert "occupied" in shown.err and "Z9" in shown.err and "(X)" in shown.err
    assert not shown.out


def test_a_person_plays_one_game_after_another_without_an_opening(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "stdin", io.StringIO("pass\n" * 100))
    human, random = parse("human", tmp_path), parse("random", tmp_path)
    result = play_match(human, random, load_config(None, SMALL), games=2)
    assert result.games == 2 and result.wins_b == 2


def test_a_person_sees_the_final_board(capsys):
    state = BoardState(Rules(board_size=5)).pass_move()
    HumanPlayer().see(0, BoardState(Rules(board_size=5)), 25, own=True)
    assert not capsys.readouterr().err
    HumanPlayer().see(0, state, 25, own=False)
    assert "Move 2. Last move: pass." in capsys.readouterr().err


def test_both_colours_take_turns_at_one_board(tmp_path):
    config = load_config(None, [*SMALL, "evaluation.parallel_games=1"])
    a = b = parse("random", tmp_path)
    match = Match(a, b, config, [0, 1, 2], 3, seed=0)
    games = []
    while not match.is_over:
        games += match.ply()
    assert [game.number for game in games] == [0, 1, 2]
