"""Analysis: what is said about a game, in a batch as alone, for people and for other programs."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from fake_networks import EquivariantNetwork, ScoreNetwork
from sgfmill import sgf as sgfmill

from alphago_zero.analysis import analyze_files, analyze_game, analyze_games, annotate
from alphago_zero.config import load_config
from alphago_zero.coordinates import from_gtp
from alphago_zero.go import BLACK, WHITE, Rules
from alphago_zero.sgf import GameRecord, Note, SgfError, read_sgf, write_sgf

ROOT = Path(__file__).parent.parent
CONFIG = load_config(None, ["game.board_size=5", "search.c_puct=1.0"])


class Network:
    """A fake network that has a model's name, board and batch."""

    def __init__(self, network, batch_size, size=5):
        self._network, self.batch_size, self.calls = network, batch_size, []
        self.model = SimpleNamespace(name="000000-fake-cod", rules=Rules(board_size=size))

    def evaluate(self, planes):
        assert len(planes) <= self.batch_size
        self.calls.append(len(planes))
        return self._network.evaluate(planes)


def record(vertices, komi=0.5, **more):
    moves = tuple((BLACK if k % 2 == 0 else WHITE, from_gtp(v, 5)) for k, v in enumerate(vertices.split()))
    return GameRecord(rules=Rules(board_size=5, komi=komi), moves=moves, **more)


GAME = record("C3 C2 D2 B3 B2 C4 pass D3")


def test_in_a_batch_as_alone():
    """The answers of this network turn with the board, so that the symmetries drawn make no difference."""
    games = [GAME, record("C3 pass B2"), record("B2 C3 D4 B4 pass pass", komi=2.5)]
    together = analyze_games(games, Network(EquivariantNetwork(), 64), CONFIG, readouts=40)
    for game, reports in zip(games, together):
        alone = analyze_game(game, Network(EquivariantNetwork(), 1), CONFIG, readouts=40)
        assert len(reports) == len(game.moves) + 1
        for one, other in zip(reports, alone):
            assert one.black_win_rate == pytest.approx(other.black_win_rate, abs=1e-5)
            assert [(c.move, c.visits, c.line) for c in one.candidates] == [
                (c.move, c.visits, c.line) for c in other.candidates
            ]


def test_the_positions_of_a_game_share_a_batch():
    network, progress = Network(EquivariantNetwork(), 64), []
    analyze_game(GAME, network, CONFIG, readouts=20, on_progress=lambda *done: progress.append(done))
    assert max(network.calls) == len(GAME.moves) + 1
    assert len(network.calls) < 40
    assert progress[-1] == (20 * 9, 20 * 9)


def test_lines_are_legal_and_begin_with_the_candidate():
    for state, report in zip(GAME.states(), analyze_game(GAME, Network(EquivariantNetwork(), 4), CONFIG, readouts=60)):
        assert report.candidates
        for candidate in report.candidates:
            assert candidate.line[0] == candidate.move and 0 <= candidate.win_rate <= 1
            position = state
            for move in candidate.line:
                position = position.play_move(move)
        visits = [candidate.visits for candidate in report.candidates]
        assert visits == sorted(visits, reverse=True)


def test_a_game_that_is_over_needs_no_network():
    finished = record("C3 pass pass")
    reports = analyze_game(finished, Network(EquivariantNetwork(), 8), CONFIG, readouts=10)
    assert reports[-1].black_win_rate == 1.0 and reports[-1].candidates == () and reports[-1].loss is None


def test_a_blunder_costs_and_the_best_move_does_not():
    board = """
        X X X O O
        X X X O O
        X X . O O
        X X O O O
        X X O O O
    """
    cells = "".join(board.split())  # whoever plays C3 takes all stones of the other
    black, white = (tuple(k for k, cell in enumerate(cells) if cell == stone) for stone in "XO")
    takes, passes = ((BLACK, from_gtp("C3", 5)),), ((BLACK, from_gtp("pass", 5)),)
    blunder, best = (
        GameRecord(rules=Rules(5, 0.5), black_setup=black, white_setup=white, moves=m) for m in (passes, takes)
    )
    network = Network(ScoreNetwork(blunder.rules), 8)
    before, after = analyze_game(blunder, network, CONFIG, readouts=200)
    assert before.candidates[0].move == takes[0][1]
    assert before.loss == pytest.approx(before.candidates[0].win_rate - after.black_win_rate) and before.loss > 0.3
    assert annotate(blunder, [before, after]).notes[1].mark == "BM2"
    assert analyze_game(best, network, CONFIG, readouts=200)[0].loss == 0


