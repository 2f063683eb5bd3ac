"""Self-play: whole games, honest outcomes, nothing dropped and nothing twice."""

import dataclasses
import json
import math
import os
import signal
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from fake_networks import FlatNetwork

from alphago_zero.alphagozero_agent import AlphaGoZeroAgent, play_against_self, play_match
from alphago_zero.config import load_config
from alphago_zero.constants import RunPaths
from alphago_zero.go import BLACK, EMPTY, WHITE
from alphago_zero.preprocessing import read_game
from alphago_zero.selfplay import SelfplayWorker, calibrate_resignation
from alphago_zero.sgf import read_sgf
from alphago_zero.workers import SelfplayPool, finished_games

SMALL = ["game.board_size=5", "search.readouts=8", "selfplay.parallel_games=8", "selfplay.holdout=0.3"]
ALONE = [*SMALL, "network.filters=8", "network.blocks=1", "selfplay.workers=1"]


class NamedNetwork(FlatNetwork):
    """Knows nothing, and has a name as models have."""

    def __init__(self, name="000000-flat-cod"):
        self.model = SimpleNamespace(name=name)


def play_games(overrides=(), count=12, seed=0, network=None):
    config = load_config(None, [*SMALL, *overrides])
    worker = SelfplayWorker(config, np.random.default_rng(seed))
    worker.take(network or NamedNetwork(), config.selfplay.resign_threshold)
    worker.assign(range(count))
    games = []
    while not worker.is_idle:
        games += worker.step()
    return config, worker, games


def examples(game, tmp_path):
    path = tmp_path / "game.tfrecord.zz"
    path.write_bytes(game.record)
    return read_game(path, 5)


def test_every_game_that_was_started_is_finished():
    _, _, games = play_games(count=20)
    assert sorted(game.number for game in games) == list(range(20))


def test_a_record_agrees_with_its_sgf(tmp_path):
    config, _, games = play_games(["selfplay.resign_disabled=1"])
    for game in games:
        record = read_sgf(game.sgf_full.encode())
        states = list(record.states())
        planes, pi, z, ownership = examples(game, tmp_path)
        assert len(pi) == len(record.moves)
        assert states[-1].is_game_over
        assert record.winner == states[-1].winner()
        for t, state in enumerate(states[:-1]):
            assert (planes[t, :, :, 0] == (state.board == state.to_play)).all()
            assert pi[t].sum() == pytest.approx(1, abs=1e-5)
            assert not pi[t][~state.legal_moves()].any()
            assert z[t] == (1 if record.winner == state.to_play else -1)
            owners = states[-1].owners().ravel()
            assert (ownership[t] == np.select([owners == state.to_play, owners == EMPTY], [1, 0], -1)).all()


def test_the_resigning_side_loses():
    class Hopeless(NamedNetwork):
        """Whoever is to move thinks that White wins."""

        def evaluate(self, planes):
            p, v = super().evaluate(planes)
            return p, np.where(planes[:, 0, 0, 16] == 1, -0.99, 0.99).astype(np.float32)

    _, _, games = play_games(["selfplay.resign_disabled=0"], network=Hopeless())
    assert {game.statistics["result"] for game in games} == {"W+R"}


def test_a_draw_teaches_zero(tmp_path):
    _, _, games = play_games(["game.komi=0", "game.max_moves=2", "selfplay.resign_disabled=1"])
    drawn = [game for game in games if game.statistics["result"] == "0"]
    assert drawn
    assert not examples(drawn[0], tmp_path)[2].any()


def test_no_pass_before_a_move_while_another_is_legal():
    _, _, games = play_games(["selfplay.no_pass_before=10", "selfplay.resign_disabled=1"])
    assert all(game.statistics["first_pass"] is None or game.statistics["first_pass"] >= 10 for game in games)


def test_playout_cap_records_only_fully_searched_moves():
    _, _, games = play_games(["selfplay.full_search_share=0.25", "selfplay.fast_readouts=3"], count=30)
    recorded = sum(game.statistics["positions"] for game in games)
    played = sum(game.statistics["length"] for game in games)
    assert 0.1 * played < recorded < 0.45 * played


