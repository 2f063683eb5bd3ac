"""The whole loop through the real command line, killed at random moments; and its parts."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from alphago_zero import loop
from alphago_zero.arena import MatchResult, is_decided, wilson_interval
from alphago_zero.config import ConfigError, load_config
from alphago_zero.constants import RunPaths
from alphago_zero.inference import load_evaluator
from alphago_zero.ladder import ladder_log
from alphago_zero.loop import RunError, games_wanted, keep_config, lock_run
from alphago_zero.model import ModelInfo, list_models, load_model_info, promote, save_model_info
from alphago_zero.preprocessing import read_ledger, window
from alphago_zero.records import read_examples
from alphago_zero.runlog import append_line, elo_curve, read_games, read_lines, selfplay_log, warnings
from alphago_zero.sgf import read_sgf
from alphago_zero.workers import finished_games

ROOT = Path(__file__).parent.parent
SMALLER = ["--set", "selfplay.games=24", "--set", "selfplay.parallel_games=8", "--set", "evaluation.games=8"]


def run(script, *arguments, **options):
    command = [sys.executable, str(ROOT / script), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, **options)


def smoke_arguments(folder, generations):
    return ["--config", ROOT / "configs/smoke.yaml", "--run-dir", folder, "--generations", generations, *SMALLER]


def check_run(folder, generations):
    """What must hold after a run, however often it was killed."""
    paths, config = RunPaths(folder), load_config(ROOT / "configs/smoke.yaml")
    models = list_models(paths)
    assert len(models) == generations + 1
    planes = np.zeros((1, 5, 5, 17), np.uint8)
    for model in models:
        p, _ = load_evaluator(model, 1).evaluate(planes)
        assert p.sum() == pytest.approx(1, abs=1e-4)
    ledger = read_ledger(paths)
    games = [game for chunk in ledger for game in chunk.games]
    assert len(games) == len(set(games))
    held_out = [path.name for path in (paths.data / "holdout").glob("*/*.zz")]
    numbers = [Path(game).name for game in games] + held_out
    assert len(numbers) == len(set(numbers)), "a game was counted twice"
    assert len(numbers) >= 24 * generations
    for chunk in ledger:
        examples = read_examples(paths.chunks / chunk.file, 5)
        positions = sum(len(read_examples(paths.selfplay("") / game, 5)) for game in chunk.games)
        assert len(examples) == chunk.positions == positions
    assert window(ledger, config.training) == ledger
    for path in paths.data.glob("sgf/0*/*/*.sgf"):
        assert read_sgf(path).winner is not None
    decisions = read_lines(paths.logs / "generations.jsonl")
    assert [line["model"] for line in decisions] == [model.name for model in models[1:]]
    best = models[0].name
    for line in decisions:  # more than 55 % of all games, even where the match could be stopped early
        assert line["promoted"] == (line["match"]["wins_a"] > 0.55 * 8)
        assert line["match"]["b"] == best
        best = line["model"] if line["promoted"] else best
    assert paths.best.read_text().strip() == best
    assert not list(folder.rglob(".*.tmp"))
    assert list(paths.estimator.glob("events.out.tfevents.*"))


@pytest.fixture(scope="module")
def two_generations(tmp_path_factory):
    """A run of two generations."""
    folder = tmp_path_factory.mktemp("run")
    finished = run("train.py", *smoke_arguments(folder, 2))
    assert finished.returncode == 0, finished.stderr
    assert "Traceback" not in finished.stderr and "eprecat" not in finished.stderr
    return folder


def test_two_generations_from_nothing(two_generations):
    tmp_path = two_generations
    check_run(tmp_path, 2)
    status = json.loads(run("controller.py", "status", "--run-dir", tmp_path, "--json").stdout)
    assert status["generation"] == 2 and status["stage"] == "selfplay" and len(status["models"]) == 3
    assert status["games"] >= 48
    match = run("controller.py", "evaluate", "latest", "0", "--games", 4, "--run-dir", tmp_path, "--json")
    result = json.loads(match.stdout)
    assert result["wins_a"] + result["wins_b"] + result["draws"] == result["games"] == 4
    assert result["interval"][0] <= result["score"] <= result["interval"][1]


def test_a_packed_run_goes_on_elsewhere(two_generations, tmp_path):
    packed = run("scripts/pack_run.py", two_generations, tmp_path / "packed")
    assert packed.returncode == 0, packed.stderr
    model = list_models(RunPaths(tmp_path / "packed"))[-1].name
    for points in (1.0, 1.0, 0.0):
        append_line(ladder_log(RunPaths(tmp_path / "packed")), {"a": f"{model}@16", "b": "random", "points_a": points})
    drawn = run("scripts/draw_learning.py", "--runs", tmp_path, "--images", tmp_path / "images")
    assert f"| packed: {model}@16 |" in drawn.stdout, drawn.stderr
    assert {path.name for path in (tmp_path / "images").iterdir()} == {"elo.svg", "curves.svg", "opening-packed.svg"}

    finished = run("train.py", "--run-dir", tmp_path / "packed", "--generations", 3)
    assert finished.returncode == 0, finished.stderr
    again = run("scripts/pack_run.py", tmp_path / "packed", tmp_path / "again")
    opening = json.loads((tmp_path / "again/opening.json").read_text())
    assert [model["version"] for model in opening] == [0, 1, 2, 3], (
        "what left models thought was forgotten: " + again.stderr
    )
    paths = RunPaths(tmp_path / "packed")
    assert [model.name.split("-")[0] for model in list_models(paths)][-2:] == ["000002", "000003"]
    games = [Path(game).name for chunk in read_ledger(paths) for game in chunk.games]
    assert len(games) == len(set(games))
    before = {line["game"] for line in read_games(RunPaths(two_generations))}
    played = {int(path.stem) for path in paths.data.glob("sgf/0*/clean/*.sgf")}
    assert played and not played & before, "games that were held out elsewhere were played again"
    assert finished_games(paths) == played | before


def test_a_larger_network_learns_first_from_the_games_of_a_smaller_one(two_generations, tmp_path):
    shape = ["--set", "network.filters=24", "--games-from", two_generations]
    for generations in (1, 2):
        finished = run("train.py", *smoke_arguments(tmp_path, generations), *shape)
        assert finished.returncode == 0, finished.stderr
        check = read_lines(tmp_path / "logs/generations.jsonl")
        assert len(check) == generations
    given = sum(len(chunk.games) for chunk in read_ledger(RunPaths(two_generations)))
    first, second = check
    assert first["games"] == given and second["games"] >= given + 24
    assert first["evaluations"] == 0 and first["training"]["policy_loss"] > 0, "it played before it had learned"
    assert first["positions"] == sum(chunk.positions for chunk in read_ledger(RunPaths(two_generations)))
    assert load_model_info(list_models(RunPaths(tmp_path))[-1]).network.filters == 24


def lines_told(folder):
    """Of all logs: a line a game and a line or more a stage."""
    return sum(len(path.read_bytes().splitlines()) for path in folder.glob("logs/*"))


def kill_somewhere(folder, luck):
    """Start the run, and kill it some lines further on, and then at any moment, however slow the computer is."""
    command = [sys.executable, ROOT / "train.py", *map(str, smoke_arguments(folder, 1000))]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    began, enough = time.monotonic(), lines_told(folder) + luck.randrange(30)
    while lines_told(folder) < enough and process.poll() is None:
        time.sleep(0.02)
    time.sleep(luck.uniform(0, 1 + (time.monotonic() - began) / 4))
    assert process.poll() is None, f"it ended by itself: {process.stderr.read()}"
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


@pytest.mark.parametrize("kills", [4, pytest.param(100, marks=pytest.mark.slow)])
def test_killed_at_any_moment_a_run_ends_the_same(tmp_path, kills):
    luck = random.Random(0)
    for _ in range(kills):
        kill_somewhere(tmp_path, luck)
    generations = max(2, len(list_models(RunPaths(tmp_path))))
    finished = run("train.py", *smoke_arguments(tmp_path, generations))
    assert finished.returncode == 0, finished.stderr
    check_run(tmp_path, generations)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own, and a function that sets its size."""
    folder = tmp_path / "disk"
    folder.mkdir()

    def mount(size, *options):
        command = ["mount", "-t", "tmpfs", "-o", ",".join([f"size={size}", *options]), "tmpfs", folder]
        return subprocess.run(command, capture_output=True).returncode == 0

    if not mount("700k"):
        pytest.skip("a small file system can be mounted only by root, on Linux")
    yield folder, lambda size: mount(size, "remount")
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_stops_the_run_with_a_clear_line_and_it_goes_on_when_there_is_room(small_disk):
    folder, resize = small_disk
    for size in ("700k", "2500k", "5m"):  # full in self-play, in training, and later
        assert resize(size)
        stopped = run("train.py", *smoke_arguments(folder, 2))
        assert stopped.returncode == 1
        assert "the disk is full" in stopped.stderr.splitlines()[-1] and "Traceback" not in stopped.stderr
    assert resize("500m")
    finished = run("train.py", *smoke_arguments(folder, 2))
    assert finished.returncode == 0, finished.stderr
    check_run(folder, 2)