def test_colours_that_do_not_alternate_are_asked_for_the_player_who_moved():
    game = GameRecord(rules=Rules(board_size=5), moves=((BLACK, 12), (BLACK, 6), (WHITE, 8)))
    reports = analyze_game(game, Network(ScoreNetwork(game.rules), 8), CONFIG, readouts=30)
    assert len(reports) == 4


def test_another_board_is_refused():
    with pytest.raises(SgfError, match="5x5, and 000000-fake-cod plays on 9x9"):
        analyze_game(GAME, Network(EquivariantNetwork(), 8, size=9), CONFIG, readouts=10)


def test_an_annotated_game_is_read_by_sgfmill():
    notes = (Note(),) * 3 + (Note("Nice."),) + (Note(),) * 5
    game = record("C3 C2 D2 B3 B2 C4 pass D3", notes=notes, result="B+R")
    reports = analyze_game(game, Network(EquivariantNetwork(), 16), CONFIG, readouts=50)
    annotated = annotate(game, reports)
    parsed = sgfmill.Sgf_game.from_bytes(write_sgf(annotated).encode())
    line = parsed.get_main_sequence()
    assert [node.get_move() for node in line[1:3]] == [("b", (2, 2)), ("w", (1, 2))]
    assert line[3].get("C").startswith("Nice.\nBlack wins")
    marked = 0
    for number, (node, report) in enumerate(zip(line, reports)):
        assert float(node.get("SBKV")) == pytest.approx(100 * report.black_win_rate, abs=0.01)
        if number == 0:
            continue
        before = reports[number - 1]
        assert node.has_property("BM") == (before.loss >= 0.10)
        assert node.has_property("DO") == (0.05 <= before.loss < 0.10)
        marked += before.loss >= 0.05
        siblings = list(line[number - 1])
        if before.candidates[0].move != game.moves[number - 1][1]:
            assert len(siblings) == 2
            variation = [siblings[1]]
            while len(variation[-1]):
                variation.append(variation[-1][0])
            assert len(variation) == len(before.candidates[0].line)
        else:
            assert len(siblings) == 1
    assert marked, "the network finds no mistake: the test shows nothing"
    assert read_sgf(write_sgf(annotated).encode()).moves == game.moves


def test_what_is_finished_is_written_before_the_rest_is_looked_at(tmp_path):
    from alphago_zero.constants import RunPaths
    from alphago_zero.network import initialize_random_model

    config = load_config(None, ["game.board_size=5", "network.filters=4", "network.blocks=1"])
    model = initialize_random_model(RunPaths(tmp_path), config)
    files = [tmp_path / f"{name}.sgf" for name in ("one", "two", "three")]
    for file in files:
        file.write_text(write_sgf(GAME))
    summaries = analyze_files(files, model, config, readouts=2, batch=1)
    assert next(summaries)["file"] == str(files[0])
    next(summaries)
    assert [file.with_suffix(".analyzed.sgf").exists() for file in files] == [True, True, False]
    assert len(next(summaries)["loss"]) == 9 and next(summaries, None) is None


def test_the_command_writes_a_copy_and_a_picture(tmp_path):
    from alphago_zero.constants import RunPaths
    from alphago_zero.network import initialize_random_model

    config = load_config(None, ["game.board_size=5", "network.filters=4", "network.blocks=1"])
    initialize_random_model(RunPaths(tmp_path), config)
    files = [tmp_path / "one.sgf", tmp_path / "two.sgf"]
    for file, game in zip(files, (GAME, record("C3 B2 D4", komi=3.5))):
        file.write_text(write_sgf(game))
    original = files[0].read_bytes()
    command = [sys.executable, ROOT / "controller.py", "analyze", *files, "--readouts", "12", "--json"]
    finished = subprocess.run([*map(str, command), "--run-dir", str(tmp_path)], capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    summaries = [json.loads(line) for line in finished.stdout.splitlines()]
    assert [len(summary["black_win_rate"]) for summary in summaries] == [9, 4]
    assert files[0].read_bytes() == original
    for file in files:
        annotated = read_sgf(file.with_suffix(".analyzed.sgf"))
        assert all(note.black_win_rate is not None for note in annotated.notes)
        assert file.with_suffix(".analyzed.png").read_bytes().startswith(b"\x89PNG")
    assert np.isclose(read_sgf(tmp_path / "two.analyzed.sgf").rules.komi, 3.5)
    wrong = subprocess.run(
        [*map(str, command[:3]), str(tmp_path / "no.sgf"), "--run-dir", str(tmp_path)], capture_output=True, text=True
    )
    assert wrong.returncode == 2 and "no.sgf" in wrong.stderr.splitlines()[-1]
