"""The Go Text Protocol: dialogues, bytes of any kind, and an engine that never leaves the client without an answer."""

import os
import re
import textwrap
import time
from concurrent.futures import Future

import numpy as np
import pytest
from fake_networks import FlatNetwork, HashNetwork
from gtp_dialogues import ON_5x5, ON_9x9

from alphago_zero.alphagozero_agent import AlphaGoZeroAgent
from alphago_zero.config import load_config
from alphago_zero.coordinates import from_gtp, to_gtp
from alphago_zero.go import BLACK, WHITE, BoardState, Rules
from alphago_zero.gtp import LONGEST_LINE, Command, Dialogue, Lines, converse, in_background, parse
from alphago_zero.gtp_engine import MOST_VISITS, Engine, Options, for_playing
from alphago_zero.sgf import read_sgf


def done(result):
    future = Future()
    future.set_result(result)
    return future


def make_player(network, rules, overrides=()):
    config = for_playing(load_config(None, ["search.leaves=4", *overrides]), rules)
    return AlphaGoZeroAgent(network, config, np.random.default_rng(0))


class Client:
    """Talks to an engine in this process."""

    def __init__(self, rules=Rules(), network=None, options=Options(readouts=16), overrides=(), **extra):
        self.player = make_player(network or HashNetwork(), rules, overrides)
        extra.setdefault("pending", lambda: True)
        self.engine = Engine(rules, done(self.player), options, **extra)
        self.output = b""
        self.dialogue = Dialogue(done(self.engine), self._take, "000000-flat-cod")
        self.goes_on = True

    def _take(self, data):
        self.output += data

    def send(self, line):
        """The whole answer to a line."""
        self.output = b""
        self.goes_on = self.dialogue.answer(line if isinstance(line, bytes) else line.encode())
        return self.output.decode()

    def ask(self, command):
        """The text of the answer to a command, which must succeed."""
        answer = self.send(command)
        assert answer.startswith("=") and answer.endswith("\n\n"), f"{command}: {answer}"
        return answer[1:].strip()


def split_dialogue(text):
    """Pairs of a client's line and the expected answer."""
    pairs = []
    for line in textwrap.dedent(text).strip("\n").split("\n"):
        if line.startswith(">"):
            pairs.append((line[1:].lstrip(" "), []))
        elif line.strip():
            pairs[-1][1].append(line)
    return [(line, "\n".join(answer)) for line, answer in pairs]


def assert_dialogue(client, text):
    for line, expected in split_dialogue(text):
        answer = client.send(line)
        pattern = re.escape(expected).replace(re.escape("..."), r"[\s\S]*") + ("\n\n" if expected else "")
        assert re.fullmatch(pattern, answer), f"> {line}\n{answer}"
        assert "\n\n" not in answer[:-2], f"an empty line within the answer to {line}"


@pytest.mark.parametrize("title", ON_9x9)
def test_dialogue(title):
    assert_dialogue(Client(), ON_9x9[title])


@pytest.mark.parametrize("title", ON_5x5)
def test_dialogue_on_a_small_board(title):
    assert_dialogue(Client(Rules(board_size=5)), ON_5x5[title])


def test_there_are_enough_dialogues():
    assert len(ON_9x9) + len(ON_5x5) >= 60


# --- the protocol -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line, command",
    [
        (b"", Command("", "")),
        (b"  \t \r", Command("", "")),
        (b"# 1 name", Command("", "")),
        (b"1 name", Command("1", "name")),
        (b"\xef\xbb\xbfname", Command("", "\ufeffname")),
        (b"play b d4 # 4", Command("", "play", ("b", "d4"))),
        (b"-1 name", Command("", "-1", ("name",))),
        ("komi \u0667".encode(), Command("", "komi", ("\u0667",))),
        (b"\xff\xfe name", Command("", "\ufffd\ufffd", ("name",))),
    ],
)
def test_lines_are_parsed(line, command):
    assert parse(line) == command


@pytest.fixture
def pipe():
    read, write = os.pipe()
    yield read, write
    try:
        os.close(write)  # that ends the reader; the other end stays, lest a late reader takes a new pipe for its own
    except OSError:
        pass


