"""People's games become examples: the move that was played, and who won."""

import numpy as np

from alphago_zero.config import load_config
from alphago_zero.constants import RunPaths
from alphago_zero.coordinates import from_gtp
from alphago_zero.features import extract_features
from alphago_zero.preprocessing import aggregate, load_holdout, load_window
from alphago_zero.sgf import read_sgf
from alphago_zero.supervised import game_examples, import_games

CONFIG = load_config(None, ["game.board_size=5", "selfplay.holdout=0", "training.value_weight=0.01"])
WHITE_WON = "(;GM[1]SZ[5]KM[6.5]RE[W+R];B[cc];W[dc];B[];W[bb])"


def test_pi_is_the_move_that_was_played_and_z_the_outcome_for_the_player_to_move():
    record = read_sgf(WHITE_WON.encode())
    planes, pi, z = game_examples(record)
    assert pi.argmax(1).tolist() == [from_gtp("C3", 5), from_gtp("D3", 5), 25, from_gtp("B4", 5)]
    assert (pi.sum(1) == 1).all() and (pi.max(1) == 1).all()
    assert z.tolist() == [-1, 1, -1, 1]
    for position, state in zip(planes, record.states()):
        np.testing.assert_array_equal(position, extract_features(state))


def test_handicap_and_a_move_out_of_turn_are_seen_by_the_one_who_played():
    record = read_sgf(b"(;SZ[5]RE[B+3.5]AB[aa][ee];W[cc];W[dd];B[bb])")
    planes, _, z = game_examples(record)
    assert planes[:, 0, 0, 16].tolist() == [0, 0, 1]  # the last plane: is Black to move?
    assert planes[1, 2, 2, 0] == 1  # White's own stone, before White's second move
    assert z.tolist() == [-1, -1, 1]


def test_a_draw_is_zero():
    assert not game_examples(read_sgf(b"(;SZ[5]KM[5]RE[0];B[cc];W[dd])"))[2].any()


def test_a_collection_is_taken_in_once_and_what_cannot_be_used_is_named(tmp_path, caplog):
    games = {
        "good.sgf": WHITE_WON,
        "again.sgf": WHITE_WON.replace("GM[1]", "GM[1]PB[somebody]"),
        "other.sgf": "(;SZ[5]RE[B+2.5];B[cc])",
        "large.sgf": "(;SZ[9]RE[B+R];B[cc])",
        "unknown.sgf": "(;SZ[5];B[cc])",
        "empty.sgf": "(;SZ[5]RE[B+R])",
        "illegal.sgf": "(;SZ[5]RE[B+R];B[cc];W[cc])",
        "text.sgf": "no game at all",
    }
    files = [tmp_path / name for name in games]
    for file, text in zip(files, games.values()):
        file.write_text(text)
    paths = RunPaths(tmp_path / "run")
    with caplog.at_level("WARNING"):
        assert import_games(paths, CONFIG, [*files, tmp_path / "missing.sgf"]) == 2
    for name in ("large", "unknown", "empty", "illegal", "text", "missing"):
        assert sum(f"{name}.sgf" in record.getMessage() for record in caplog.records) == 1
    assert len(caplog.records) == 6
    assert aggregate(paths, CONFIG, np.random.default_rng(0)).games == 2
    assert import_games(paths, CONFIG, files) == 2
    assert aggregate(paths, CONFIG, np.random.default_rng(0)).games == 0
    assert len(load_window(paths, CONFIG, 100, np.random.default_rng(0))) == 5


def test_a_share_of_the_games_is_kept_for_validation(tmp_path):
    config = load_config(None, ["game.board_size=5", "selfplay.holdout=0.5"])
    files = []
    for first in "abcde":
        for second in "abcde":
            files.append(tmp_path / f"{first}{second}.sgf")
            files[-1].write_text(f"(;SZ[5]RE[B+R];B[{first}{second}])")
    paths = RunPaths(tmp_path / "run")
    assert import_games(paths, config, files) == 25
    taken = aggregate(paths, config, np.random.default_rng(0)).games
    assert 5 < taken < 20 and len(load_holdout(paths, 5, 5)) == 25 - taken
