"""Matches: openings, batches, verdicts, and GNU Go as a witness."""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from alphago_zero.arena import MatchResult, play_match, play_models
from alphago_zero.config import load_config
from alphago_zero.constants import RunPaths
from alphago_zero.go import Rules
from alphago_zero.gtp_client import find_program
from alphago_zero.inference import load_evaluator
from alphago_zero.ladder import GNU_GO
from alphago_zero.match import _score, draw_openings
from alphago_zero.players import PlayerError, PlayerSpec, common_rules, parse_player
from alphago_zero.sgf import read_sgf

ROOT = Path(__file__).parent.parent
SMALL = ["game.board_size=5", "network.filters=8", "network.blocks=1", "evaluation.opening_moves=4"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run with one model of random weights, and its configuration."""
    from alphago_zero.network import initialize_random_model

    paths, config = RunPaths(tmp_path_factory.mktemp("run")), load_config(None, SMALL)
    initialize_random_model(paths, config)
    return paths, config


def controller(*arguments, **options):
    command = [sys.executable, str(ROOT / "controller.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, **options)


def test_openings_differ_and_leave_black_to_move(run):
    paths, config = run
    network = load_evaluator(parse_player("best", paths, 1).model, 8)
    for evaluators in ([network, network], [network, None], [None, None]):
        openings = draw_openings(config, evaluators, 50, seed=1)
        assert len({state.moves for state in openings}) == 50
        assert all(len(state.moves) == 4 and 25 not in state.moves for state in openings)


def test_a_policy_that_knows_one_opening_is_made_to_find_others():
    class Stubborn:
        batch_size = 16

        def evaluate(self, planes):
            p = np.full((len(planes), 26), 1e-6, np.float32)
            stones = planes[..., :2].sum(axis=(1, 2, 3))
            p[np.arange(len(planes)), stones] = 1
            return p, np.zeros(len(planes), np.float32)

    openings = draw_openings(load_config(None, SMALL), [Stubborn()], 20, seed=0)
    assert openings[0].moves == (0, 1, 2, 3)
    assert len({state.moves for state in openings}) >= 10


def test_two_models_play_every_opening_with_both_colours(run, tmp_path):
    paths, config = run
    model = parse_player("best", paths, 1).model
    result = play_models(model, model, config, games=10, readouts=8, sgf_folder=tmp_path)
    assert result.games == 10 and result.a == model.name
    records = [read_sgf(tmp_path / f"{number:04d}.sgf") for number in range(10)]
    openings = [record.moves[:4] for record in records]
    assert openings[::2] == openings[1::2] and len(set(openings)) == 5
    assert result.distinct >= 5


def test_a_match_may_end_when_it_is_decided(run, tmp_path):
    paths, config = run
    uct, random = (parse_player(word, paths, 1) for word in ("uct:200", "random"))
    result = play_match(uct, random, config, games=40, threshold=0.5, sgf_folder=tmp_path)
    assert result.stopped_early and 21 <= result.games < 40
    assert len(list(tmp_path.glob("*.sgf"))) == result.games
    assert "stopped early" in result.details()


def test_a_match_that_nobody_listens_to_any_more_ends(run):
    paths, _ = run
    config = load_config(None, [*SMALL, "evaluation.parallel_games=500", "selfplay.workers=2"])
    random = parse_player("random", paths, 1)
    heard = []

    def listen_slowly(result, game):
        heard.append(game)
        time.sleep(0.02)  # more games end than a pipe can hold

    result = play_match(random, random, config, games=1000, threshold=0.05, on_game=listen_slowly)
    assert result.stopped_early and len(heard) == result.games


def test_the_model_brings_the_rules(run):
    paths, config = run
    best, random = (parse_player(word, paths, 1) for word in ("best", "random"))
    larger = load_config(None, ["game.board_size=9"])
    assert common_rules([random, best], larger) == Rules(board_size=5)
    assert common_rules([random, random], larger) == Rules(board_size=9)


def test_models_of_two_board_sizes_do_not_play(run, tmp_path):
    from alphago_zero.network import initialize_random_model

    paths, config = run
    other = initialize_random_model(RunPaths(tmp_path), load_config(None, [*SMALL, "game.board_size=7"]))
    specs = [parse_player("best", paths, 1), PlayerSpec("model", "other", other, 1)]
    with pytest.raises(PlayerError, match="5x5 cannot play other on 7x7"):
        common_rules(specs, config)


def test_evaluate_prints_json_and_keeps_the_games(run):
    paths, _ = run
    arguments = ["evaluate", "best@4", "raw:0", "--games", 4, "--seed", 3, "--run-dir", paths.root, "--json", "--set"]
    finished = controller(*arguments, "game.board_size=5")
    assert finished.returncode == 0, finished.stderr
    result = json.loads(finished.stdout)
    assert result["wins_a"] + result["wins_b"] + result["draws"] == result["games"] == 4
    assert result["a"].endswith("@4") and result["b"].startswith("raw:")
    assert 0 <= result["interval"][0] <= result["score"] <= result["interval"][1] <= 1
    (folder,) = (paths.data / "sgf" / "evaluate").iterdir()
    assert len(list(folder.glob("*.sgf"))) == 4
    kept = json.loads((folder / "result.json").read_text())
    assert kept.items() >= result.items() and len(kept["results"]) == 4


@pytest.mark.parametrize(
    "arguments, culprit",
    [
        (["evaluate", "uct:x", "random"], "uct:x"),
        (["evaluate", "random", "gtp:no-such-program"], "no-such-program"),
        (["evaluate", "random", "random", "--games", "0"], "at least one game"),
        (["evaluate", "random", "gtp:true", "--games", "2"], "exit code 0"),
        (["ladder", "--anchor", "random"], "two players"),
        (["analyze", "no-such.sgf"], "no-such.sgf"),
    ],
)
def test_a_mistake_gets_one_line_and_exit_code_2(tmp_path, arguments, culprit):
    finished = controller(*arguments, cwd=tmp_path)
    assert finished.returncode == 2, finished.stderr
    assert culprit in finished.stderr.splitlines()[-1]
    assert "Traceback" not in finished.stderr and not finished.stdout


@pytest.mark.parametrize("text, score", [("B+3.5", 3.5), ("W+12.0", -12.0), ("0", 0.0), ("?", None), ("", None)])
def test_scores_of_programs_are_understood(text, score):
    assert _score(text) == score


def test_forfeits_and_disputes_are_told():
    told = MatchResult("a", "b", wins_a=3, distinct=3, forfeits_b=2, disputed=1).details()
    assert told == "3 of 3 games differ; b lost 2 by a fault; the program's count agreed in 0, differed in 1"


@pytest.mark.gnugo
@pytest.mark.skipif(find_program("gnugo") is None, reason="GNU GO IS NOT INSTALLED (apt-get install gnugo)")
def test_gnugo_agrees_with_the_results_of_a_match(tmp_path):
    paths, config = RunPaths(tmp_path), load_config(None, ["evaluation.opening_moves=4"])
    a, b = (parse_player(word, paths, 1) for word in (GNU_GO.format(1), "uct:50"))
    games = []
    result = play_match(a, b, config, games=4, sgf_folder=tmp_path, on_game=lambda _, game: games.append(game))
    assert result.games == result.distinct == 4
    assert result.forfeits_a == result.disputed == 0
    counted = [game for game in games if not game.reason]
    assert result.confirmed == len(counted) > 0
    for game in counted:
        *_, final = read_sgf(tmp_path / f"{game.number:04d}.sgf").states()
        assert final.is_game_over and game.winner == final.winner()
