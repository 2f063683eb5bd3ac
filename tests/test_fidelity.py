"""Facts of the paper that belong to no single module, and docs/fidelity.md, which may claim nothing without a test."""

import ast
import importlib
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from fake_networks import EquivariantNetwork, FlatNetwork

from alphago_zero.alphagozero_agent import AlphaGoZeroAgent, play_match
from alphago_zero.arena import play_models
from alphago_zero.config import load_config
from alphago_zero.constants import RunPaths
from alphago_zero.go import BLACK, WHITE
from alphago_zero.selfplay import SelfplayWorker
from alphago_zero.sgf import read_sgf

ROOT = Path(__file__).parent.parent
SMALL = ["game.board_size=5", "search.readouts=12", "selfplay.parallel_games=16"]


def selfplay(overrides, count, network, seed=0):
    config = load_config(None, [*SMALL, *overrides])
    worker = SelfplayWorker(config, np.random.default_rng(seed))
    network.model = SimpleNamespace(name="000000-some-cod")
    worker.take(network, config.selfplay.resign_threshold)
    worker.assign(range(count))
    games = []
    while not worker.is_idle:
        games += worker.step()
    return games


def test_a_tenth_of_the_games_never_resigns_and_a_twentieth_is_held_out():
    games = selfplay(["game.board_size=3", "game.max_moves=1", "search.readouts=2"], 2000, FlatNetwork())
    never = np.mean([not game.statistics["may_resign"] for game in games])
    held_out = np.mean([game.holdout for game in games])
    assert never == pytest.approx(0.10, abs=0.02)  # three standard deviations
    assert held_out == pytest.approx(0.05, abs=0.015)


def test_a_game_that_never_resigns_is_played_to_its_end():
    class Hopeless(FlatNetwork):
        def evaluate(self, planes):
            return super().evaluate(planes)[0], np.full(len(planes), -0.99, np.float32) * (-1) ** planes[:, 0, 0, 16]

    games = selfplay([], 40, Hopeless())
    assert {game.statistics["may_resign"] for game in games} == {True, False}
    for game in games:
        assert game.statistics["result"].endswith("R") == game.statistics["may_resign"]


def test_moves_are_drawn_from_pi_at_first_and_then_the_most_visited_is_played(tmp_path):
    from alphago_zero.preprocessing import read_game

    games = selfplay(["selfplay.temperature_moves=6", "selfplay.resign_disabled=1"], 30, EquivariantNetwork())
    most_visited = []  # for the drawn moves
    for game in games:
        (tmp_path / "game").write_bytes(game.record)
        _, pi, _, _ = read_game(tmp_path / "game", 5)
        moves = [move for _, move in read_sgf(game.sgf_clean.encode()).moves]
        for t, move in enumerate(moves):
            assert pi[t, move] > 0
            if t < 6:
                most_visited.append(pi[t, move] == pi[t].max())
            else:
                assert pi[t, move] == pi[t].max()
    assert 0.2 < np.mean(most_visited) < 0.9


def test_two_moves_of_equal_weight_are_drawn_equally_often():
    agent = AlphaGoZeroAgent(FlatNetwork(), load_config(None, SMALL), np.random.default_rng(0), readouts=27)
    agent.search_tree()
    N = agent.root.child_N
    drawn = np.bincount([agent.select_move(temperature=1.0) for _ in range(4000)], minlength=26)
    expected = 4000 * N / N.sum()
    assert (np.abs(drawn - expected) < 5 * np.sqrt(expected + 1)).all()


def test_a_match_has_no_noise_and_no_temperature():
    """The network does not mind being turned, so that chance could only come from exploration."""
    config = load_config(None, [*SMALL, "selfplay.resign_threshold=-1"])
    games = set()
    for seed in range(3):
        agents = [AlphaGoZeroAgent(EquivariantNetwork(), config, np.random.default_rng(seed)) for _ in range(2)]
        play_match(*agents)
        games.add(agents[0].state.moves)
    assert len(games) == 1