@pytest.mark.parametrize("algorithm", ["puct", "gumbel"])
def test_the_same_seed_plays_the_same_games(algorithm):
    first, second = (play_games([f"search.algorithm={algorithm}"], seed=3)[2] for _ in range(2))
    other = play_games([f"search.algorithm={algorithm}"], seed=4)[2]
    assert [game.sgf_full for game in first] == [game.sgf_full for game in second]
    assert [game.sgf_full for game in first] != [game.sgf_full for game in other]


def test_holdout_does_not_depend_on_who_plays():
    first, second = (play_games(seed=seed)[2] for seed in (1, 2))
    assert {g.number: g.holdout for g in first} == {g.number: g.holdout for g in second}
    assert {g.holdout for g in first} == {True, False}


def test_the_entropy_of_p_is_that_of_each_position_even_without_a_search():
    """With one simulation a move only the root is evaluated, and no noise comes to its priors."""
    _, _, games = play_games(["search.readouts=1", "selfplay.resign_disabled=1", "game.max_moves=2"], count=30)
    # No pass is allowed so early: 25 points, then 24.
    expected = (math.log(25) + math.log(24)) / 2
    assert [game.statistics["p_entropy"] for game in games] == [pytest.approx(expected, abs=1e-4)] * 30


def test_new_weights_are_taken_up_in_the_middle_of_a_game():
    config = load_config(None, SMALL)
    worker = SelfplayWorker(config, np.random.default_rng(0))
    worker.take(NamedNetwork("000001-old-cod"), -1.0)
    worker.assign(range(8))
    for _ in range(20):
        worker.step()
    worker.take(NamedNetwork("000002-new-cod"), -1.0)
    games = []
    while not worker.is_idle:
        games += worker.step()
    assert "000002-new-cod" in {game.model for game in games}


def test_memory_follows_what_is_alive():
    config = load_config(None, SMALL)
    worker = SelfplayWorker(config, np.random.default_rng(0))
    worker.take(NamedNetwork(), -1.0)
    worker.assign(range(60))
    pools = []
    while not worker.is_idle:
        pools += [len(worker._search.trees.N)] * len(worker.step())
    assert pools[-1] == pools[20]


def test_resignation_threshold_keeps_wrong_resignations_rare():
    rng = np.random.default_rng(0)
    # Winners fear little, but for 3 in 100; losers end without hope.
    winner = np.where(rng.random(1000) < 0.03, -0.95, rng.uniform(-0.6, 0.2, 1000))
    lows = np.stack([winner, rng.uniform(-1, -0.9, 1000)], axis=1)
    threshold, wrong = calibrate_resignation(lows, 0.05, fallback=-0.9)
    assert threshold == -0.7 and wrong < 0.05
    # Now 20 in 100 winners look lost at -0.85: only a lower threshold keeps them in the game.
    lows[:200, 0] = -0.85
    threshold, wrong = calibrate_resignation(lows, 0.05, fallback=-0.9)
    assert -0.9 < threshold <= -0.85 and wrong < 0.05


def test_resignation_threshold_waits_for_enough_games():
    assert calibrate_resignation([(-0.1, -0.99)] * 5, 0.05, fallback=-0.9) == (-0.9, None)


def make_agent(**options):
    config = load_config(None, SMALL)
    return AlphaGoZeroAgent(NamedNetwork(), config, np.random.default_rng(0), **options)


def test_an_agent_plays_itself_to_the_end():
    agent = make_agent(noise=True)
    result = play_against_self(agent)
    record = read_sgf(agent.to_sgf(result=result).encode())
    assert record.result == result
    planes, pi, z = agent.extract_data(record.winner)
    assert len(planes) == len(pi) == len(z) == len(record.moves)
    agent.initialize_game()  # to resign before the first move
    assert [array.shape for array in agent.extract_data(WHITE)] == [(0, 5, 5, 17), (0, 26), (0,)]


def test_two_agents_see_the_same_game():
    black, white = make_agent(), make_agent(leaves=1)
    result = play_match(black, white)
    assert black.state.moves == white.state.moves
    assert result[0] in "BW"


def test_an_agent_keeps_the_tree_under_the_move_played():
    agent = make_agent(readouts=64)
    agent.search_tree()
    move = agent.select_move()
    below = agent.root.child_N[move]
    agent.play_move(move)
    assert agent.root.N == below > 1