def talk(read, write, data):
    """Send bytes through a pipe and close it; all answers."""
    client = Client(Rules(board_size=5))
    os.write(write, data)
    os.close(write)
    converse(Lines(read), client.dialogue)
    return client.output.decode()


def test_a_last_line_without_its_end_is_answered(pipe):
    assert talk(*pipe, b"1 name\n2 protocol_version") == "=1 AlphaGo Zero\n\n=2 2\n\n"


def test_nothing_after_quit_is_answered(pipe):
    assert talk(*pipe, b"1 quit\n2 name\n") == "=1\n\n"


def test_an_overlong_line_is_refused_and_the_next_one_answered(pipe):
    read, write = pipe
    in_background(lambda: [os.write(write, b"5 play " + b"x" * 500_000 + b"\n6 name\n"), os.close(write)])
    client = Client(Rules(board_size=5))
    converse(Lines(read), client.dialogue)
    assert client.output.decode() == f"?5 line too long: more than {LONGEST_LINE} bytes\n\n=6 AlphaGo Zero\n\n"


def test_the_longest_line_allowed_is_answered():
    client = Client(Rules(board_size=5))
    line = b"1 name " + b"x" * (LONGEST_LINE - 7)
    assert client.send(line) == "=1 AlphaGo Zero\n\n"
    assert client.send(line + b"x").startswith("?1 line too long")


def test_name_is_answered_while_the_engine_loads_and_others_wait():
    loading, output = Future(), []
    dialogue = Dialogue(loading, output.append, "")
    assert dialogue.answer(b"name")
    assert output == [b"= AlphaGo Zero\n\n"]
    answered = in_background(lambda: dialogue.answer(b"2 get_komi"))
    time.sleep(0.05)
    assert not answered.done()
    loading.set_result(Client().engine)
    assert answered.result(timeout=10)
    assert output[1] == b"=2 7.5\n\n"


def test_a_model_that_cannot_be_loaded_is_told_where_it_is_needed():
    broken = in_background(lambda: 1 / 0)
    engine, output = Engine(Rules(), broken), []
    dialogue = Dialogue(done(engine), output.append, "")
    for line in (b"play b e5", b"1 genmove w", b"2 final_score", b"3 showboard"):
        dialogue.answer(line)
    assert output[0] == b"=\n\n"
    assert output[1] == b"?1 cannot load the model: division by zero\n\n"
    assert output[2] == b"?2 cannot load the model: division by zero\n\n"
    assert output[3].startswith(b"=3\n")


def test_a_fault_of_the_engine_is_an_answer(capsys):
    class Faulty(FlatNetwork):
        def evaluate(self, planes):
            raise ZeroDivisionError("out of order")

    client = Client(network=Faulty())
    assert client.send("9 genmove b") == "?9 internal error: ZeroDivisionError: out of order\n\n"
    assert "Traceback" in capsys.readouterr().err
    assert client.send("10 name") == "=10 AlphaGo Zero\n\n"


# --- playing ----------------------------------------------------------------------------------------------------------


def test_the_tree_is_kept_while_the_game_goes_on():
    client = Client(network=FlatNetwork(), options=Options(readouts=400))
    client.ask("play b e5")
    client.ask("lz-genmove_analyze w 100")
    client.ask("reg_genmove b")
    reply = client.player.root.ranked_moves()[0]
    below = client.player.root.child_N[reply]
    assert below > 1
    client.ask(f"play b {to_gtp(reply, 9)}")
    client.ask("reg_genmove w")
    assert client.player.root.N == below + 400
    client.ask("undo")
    client.ask("reg_genmove b")
    assert client.player.root.N == 400  # there is no way back


def test_the_player_follows_whatever_the_client_does():
    rng = np.random.default_rng(5)
    client = Client(Rules(board_size=5), options=Options(readouts=8))
    for _ in range(300):
        action = rng.integers(8)
        color = "bw"[rng.integers(2)]
        if action < 3:
            client.send(f"play {color} {to_gtp(int(rng.integers(26)), 5)}")
        elif action < 6:
            client.ask(f"genmove {color}")
            assert client.player.state.hash == client.engine._searched.hash
        elif action == 6:
            client.send("undo")
        elif rng.random() < 0.2:
            client.ask("clear_board")
        replayed = BoardState(client.engine.state.rules)
        for mover, move in client.engine.moves:
            replayed = replayed.with_to_play(mover)
            replayed = (replayed.resumed() if replayed.is_game_over else replayed).play_move(move)
        assert replayed.hash == client.engine.state.hash