@pytest.mark.parametrize(
    "send, number, seconds",
    [
        (os.killpg, signal.SIGINT, 0.3),  # all of them, as a terminal does; workers are being started
        (os.killpg, signal.SIGINT, 8),  # or at work
        (os.kill, signal.SIGTERM, 8),  # one of them, as `kill` does
    ],
)
def test_control_c_and_kill_end_in_seconds_and_say_how_to_go_on(tmp_path, send, number, seconds):
    command = [sys.executable, ROOT / "train.py", *map(str, smoke_arguments(tmp_path, 50))]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while not (tmp_path / "logs/train.log").exists():
        time.sleep(0.05)
    time.sleep(seconds)
    send(process.pid, number)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "goes on from here" in errors and "Traceback" not in errors


@pytest.mark.parametrize(
    "script, arguments, culprit",
    [
        ("train.py", ["--config", "no-such.yaml"], "no-such.yaml"),
        ("train.py", ["--set", "search.redouts=3"], "readouts"),
        ("train.py", ["--set", "search.readouts=many"], "search.readouts"),
        ("train.py", ["--run-dir", "/proc/no/such"], "/proc/no/such"),
        ("train.py", ["--generations", "-1"], "--generations"),
        ("train.py", ["--hours", "nan"], "--hours"),
        ("train.py", ["--nonsense"], "--nonsense"),
        ("controller.py", [], "selfplay"),
        ("controller.py", ["evaluate", "models/A", "models/B"], "models/A"),
        ("controller.py", ["selfplay"], "latest"),
        ("controller.py", ["status", "--run-dir", "no-such-run"], "no-such-run"),
        ("controller.py", ["no-such-command"], "no-such-command"),
    ],
)
def test_a_mistake_gets_one_line_and_exit_code_2(tmp_path, script, arguments, culprit):
    finished = run(script, *arguments, cwd=tmp_path)
    assert finished.returncode == 2
    (line,) = finished.stderr.splitlines()
    assert culprit in line
    assert not finished.stdout