# --- processes --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def random_model(tmp_path_factory):
    from alphago_zero.network import initialize_random_model

    config = load_config(None, [*SMALL, "network.filters=8", "network.blocks=1", "selfplay.workers=2"])
    return initialize_random_model(RunPaths(tmp_path_factory.mktemp("model")), config), config


def check_games(paths, at_least):
    """Every game on disk is whole and there once."""
    files = [path for folder in ("selfplay", "holdout") for path in (paths.data / folder).glob("*/*.tfrecord.zz")]
    numbers = [path.name.split(".")[0] for path in files]
    assert len(numbers) == len(set(numbers)) >= at_least
    for path in files:
        read_game(path, 5)
        sgf = paths.sgf_clean(path.parent.name) / f"{path.name.split('.')[0]}.sgf"
        assert read_sgf(sgf).winner in (BLACK, WHITE)
    logged = [json.loads(line)["game"] for line in (paths.logs / "selfplay.jsonl").read_text().splitlines()]
    assert sorted(logged) == sorted(map(int, numbers))


def test_a_pool_goes_on_where_it_was_stopped(random_model, tmp_path):
    prefix, config = random_model
    paths = RunPaths(tmp_path)
    for total in (10, 20):
        with SelfplayPool(paths, config) as pool:
            pool.play(prefix, total, -1.0)
            assert pool.games >= total
    check_games(paths, 20)
    assert len(finished_games(paths)) == len(set(finished_games(paths))) >= 20


def test_one_worker_with_the_same_seed_writes_the_same_games(random_model, tmp_path):
    """Over two generations: the boards under way at the end of the first are carried over at the same move."""
    prefix, config = random_model
    # Games end at their cap, many at once, and resignation would need other weights.
    config = load_config(None, [*ALONE, "game.max_moves=12"])
    folders = tmp_path / "first", tmp_path / "second"
    for folder in folders:
        with SelfplayPool(RunPaths(folder), config) as pool:
            for total in (12, 40):
                pool.play(prefix, total, -1.0)
    first, second = (
        {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in folders
    )
    assert len(first) >= 3 * 40 and first == second


def kill_workers_now_and_then(pool, stop, every, rng):
    """Only after a further game: on a busy computer a worker may need longer than `every` to start."""
    games = -1
    while not stop.wait(every):
        if pool.games > games:
            games = pool.games
            os.kill(int(rng.choice(pool.process_ids)), signal.SIGKILL)


@pytest.mark.parametrize("games, every", [(60, 1.5), pytest.param(1000, 3.0, marks=pytest.mark.slow)])
def test_workers_may_be_killed(random_model, tmp_path, games, every):
    prefix, config = random_model
    paths = RunPaths(tmp_path)
    with SelfplayPool(paths, config) as pool:
        stop = threading.Event()
        killer = threading.Thread(
            target=kill_workers_now_and_then, args=(pool, stop, every, np.random.default_rng(0)), daemon=True
        )
        killer.start()
        try:
            pool.play(prefix, games, -1.0)
        finally:
            stop.set()
            killer.join()
    check_games(paths, games)


def test_a_worker_that_cannot_load_its_model_says_so(random_model, tmp_path):
    from alphago_zero.workers import WorkerError

    _, config = random_model
    with SelfplayPool(RunPaths(tmp_path), dataclasses.replace(config)) as pool:
        started = time.monotonic()
        with pytest.raises(WorkerError, match="no-such-model"):
            pool.play(tmp_path / "no-such-model", 1, -1.0)
        assert time.monotonic() - started < 60


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="reads memory from /proc")
def test_memory_stays_flat_over_2000_games():
    config = load_config(None, [*SMALL, "selfplay.parallel_games=32"])
    worker = SelfplayWorker(config, np.random.default_rng(0))
    worker.take(NamedNetwork(), -1.0)
    worker.assign(range(2200))
    games, pages = 0, []
    while games < 2000:
        games += len(worker.step())
        if games >= 200 * (len(pages) + 1):
            pages.append(int(open("/proc/self/statm").read().split()[1]))
    assert max(pages) < 1.05 * pages[0], pages