def test_a_lost_game_is_resigned_unless_told_otherwise():
    class Hopeless(FlatNetwork):
        """Whoever is to move thinks that White wins."""

        def evaluate(self, planes):
            p, v = super().evaluate(planes)
            return p, np.where(planes[:, 0, 0, 16] == 1, -0.99, 0.99).astype(np.float32)

    client = Client(network=Hopeless())
    assert client.ask("genmove b") == "resign"
    assert client.ask("list_stones b") == ""
    assert client.ask("genmove w") != "resign"
    stubborn = Client(network=Hopeless(), overrides=["selfplay.resign_threshold=-1"])
    assert stubborn.ask("genmove b") != "resign"


def test_readouts_limit_a_search():
    client = Client(options=Options(readouts=37), network=FlatNetwork())
    client.ask("reg_genmove b")
    assert client.player.root.N == 37
    client.ask("reg_genmove b")
    assert client.player.root.N == 74  # so many further ones


def test_an_interrupt_ends_a_search():
    import threading

    interrupt = threading.Event()
    interrupt.set()
    client = Client(options=Options(readouts=MOST_VISITS), interrupted=interrupt)
    started = time.monotonic()
    client.ask("genmove b")
    assert time.monotonic() - started < 20


def test_gogui_interrupts_by_a_comment(pipe):
    read, write = pipe
    lines = Lines(read)
    os.write(write, b"# interrupt\n")
    assert lines.interrupted.wait(10)
    assert lines.next(lambda: False) == b"# interrupt"
    assert not lines.interrupted.is_set()


def test_pondering_searches_on_after_a_move_and_stops_for_a_line(pipe):
    client = Client(options=Options(readouts=16, ponder=True))
    assert not client.dialogue.meanwhile()
    client.ask("genmove b")
    before = client.player.root.N
    for _ in range(10):
        assert client.dialogue.meanwhile()
    assert client.player.root.N >= before + 10
    client.ask("stop")
    assert not client.dialogue.meanwhile()
    read, write = pipe
    lines = Lines(read)
    client.ask("genmove w")
    in_background(lambda: [time.sleep(0.2), os.write(write, b"name\n")])
    assert lines.next(client.dialogue.meanwhile) == b"name"


def test_without_the_option_there_is_no_pondering():
    client = Client()
    client.ask("genmove b")
    assert not client.dialogue.meanwhile()


def test_a_game_goes_on_beyond_any_usual_length():
    client = Client(Rules(board_size=5))
    for _ in range(60):
        client.ask("play b pass")
        client.ask("play w pass")
    client.ask("play b c3")
    assert client.ask("genmove w")
    assert len(client.engine.moves) == 122


def test_a_game_is_saved_and_loaded(tmp_path):
    client = Client()
    client.ask("komi 5.5")
    client.ask("gogui-play_sequence b e5 w c3 b g7 w pass b d4")
    path = tmp_path / "a game.sgf"
    assert client.ask(f"printsgf {path}") == ""
    assert len(read_sgf(path).moves) == 5
    other = Client()
    other.ask(f"loadsgf {path}")
    assert other.engine.moves == client.engine.moves and other.engine.state.hash == client.engine.state.hash
    assert other.ask("get_komi") == "5.5"
    other.ask(f'loadsgf "{path}" 3')
    assert len(other.engine.moves) == 2
    other.ask("genmove b")


def test_a_handicap_game_is_saved_and_loaded(tmp_path):
    client = Client()
    client.ask("fixed_handicap 3")
    client.ask("play w e5")
    client.ask(f"printsgf {tmp_path}/game.sgf")
    other = Client()
    other.ask(f"loadsgf {tmp_path}/game.sgf")
    assert other.engine.state.hash == client.engine.state.hash
    assert other.engine.handicap == 3