@pytest.mark.skipif(not shutil.which("setpriv") or os.geteuid() != 0, reason="takes from root what opens any file")
@pytest.mark.parametrize("command", [["train.py"], ["controller.py", "status"], ["controller.py", "selfplay"]])
def test_an_unreadable_run_directory_gets_one_line_and_exit_code_2(tmp_path, command):
    folder = tmp_path / "secret"
    folder.mkdir(mode=0)
    as_others = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", sys.executable]
    script, *arguments = command
    command = [*as_others, ROOT / script, *arguments, "--run-dir", folder]
    finished = subprocess.run(command, capture_output=True, text=True)
    assert finished.returncode == 2
    (line,) = finished.stderr.splitlines()
    assert str(folder) in line and "Permission denied" in line


def test_a_run_directory_is_used_by_one_loop_at_a_time(tmp_path):
    paths = RunPaths(tmp_path)
    with lock_run(paths):
        with pytest.raises(RunError, match=str(os.getpid())):
            with lock_run(paths):
                pass
    with lock_run(paths):  # free again
        pass


def test_a_run_keeps_its_board_and_network(tmp_path):
    paths = RunPaths(tmp_path)
    keep_config(paths, load_config(None, ["search.readouts=10"]))
    keep_config(paths, load_config(None, ["search.readouts=20"]))
    with pytest.raises(ConfigError, match=r"network\.filters"):
        keep_config(paths, load_config(None, ["network.filters=3"]))


def test_a_damaged_config_of_a_run_is_named(tmp_path):
    (tmp_path / "config.json").write_text('{"game": {"boa')
    with pytest.raises(RunError, match="config.json is damaged"):
        keep_config(RunPaths(tmp_path), load_config())


def loop_without_workers(paths, config):
    return loop.Loop(paths, config, SimpleNamespace(pool=None, cpu_seconds=0.0, play_games=None))


def test_killed_before_its_first_promotion_a_run_makes_up_for_it(tmp_path):
    paths, config = RunPaths(tmp_path), load_config(ROOT / "configs/smoke.yaml")
    for _ in range(2):
        loop_without_workers(paths, config).initialize()
        (model,) = list_models(paths)
        assert paths.best.read_text().strip() == model.name
        paths.best.unlink()


