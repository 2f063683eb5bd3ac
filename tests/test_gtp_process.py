"""The engine as other programs meet it: a process behind two pipes, GNU Go as judge, Sabaki as client."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_gnugo import GNUGO, GnuGo
from test_gtp import Client

from alphago_zero.config import load_config
from alphago_zero.constants import RunPaths
from alphago_zero.coordinates import from_gtp, to_gtp
from alphago_zero.go import Rules
from alphago_zero.model import model_file, promote, resolve_model

ROOT = Path(__file__).parent.parent
TIMEOUT = 600  # on a machine that has never compiled the kernels
NODE = shutil.which("node")
needs_gnugo = pytest.mark.skipif(GNUGO is None, reason="GNU GO IS NOT INSTALLED (apt-get install gnugo)")


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    """A run whose best model has random weights."""
    from alphago_zero.network import initialize_random_model

    config = load_config(None, ["network.filters=8", "network.blocks=1"])
    paths = RunPaths(tmp_path_factory.mktemp("run"))
    promote(paths, initialize_random_model(paths, config).name)
    return paths.root


def command(run_dir, *options):
    return [sys.executable, str(ROOT / "controller.py"), "gtp", "--run-dir", str(run_dir), *options]


def run(arguments, text):
    return subprocess.run(arguments, input=text, capture_output=True, text=True, timeout=TIMEOUT, cwd=ROOT)


def test_a_dialogue_with_the_process(run_dir):
    lines = "1 name\n2 boardsize 9\n3 play b e5\n4 genmove w\n5 play b e5\n6 final_score\n7 quit\n8 name\n"
    done = run(command(run_dir, "--readouts", "8"), lines)
    answers = done.stdout.split("\n\n")
    assert done.returncode == 0, done.stderr
    assert answers[:3] == ["=1 AlphaGo Zero", "=2", "=3"]
    assert from_gtp(answers[3].removeprefix("=4 "), 9) != from_gtp("e5", 9)
    assert answers[4].startswith("?5 illegal move") and answers[5].startswith("=6 ")
    assert answers[6:] == ["=7", ""]
    assert "Traceback" not in done.stderr


def test_the_process_ends_when_its_client_is_gone(run_dir):
    process = subprocess.Popen(command(run_dir), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdin.write(b"name\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"= AlphaGo Zero\n"
    process.stdout.close()  # now nobody hears the answers
    process.stdin.write(b"name\n" * 10)
    process.stdin.close()
    assert process.wait(TIMEOUT) == 0
    assert b"Traceback" not in process.stderr.read()


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-", ">/dev/full"])
def test_whatever_is_missing_the_process_ends_well(run_dir, closed):
    engine = shlex.join(command(run_dir, "--readouts", "2"))
    done = run(["sh", "-c", f"(printf 'name\\ngenmove b\\nquit\\n') | {engine} {closed}"], "")
    assert done.returncode == 0 and done.stderr == ""
    assert re.fullmatch(r"= AlphaGo Zero\n\n= \w+\n\n=\n\n" if closed == "2>&-" else "", done.stdout)


def test_an_analysis_streams_until_the_next_line(run_dir):
    process = subprocess.Popen(command(run_dir), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    process.stdin.write("1 kata-analyze b 2 rootInfo true\n")
    process.stdin.flush()
    assert process.stdout.readline() == "=1\n"
    visits = []
    for _ in range(5):
        line = process.stdout.readline()
        assert line.startswith("info move ")
        visits.append(int(line.split("rootInfo visits ")[1].split()[0]))
    assert visits == sorted(visits) and visits[-1] > visits[0]
    answers, _ = process.communicate("2 name\n", timeout=TIMEOUT)
    assert answers.endswith("\n\n=2 AlphaGo Zero\n\n")
    assert process.returncode == 0


def test_nothing_else_reaches_stdout():
    program = (
        "import os; from alphago_zero.gtp import private_stdout; write = private_stdout();"
        "os.write(1, b'a library '); print('and a careless print', flush=True); os.system('echo a child');"
        "write(b'= gtp')"
    )
    done = run([sys.executable, "-c", program], "")
    assert done.stdout == "= gtp"
    assert done.stderr == "a library and a careless print\na child\n"


def test_the_name_waits_for_nothing_heavy():
    program = (
        "import sys, alphago_zero.controller, alphago_zero.gtp, alphago_zero.model;"
        "print(sorted({'numpy', 'numba', 'tensorflow', 'openvino', 'sgfmill', 'matplotlib'} & set(sys.modules)))"
    )
    assert run([sys.executable, "-c", program], "").stdout == "[]\n"


@pytest.mark.parametrize(
    "options, words",
    [
        (["no-such-model"], "no model no-such-model"),
        (["--readouts", "0"], "--readouts must be at least 1"),
        (["--seconds", "-2"], "--seconds must be more than 0"),
        (["--resign-threshold", "7"], "selfplay.resign_threshold must be between -1 and 1"),
        (["--set", "search.c_puct=x"], "search.c_puct must be a number"),
    ],
)
def test_a_users_mistake_is_one_line(run_dir, options, words):
    done = run(command(run_dir, *options), "name\n")
    assert done.returncode == 2 and done.stdout == ""
    assert words in done.stderr and len(done.stderr.strip().splitlines()) == 1


def test_without_a_run_the_shipped_model_plays(tmp_path):
    done = run(command(tmp_path, "--readouts", "8"), "boardsize 9\ngenmove b\nquit\n")
    assert done.returncode == 0
    assert re.match(r"=\n\n= [A-HJ][1-9]\n", done.stdout)


def test_a_damaged_model_is_an_answer(run_dir, tmp_path):
    best = resolve_model("best", RunPaths(run_dir))
    for suffix in (".json", ".pb"):
        shutil.copy(model_file(best, suffix), tmp_path / f"broken{suffix}")
    with open(tmp_path / "broken.pb", "ab") as file:
        file.write(b"rust")
    done = run(command(run_dir, str(tmp_path / "broken")), "1 showboard\n2 genmove b\n3 quit\n")
    assert done.returncode == 0
    assert "?2 cannot load the model" in done.stdout and "is damaged" in done.stdout and "\n=3\n" in done.stdout


# --- GNU Go -----------------------------------------------------------------------------------------------------------


@pytest.mark.gnugo
@needs_gnugo
@pytest.mark.parametrize("games", [6, pytest.param(30, marks=pytest.mark.slow)])
def test_gnugo_accepts_and_refuses_the_same_moves(games):
    rng = np.random.default_rng(games)
    refused = 0
    for game in range(games):
        rules = Rules(board_size=9 if game % 3 else 5)
        client, judge = Client(rules), GnuGo(rules.board_size, allow_suicide=False)
        for attempt in range(3 * rules.points):
            color = ("black", "white")[(attempt + int(rng.random() < 0.1)) % 2]  # now and then out of turn
            line = f"play {color} {to_gtp(int(rng.integers(rules.points)), rules.board_size)}"
            judge.process.stdin.write(line + "\n")
            judge.process.stdin.flush()
            verdict = "".join(iter(judge.process.stdout.readline, "\n"))
            answer = client.send(line)
            assert answer[0] == verdict[0], f"{line}: {answer} {verdict}\n{client.engine.state}"
            refused += answer[0] == "?"
        for color in ("black", "white"):
            assert set(client.ask(f"list_stones {color}").split()) == set(judge.ask(f"list_stones {color}"))
        judge.close()
    assert refused > 50 * games


@pytest.mark.gnugo
@needs_gnugo
@pytest.mark.parametrize("size", [5, 7, 9, 12, 13, 19])
def test_gnugo_puts_fixed_handicap_stones_on_the_same_points(size):
    from alphago_zero.gtp_game import fixed_handicap

    judge = GnuGo(size, allow_suicide=False)
    for count in range(2, 10):
        judge.process.stdin.write(f"clear_board\nfixed_handicap {count}\n")
        judge.process.stdin.flush()
        _, verdict = ("".join(iter(judge.process.stdout.readline, "\n")) for _ in range(2))
        points = fixed_handicap(size, count)
        if points is None:
            assert verdict.startswith("?"), (size, count, verdict)
        else:
            assert {from_gtp(vertex, size) for vertex in verdict[1:].split()} == set(points)
    judge.close()


# --- a client that was not written here -------------------------------------------------------------------------------


def has_sabaki():
    return NODE and subprocess.run([NODE, "-e", "require('@sabaki/gtp')"], capture_output=True).returncode == 0


@pytest.mark.gnugo
@needs_gnugo
@pytest.mark.skipif(not has_sabaki(), reason="SABAKI'S CLIENT IS NOT INSTALLED (npm install @sabaki/gtp; NODE_PATH)")
def test_sabaki_keeps_a_whole_game_against_gnugo(run_dir):
    gnugo = [GNUGO, "--mode", "gtp", "--chinese-rules", "--positional-superko", "--level", "1"]
    programs = [command(run_dir, "--readouts", "32", "--resign-threshold", "-1"), gnugo]
    script = str(ROOT / "tests" / "sabaki_game.js")
    done = subprocess.run(
        [NODE, script, "9", "7.5", *map(json.dumps, programs)], capture_output=True, text=True, timeout=TIMEOUT
    )
    assert done.returncode == 0, done.stderr
    game = json.loads(done.stdout)
    print(game["names"], len(game["moves"]), game["moves"][-2:], game["scores"])
    assert game["names"] == ["AlphaGo Zero", "GNU Go"]
    assert len(game["moves"]) > 20
    assert game["black"][0] == game["black"][1]
    assert all(score[0] in "BW0" for score in game["scores"])
    assert sum(line.startswith("info move") for line in game["analysis"]) >= 3


@pytest.mark.gnugo
@needs_gnugo
def test_gnugo_reads_what_printsgf_writes(tmp_path):
    client = Client()
    client.ask("komi 6.5")
    client.ask("gogui-play_sequence b e5 w c3 b g7 w pass b d4")
    client.ask(f"printsgf {tmp_path}/game.sgf")
    judge = GnuGo(9, allow_suicide=False)
    judge.ask(f"loadsgf {tmp_path}/game.sgf")
    assert set(judge.ask("list_stones black")) == {"E5", "G7", "D4"}
    judge.close()