def test_a_game_of_another_size_is_not_loaded(tmp_path):
    path = tmp_path / "game.sgf"
    path.write_text("(;FF[4]GM[1]SZ[19];B[dd])")
    client = Client()
    client.ask("play b e5")
    assert client.send(f"loadsgf {path}") == "? cannot load file: the game is on 19x19\n\n"
    path.write_text("(;FF[4]GM[1]SZ[9];B[dd];W[dd])")
    assert "occupied" in client.send(f"loadsgf {path}")
    assert client.ask("list_stones b") == "E5"


def test_a_pipe_is_neither_read_nor_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    client = Client()
    assert client.send(f"loadsgf {pipe}") == f"? not a file: {pipe}\n\n"
    assert client.send(f"printsgf {pipe}") == f"? not a file: {pipe}\n\n"
    assert pipe.is_fifo()


def test_a_judgement_is_made_once_for_a_position():
    class Counting(FlatNetwork):
        calls = 0

        def evaluate(self, planes):
            Counting.calls += 1
            return super().evaluate(planes)

    client = Client(Rules(board_size=5), network=Counting())
    client.ask("gogui-play_sequence b c1 w d1 b c2 w d2 b c3 w d3 b c4 w d4 b c5 w d5")
    client.ask("final_status_list dead")
    calls = Counting.calls
    assert calls
    client.ask("final_status_list alive")
    client.ask("final_score")
    assert Counting.calls == calls
    client.ask("play b b1")
    client.ask("final_score")
    assert Counting.calls > calls


# --- analysis ---------------------------------------------------------------------------------------------------------


def infos(line):
    """The moves of a line of analysis, as dictionaries; `pv` as a list."""
    found = []
    for part in re.split(r"\binfo ", line.split(" rootInfo")[0].split(" ownership")[0])[1:]:
        figures, _, pv = part.partition(" pv ")
        words = figures.split()
        found.append({**dict(zip(words[::2], words[1::2])), "pv": pv.split()})
    return found


@pytest.mark.parametrize("name, scale", [("lz-analyze", 10_000), ("kata-analyze", 1)])
def test_an_analysis_tells_what_the_search_knows(name, scale):
    client = Client(options=Options(readouts=200))
    client.ask("genmove b")
    client.ask("reg_genmove w")
    moves = infos(client.ask(f"{name} w 10").splitlines()[-1])
    root = client.player.root
    assert [int(move["order"]) for move in moves] == list(range(len(moves)))
    visits = [int(move["visits"]) for move in moves]
    assert visits == sorted(visits, reverse=True) and sum(visits) == root.child_N.sum()
    for move in moves:
        point = from_gtp(move["move"], 9)
        assert int(move["visits"]) == root.child_N[point]
        assert float(move["winrate"]) / scale == pytest.approx((1 + root.child_Q[point]) / 2, abs=1e-3)
        assert float(move["prior"]) / scale == pytest.approx(root.child_P[point], abs=1e-3)
        assert 0 <= float(move["lcb"]) <= float(move["winrate"]) + 1e-6
        assert move["pv"][0] == move["move"]
        state = client.engine.state
        for vertex in move["pv"]:
            state = state.play_move(from_gtp(vertex, 9))


def test_an_analysis_tells_as_many_moves_as_asked_for():
    client = Client()
    assert len(infos(client.ask("lz-analyze b 10 minmoves 40"))) == 40
    assert len(infos(client.ask("lz-analyze b 10 minmoves 1000").splitlines()[-1])) == 82
    assert len(infos(client.ask("lz-analyze b 10 maxmoves 3").splitlines()[-1])) == 3


def test_an_analysis_with_restrictions_leaves_no_trace():
    client = Client()
    client.ask("lz-analyze b 10 avoid b e5,pass 1")
    client.ask("reg_genmove b")
    assert client.player.root.legal.all()


def test_ownership_is_seen_by_the_player_to_move():
    client = Client(Rules(board_size=5))
    client.ask("gogui-play_sequence b c1 b c2 b c3 b c4 b c5 b b1 b b3 b b5")
    for color, sign in (("b", 1), ("w", -1)):
        answer = client.ask(f"kata-analyze {color} 10 ownership true")
        values = [float(word) for word in answer.split("ownership ")[1].split()[:25]]
        assert len(values) == 25
        assert all(sign * value > 0.5 for value in values[::5])  # the left edge is Black's