def test_killed_before_the_int8_version_of_its_newest_model_a_run_makes_up_for_it(tmp_path, monkeypatch):
    paths, config, done = RunPaths(tmp_path), load_config(), []
    for version, name in enumerate(("000000-old-cod", "000001-new-cod")):
        info = ModelInfo(name, version, config.game, config.network, graph_digest="")
        save_model_info(paths.models / name, info)
    promote(paths, "000000-old-cod")
    monkeypatch.setattr(loop, "ensure_quantized", lambda paths, config, model: done.append(model.name))
    monkeypatch.setattr(loop, "play_models", lambda *_, **__: done.append("match") or MatchResult("a", "b", wins_a=56))
    assert loop_without_workers(paths, config)._gate(paths.models / "000001-new-cod")["promoted"]
    assert done == ["000001-new-cod", "match"]


def test_what_a_stopped_generation_cost_is_not_forgotten(tmp_path):
    paths, config = RunPaths(tmp_path), load_config()

    def starts_at(cpu_seconds):
        engine = SimpleNamespace(pool=None, cpu_seconds=cpu_seconds - time.process_time(), play_games=None)
        return loop.Loop(paths, config, engine), engine

    stopped, engine = starts_at(0)
    with pytest.raises(KeyboardInterrupt), stopped._timed("selfplay_s"):
        engine.cpu_seconds += 500
        raise KeyboardInterrupt
    for _ in range(2):  # the second start is as the first: a kill changes nothing
        goes_on, engine = starts_at(0)
        with goes_on._timed("selfplay_s"):
            engine.cpu_seconds += 100
    again, _ = starts_at(0)
    assert 700 <= again._cpu_seconds() < 760
    append_line(paths.logs / "generations.jsonl", {"model": "000001-new-cod"})
    after_a_verdict, _ = starts_at(0)
    assert after_a_verdict._cpu_seconds() < 60, "it stands in the generation's line"


def test_games_are_counted_from_the_verdict_on_the_newest_model(tmp_path):
    paths, newest = RunPaths(tmp_path), SimpleNamespace(name="000002-new-cod", version=2)
    config = load_config(None, ["selfplay.games=10"])
    for model, games in (("000001-old-cod", 400), ("000002-new-cod", 807)):
        append_line(paths.logs / "generations.jsonl", {"model": model, "games": games})
    assert games_wanted(paths, config, newest, 812) == 817, "whatever selfplay.games was before"
    assert games_wanted(paths, config, newest, 700) == 710, "after a move, without the games that were left behind"


def test_a_torn_last_line_is_left_out(tmp_path):
    path = tmp_path / "log.jsonl"
    append_line(path, {"model": "a"})
    with open(path, "a") as file:
        file.write('5\n{"model": "b", "wi')
    append_line(path, {"model": "c"})
    assert [line["model"] for line in read_lines(path)] == ["a", "c"]


def test_of_a_long_log_the_newest_part_is_read(tmp_path):
    paths = RunPaths(tmp_path)
    for number in range(100):
        append_line(selfplay_log(paths), {"game": number, "may_resign": True})
    append_line(selfplay_log(paths), {"a": "line that somebody else wrote"})
    assert [line["game"] for line in read_games(paths)] == list(range(100))
    assert [line["game"] for line in read_lines(selfplay_log(paths), "game", newest_bytes=150)] == [97, 98, 99]


def test_the_gate_wants_more_than_55_percent():
    assert not is_decided(MatchResult("a", "b", wins_a=55, wins_b=44), games=100, threshold=0.55)
    assert is_decided(MatchResult("a", "b", wins_a=56, wins_b=0), games=100, threshold=0.55)
    assert is_decided(MatchResult("a", "b", wins_a=0, wins_b=45), games=100, threshold=0.55)


def test_interval_of_an_even_match():
    low, high = wilson_interval(0.5, 100)
    assert low == pytest.approx(0.404, abs=0.001) and high == pytest.approx(0.596, abs=0.001)


def test_elo_of_three_wins_in_four():
    match = {"wins_a": 75, "wins_b": 25, "draws": 0}
    decisions = [{"model": "m1", "promoted": True, "match": match}, {"model": "m2", "promoted": False, "match": match}]
    assert [point["elo"] for point in elo_curve(decisions)] == [189, 189]


SANE = {"pass_rate": 0.05, "black_wins": 0.5, "length": 70, "pi_entropy": 2.0}


@pytest.mark.parametrize(
    "figure, value, word",
    [("pass_rate", 0.3, "passes"), ("black_wins", 0.97, "Black"), ("length", 3, "moves"), ("pi_entropy", 0.1, "pi")],
)
def test_a_collapse_is_noticed(figure, value, word):
    assert warnings(SANE) == []
    assert warnings({**dict.fromkeys(SANE, 0.0), "model": "000001-a-b"}) == []  # it learned from another run's games
    (warning,) = warnings({**SANE, figure: value})
    assert word in warning and "try" in warning
