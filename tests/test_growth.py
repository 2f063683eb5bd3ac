"""A new run begins with another's games: once, whole, and only with games of the same kind."""

import dataclasses
import json

import numpy as np
import pytest
from test_preprocessing import CONFIG, games_in_chunks, write_games

from alphago_zero import growth
from alphago_zero.constants import RunPaths
from alphago_zero.errors import UserError
from alphago_zero.growth import adopt_games, origin_path
from alphago_zero.loop import keep_config
from alphago_zero.preprocessing import aggregate, read_ledger
from alphago_zero.runlog import append_line, generations_log


@pytest.fixture
def source(tmp_path):
    """A run of 12 games, for which it took 40 seconds."""
    paths = RunPaths(tmp_path / "small")
    keep_config(paths, CONFIG)
    write_games(paths, range(12))
    aggregate(paths, CONFIG, np.random.default_rng(0))
    for seconds in (30.0, 10.0):
        append_line(generations_log(paths), {"model": "m", "cpu_s": seconds})
    return paths


@pytest.fixture
def target(tmp_path):
    return RunPaths(tmp_path / "large")


def test_all_games_of_the_window_are_taken_once(source, target):
    for _ in range(2):
        adopt_games(target, source, CONFIG)
        assert games_in_chunks(target) == games_in_chunks(source) == dict.fromkeys(range(12), 8)
    assert json.loads(origin_path(target).read_text()) == {"run": "small", "cpu_s": 40.0, "games": 12, "adopted": 12}


def test_the_new_runs_window_and_what_is_still_there_decide(source, target):
    newest, *_ = reversed(read_ledger(source))
    (source.chunks / read_ledger(source)[0].file).unlink()
    adopt_games(target, source, CONFIG)
    assert [chunk.games for chunk in read_ledger(target)] == [chunk.games for chunk in read_ledger(source)[1:]]
    few = dataclasses.replace(CONFIG, training=dataclasses.replace(CONFIG.training, window_games=1))
    other = RunPaths(target.root.with_name("other"))
    adopt_games(other, source, few)
    assert [chunk.games for chunk in read_ledger(other)] == [newest.games]


def test_costs_add_up_over_runs(source, target):
    adopt_games(target, source, CONFIG)
    append_line(generations_log(target), {"model": "m", "cpu_s": 5.0})
    third = RunPaths(target.root.with_name("third"))
    keep_config(target, CONFIG)
    adopt_games(third, target, CONFIG)
    origin = json.loads(origin_path(third).read_text())
    assert (origin["cpu_s"], origin["games"]) == (45.0, 24)


def test_what_the_new_run_deletes_the_other_keeps(source, target):
    adopt_games(target, source, CONFIG)
    for path in target.chunks.iterdir():
        path.unlink()
    assert sum(games_in_chunks(source).values()) == 12 * 8


def test_killed_before_the_ledger_it_begins_anew(source, target, monkeypatch):
    def killed(path, text):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(growth, "atomic_write_text", killed)
        adopt_games(target, source, CONFIG)
    assert not read_ledger(target)
    adopt_games(target, source, CONFIG)
    assert games_in_chunks(target) == games_in_chunks(source)


def test_games_are_copied_where_they_cannot_be_linked(source, target, monkeypatch):
    def refused(*_):
        raise OSError

    monkeypatch.setattr(growth.os, "link", refused)
    adopt_games(target, source, CONFIG)
    assert games_in_chunks(target) == games_in_chunks(source)


def test_games_of_another_kind_or_none_are_refused(source, target):
    other = dataclasses.replace(CONFIG, game=dataclasses.replace(CONFIG.game, komi=6.5))
    with pytest.raises(UserError, match=r"game\.komi is 6\.5, .* 7\.5"):
        adopt_games(target, source, other)
    with pytest.raises(UserError, match=r"nowhere is no run directory"):
        adopt_games(target, RunPaths(target.root.with_name("nowhere")), CONFIG)
    for chunk in read_ledger(source):
        (source.chunks / chunk.file).unlink()
    with pytest.raises(UserError, match="no games to learn from"):
        adopt_games(target, source, CONFIG)
    (source.root / "config.json").write_text("[1]")
    with pytest.raises(UserError, match=r"config\.json cannot be read"):
        adopt_games(target, source, CONFIG)
    assert not read_ledger(target)