def test_analysis_streams_at_the_interval_asked_for():
    class Clock:
        time = 0.0

        def __call__(self):
            return self.time

    clock = Clock()

    class Slow(FlatNetwork):
        """Takes 20 ms by the engine's clock."""

        def evaluate(self, planes):
            clock.time += 0.02
            return super().evaluate(planes)

    client = Client(network=Slow(), now=clock, pending=lambda: clock.time >= 3.0)
    lines = client.ask("lz-analyze b 50").splitlines()
    assert 6 <= len([line for line in lines if line.startswith("info")]) <= 7
    clock.time = 0.0
    lines = client.ask("lz-analyze b 10").splitlines()
    assert 27 <= len([line for line in lines if line.startswith("info")]) <= 31


# --- anything at all --------------------------------------------------------------------------------------------------

WORDS = [
    *"b w black white BLACK pass resign e5 a1 j9 k10 z99 tt 0 1 2 3 9 19 -1 7.5 1e9 1e999 nan inf -inf true".split(),
    *"alive dead seki none absolute byoyomi canadian interval minmoves maxmoves allow avoid ownership rootInfo".split(),
    *"{} [[[ tromp-taylor chinese-kgs /dev/null /tmp . .. \x00 \xff # ' \" ; | \\ é 漢 e5,e6 e5,, false".split(),
    '{"ko":1}',
    "9" * 400,
    "x" * 300,
]
# Left out: what would write files, or wait for the clock.
FORBIDDEN = {"printsgf", "quit"}


def fuzzed_lines(client, count, seed):
    rng = np.random.default_rng(seed)
    names = [*client.ask("list_commands").split(), "foo", "", "12", "-"]
    commands = [name for name in names if name not in FORBIDDEN]
    for _ in range(count):
        kind = rng.random()
        if kind < 0.15:  # bytes
            yield rng.integers(0, 256, size=rng.integers(0, 60), dtype=np.uint8).tobytes().replace(b"\n", b"")
            continue
        words = [str(rng.choice(WORDS)) for _ in range(rng.integers(0, 6))]
        line = " ".join([str(rng.integers(1000)) if rng.random() < 0.3 else "", str(rng.choice(commands)), *words])
        line = line.encode(errors="replace").replace(b"\n", b"")
        if kind < 0.4 and len(line) > 1:  # a slip of the finger
            at = int(rng.integers(len(line)))
            line = line[:at] + bytes([int(rng.integers(256))]) + line[at + 1 :]
            line = line.replace(b"\n", b"")
        if parse(line).name not in FORBIDDEN:
            yield line


def assert_never_a_crash(count, seed, capsys):
    client = Client(Rules(board_size=5), options=Options(readouts=2))
    started, slowest = time.monotonic(), (0.0, b"")
    for line in fuzzed_lines(client, count, seed):
        began = time.monotonic()
        answer = client.send(line)
        slowest = max(slowest, (time.monotonic() - began, line))
        command = parse(line)
        if not command.name and not command.id:
            assert answer == ""
            continue
        assert re.match(rf"[=?]{command.id}([ \n]|$)", answer), (line, answer)
        assert answer.endswith("\n\n") and "\n\n" not in answer[:-2], (line, answer)
        assert "internal error" not in answer, (line, answer)
    assert "Traceback" not in capsys.readouterr().err
    assert client.ask("name") == "AlphaGo Zero"
    print(f"{count} lines in {time.monotonic() - started:.0f} s; the slowest took {slowest[0]:.2f} s: {slowest[1]!r}")


@pytest.mark.parametrize("count", [2_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_any_line_gets_an_answer(count, capsys):
    assert_never_a_crash(count, 0, capsys)


def test_black_and_white_are_spelled_in_both_ways():
    client = Client()
    for word, color in (("b", BLACK), ("black", BLACK), ("w", WHITE), ("white", WHITE)):
        assert client.engine.parse_color([word]) == color