def test_the_evaluator_alternates_colours_and_does_not_explore(tmp_path):
    """The same for the matches of models: with heads of zero, turning the board changes nothing."""
    from alphago_zero.network import initialize_random_model

    settings = [*SMALL, "network.filters=4", "network.blocks=1", "network.zero_heads=true", "selfplay.workers=1"]
    config = load_config(None, [*settings, "evaluation.opening_moves=0", "game.max_moves=20"])
    a = initialize_random_model(RunPaths(tmp_path / "a"), config)
    b = initialize_random_model(RunPaths(tmp_path / "b"), load_config(None, [*settings, "seed=1"]))
    games = []
    for seed in (1, 2):
        result = play_models(a, b, config, games=4, readouts=12, seed=seed, sgf_folder=tmp_path / f"sgf{seed}")
        assert result.games == 4
        games.append([read_sgf(path) for path in sorted((tmp_path / f"sgf{seed}").glob("*.sgf"))])
    assert [game.black_name for game in games[0]] == [a.name, b.name, a.name, b.name]
    assert [game.white_name for game in games[0]] == [b.name, a.name, b.name, a.name]
    assert [game.moves for game in games[0]] == [game.moves for game in games[1]]


@pytest.mark.parametrize("threshold, resigns", [(-0.4, True), (-0.6, False), (-0.8, False)])
def test_to_resign_both_the_root_and_its_best_child_must_be_below_the_threshold(threshold, resigns):
    class Network(FlatNetwork):
        """Black to move: -0.99; White to move: +0.5, so that every child is worth -0.5 to Black."""

        def evaluate(self, planes):
            v = np.where(planes[:, 0, 0, 16] == 1, -0.99, 0.5)
            return super().evaluate(planes)[0], v.astype(np.float32)

    config = load_config(None, [*SMALL, f"selfplay.resign_threshold={threshold}", "search.first_visit=zero"])
    agent = AlphaGoZeroAgent(Network(), config, np.random.default_rng(0), readouts=3, leaves=1)
    agent.search_tree()
    assert agent.value == pytest.approx((-0.99 - 0.5 - 0.5) / 3, abs=1e-4)
    assert agent.should_resign() is resigns


def test_a_game_says_its_own_komi_and_its_result():
    for komi in (7.5, 0.5, 6.0):
        overrides = [f"game.komi={komi}", "selfplay.resign_disabled=1", "game.max_moves=8"]
        for game in selfplay(overrides, 8, FlatNetwork()):
            record = read_sgf(game.sgf_clean.encode())
            *_, final = record.states()
            assert record.rules.komi == komi
            assert record.winner == final.winner() and record.winner in (BLACK, WHITE, 0)


# --- the document ---------------------------------------------------------------------------------------------------

DOCUMENT = (ROOT / "docs" / "fidelity.md").read_text(encoding="utf-8")
ROWS = [line for line in DOCUMENT.splitlines() if line.startswith("|") and not re.match(r"\|[\s|:-]+$", line)]
TESTS = sorted(set(re.findall(r"`(test_\w+)::(test_\w+)`", DOCUMENT)))
PLACES = sorted(set(re.findall(r"`((?!test_)[a-z_]+)\.((?:_?[A-Za-z]\w*)(?:\.\w+)?)`", DOCUMENT)))
FILES = ("yaml", "py", "md", "txt", "jsonl", "json")


def test_every_test_that_the_document_names_exists():
    assert len(TESTS) > 60
    for module, name in TESTS:
        tree = ast.parse((ROOT / "tests" / f"{module}.py").read_text(encoding="utf-8"))
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, f"{module}::{name}"


def test_every_place_that_the_document_names_exists():
    assert len(PLACES) > 40
    config = load_config()
    for module, path in PLACES:
        if path in FILES:
            assert list(ROOT.glob(f"*/{module}.{path}")) or list(ROOT.glob(f"{module}.{path}")), f"{module}.{path}"
            continue
        place = getattr(config, module, None)  # a part of the configuration, or else a module
        if not hasattr(place, path):
            place = importlib.import_module(f"alphago_zero.{module}")
        for name in path.split("."):
            place = getattr(place, name)


def test_every_row_about_a_fact_names_a_place_and_a_test():
    facts = [row for row in ROWS if not row.startswith(("| fact |", "| fault |"))]
    assert len(facts) > 70
    for row in facts:
        _, _, where, tests, _, _ = re.split(r"(?<!\\)\|", row)
        assert "`" in where and "::" in tests, row
