"""The ladder: games chosen well, none lost, a curve for people."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from alphago_zero.config import load_config
from alphago_zero.constants import RunPaths
from alphago_zero.ladder import choose_players, ladder_log, play_ladder, standings, table, write_results
from alphago_zero.players import PlayerError
from alphago_zero.runlog import append_line, generations_log, read_lines
from alphago_zero.sgf import read_sgf

ROOT = Path(__file__).parent.parent
SMALL = ["game.board_size=5", "game.komi=0.5", "network.filters=4", "network.blocks=1", "selfplay.workers=2"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    from alphago_zero.network import initialize_random_model

    paths, config = RunPaths(tmp_path_factory.mktemp("run")), load_config(None, SMALL)
    initialize_random_model(paths, config)
    return paths, config


def test_random_play_comes_last_and_more_playouts_first(run):
    paths, config = run
    specs = choose_players(paths, "0", ["random", "uct:60", "uct:800"], readouts=8)
    assert [spec.label for spec in specs][:3] == ["random", "uct:60", "uct:800"] and len(specs) == 4
    totals = []
    play_ladder(specs, paths, config, games=72, on_game=totals.append)
    lines = read_lines(ladder_log(paths))
    assert len(lines) == 72 == totals[-1] and totals == sorted(totals)
    places = standings(paths, [spec.label for spec in specs])
    elo = {place.player: place.elo for place in places}
    assert elo["random"] == 0 < elo["uct:60"] < elo["uct:800"]
    assert sum(place.games for place in places) == 144
    assert places[0].player == "uct:800" and "uct:800" in table(places).splitlines()[1]
    sgf = list((paths.data / "sgf" / "ladder").glob("*/*.sgf"))
    assert len(sgf) == 72 and all(read_sgf(path).winner is not None for path in sgf[:5])


def test_the_curve_and_the_table_have_all_players(run):
    paths, config = run
    append_line(generations_log(paths), {"model": "another", "selfplay_s": 1800, "train_s": 1800})
    labels = ["random", "uct:60"]
    for line in ({"a": "uct:60", "b": "random", "points_a": 1.0}, {"a": "random", "b": "uct:99", "points_a": 0.5}):
        append_line(ladder_log(paths), line)
    csv_file, png, svg = write_results(paths, standings(paths, labels))
    rows = {row["player"]: row for row in csv.DictReader(csv_file.read_text().splitlines())}
    assert {"random", "uct:60", "uct:99"} <= set(rows)
    model = next(row for name, row in rows.items() if name.startswith("000000-"))
    assert model["generation"] == "0" and float(model["hours"]) == 0
    assert png.read_bytes().startswith(b"\x89PNG") and "<svg" in svg.read_text()


def test_a_killed_ladder_loses_no_game(tmp_path):
    players = ["--anchor", "random", "--anchor", "uct:300", "--anchor", "uct:60"]
    rules = ["--set", "game.board_size=7", "--set", "game.komi=0.5"]
    arguments = ["ladder", *players, *rules, "--games", "40", "--run-dir", str(tmp_path), "--json"]
    command = [sys.executable, str(ROOT / "controller.py"), *arguments]
    log = ladder_log(RunPaths(tmp_path))
    before = []
    for _ in range(2):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while len(read_lines(log)) < len(before) + 2 and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        kept = read_lines(log)
        assert kept[: len(before)] == before and len(kept) >= len(before) + 2
        before = kept
    assert len(before) < 40, "it was over before it was killed: the test shows nothing"
    finished = subprocess.run(command, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    lines = read_lines(log)
    assert lines[: len(before)] == before and len(lines) == 40
    places = json.loads(finished.stdout)
    assert places[-1]["player"] == "random" and sum(place["games"] for place in places) == 80


def test_models_are_chosen_by_steps_or_by_name(tmp_path):
    paths = RunPaths(tmp_path)
    paths.models.mkdir()
    names = [f"{version:06d}-bold-cod" for version in range(30)]
    for name in names:
        (paths.models / f"{name}.json").write_text("{}")

    def chosen(models):
        return [int(spec.label[:6]) for spec in choose_players(paths, models, ["random"], 10)[1:]]

    assert chosen("every:10") == [0, 10, 20, 29]
    assert chosen("3,7") == [3, 7]
    assert len(chosen(None)) == 12 and chosen(None)[0] == 0 and chosen(None)[-1] == 29
    with pytest.raises(PlayerError, match="every:x"):
        chosen("every:x")
    with pytest.raises(PlayerError, match="human"):
        choose_players(paths, "3", ["human"], 10)
