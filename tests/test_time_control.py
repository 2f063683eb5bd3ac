"""Clocks: whatever they are, the engine is never late, and does not waste what it has."""

from concurrent.futures import Future

import numpy as np
import pytest
from fake_networks import FlatNetwork

from alphago_zero.alphagozero_agent import AlphaGoZeroAgent
from alphago_zero.config import load_config
from alphago_zero.go import BLACK, WHITE, Rules
from alphago_zero.gtp_engine import Engine, Options, for_playing
from alphago_zero.time_control import LAG, Clock, TimeSettings, parse_kgs_settings, parse_settings

CLOCKS = [
    *(TimeSettings(main) for main in (5, 60, 3600)),
    *(TimeSettings(main, period, stones) for main in (0, 1, 60) for period, stones in ((0.5, 1), (5, 10))),
    *(TimeSettings(main, period, periods=n) for main in (0, 1, 60) for period, n in ((0.3, 1), (5, 3))),
]


class SimulatedTime:
    """A clock of the engine's world, which goes on only when the network is asked or somebody waits."""

    def __init__(self):
        self.seconds = 0.0

    def __call__(self):
        return self.seconds


def play_by_the_clock(settings, *, batch=0.02, lag=0.02, tell=True, moves=50, readouts=400):
    """Seconds of each move of Black, by an engine whose network needs `batch` seconds; `lag` passes around a move."""
    now = SimulatedTime()

    class Slow(FlatNetwork):
        def evaluate(self, planes):
            now.seconds += batch
            return super().evaluate(planes)

    rules = Rules(board_size=5)
    player = Future()
    config = for_playing(load_config(None, ["search.leaves=8", "selfplay.resign_threshold=-1"]), rules)
    player.set_result(AlphaGoZeroAgent(Slow(), config, np.random.default_rng(0)))
    engine = Engine(rules, player, Options(readouts), now=now)
    kind = "byoyomi" if settings.periods else "canadian" if settings.period else "absolute"
    count = settings.periods or settings.stones
    numbers = [settings.main, settings.period, count] if settings.period else [settings.main]
    engine.commands["kgs-time_settings"]([kind, *map(str, numbers)])
    referee, spent = Clock(settings), []
    for _ in range(moves):
        if tell:
            overtime = referee.main <= 0 and settings.period > 0
            left = referee.period if overtime else referee.main
            stones = (referee.periods if settings.periods else referee.stones) if overtime else 0
            engine.commands["time_left"](["b", f"{left:.3f}", str(stones)])
        began = now()
        engine.commands["genmove"](["b"])
        now.seconds += lag
        spent.append(now() - began)
        referee.spend(now() - began)
        yield spent[-1], referee
        if len(engine.moves) > 30:
            engine.commands["clear_cache"]([])
            del engine.moves[5:], engine.states[6:]  # a game that never ends


@pytest.mark.parametrize("tell", [True, False], ids=["told", "untold"])
@pytest.mark.parametrize("settings", CLOCKS, ids=str)
def test_no_clock_runs_out(settings, tell):
    lag = 0.02 if tell else 0.0  # who is not told of the lag cannot know it
    for number, (_, referee) in enumerate(play_by_the_clock(settings, lag=lag, tell=tell)):
        assert not referee.has_run_out, f"move {number + 1}"
        assert referee.periods == settings.periods  # not even a period is lost


@pytest.mark.parametrize("main", [0.5, 1, 2])
def test_hopelessly_short_main_time_is_spent_as_slowly_as_can_be(main):
    """A move cannot take less than one batch, 5 ms here."""
    spent = [seconds for seconds, _ in play_by_the_clock(TimeSettings(main), batch=0.005, lag=0.0, moves=40)]
    assert sum(spent) < max(main, 40 * 0.0051)
    assert max(spent) <= main / 10


@pytest.mark.parametrize("batch", [0.001, 0.05, 0.4])
def test_a_slow_network_is_reckoned_with(batch):
    for seconds, referee in play_by_the_clock(TimeSettings(0, 1.0, periods=1), batch=batch, moves=20):
        assert seconds < 1.0 and not referee.has_run_out


def test_time_is_used():
    spent = [seconds for seconds, _ in play_by_the_clock(TimeSettings(60), moves=20, readouts=5000)]
    assert sum(spent) > 20
    assert spent[0] > 1 and spent[0] > spent[15]
    byoyomi = [s for s, _ in play_by_the_clock(TimeSettings(0, 2, periods=3), moves=2, readouts=5000)]
    assert min(byoyomi) > 1.5


def test_readouts_and_seconds_still_limit_under_a_clock():
    now = SimulatedTime()

    class Slow(FlatNetwork):
        def evaluate(self, planes):
            now.seconds += 0.01
            return super().evaluate(planes)

    player = Future()
    rules = Rules(board_size=5)
    player.set_result(AlphaGoZeroAgent(Slow(), for_playing(load_config(), rules), np.random.default_rng(0)))
    engine = Engine(rules, player, Options(seconds=0.5), now=now)
    engine.commands["genmove"](["b"])
    assert 0.4 < now() <= 0.51
    engine.commands["time_settings"](["600", "0", "0"])
    engine.commands["genmove"](["w"])
    assert 0.8 < now() <= 1.02
    engine.options = Options(readouts=16)
    before = now()
    engine.commands["genmove"](["b"])
    assert now() - before < 0.1


def test_a_clock_does_not_run_before_the_network_is_loaded():
    player = Future()
    engine = Engine(Rules(), player)
    from alphago_zero.gtp import in_background

    answer = in_background(lambda: engine.commands["time_settings"](["10", "0", "0"]))
    with pytest.raises(Exception):  # noqa: B017  the futures' own timeout has had two names
        answer.result(timeout=0.1)
    player.set_result(None)
    assert answer.result(timeout=10) == ""


def test_each_colour_has_its_clock():
    player = Future()
    player.set_result(None)
    engine = Engine(Rules(), player)
    engine.commands["time_settings"](["100", "0", "0"])
    engine.commands["time_left"](["w", "3", "0"])
    assert engine._clocks[BLACK].main == 100 and engine._clocks[WHITE].main == 3
    engine.commands["clear_board"]([])
    assert engine._clocks[WHITE].main == 100


def test_a_clock_that_is_only_told_of_limits_the_search():
    player = Future()
    player.set_result(None)
    engine = Engine(Rules(), player)
    assert engine._limits(BLACK, clock=True)[1] == np.inf
    engine.commands["time_left"](["b", "3", "0"])
    assert engine._limits(BLACK, clock=True)[1] < 3 and engine._limits(WHITE, clock=True)[1] == np.inf
    engine.commands["clear_board"]([])
    assert engine._limits(BLACK, clock=True)[1] == np.inf


def test_canadian_periods_begin_anew():
    clock = Clock(TimeSettings(10, 30, 2))
    clock.spend(15)
    assert (clock.main, clock.period, clock.stones) == (0, 25, 1)
    clock.spend(20)
    assert (clock.period, clock.stones) == (30, 2)
    clock.spend(31)
    assert clock.has_run_out


def test_a_byoyomi_period_is_lost_by_a_long_move_only():
    clock = Clock(TimeSettings(10, 5, periods=3))
    clock.spend(12)
    assert (clock.main, clock.period, clock.periods) == (0, 5, 3)
    clock.spend(7)
    assert (clock.period, clock.periods) == (5, 2)
    clock.spend(11)
    assert clock.has_run_out


def test_there_is_always_a_margin():
    for settings in CLOCKS:
        clock = Clock(settings)
        limit = clock.main + settings.share
        assert clock.allot(30) <= max(limit - LAG, 0.4 * limit) + 1e-9


def test_settings_are_parsed():
    assert parse_settings(["300", "0", "0"]) == TimeSettings(300)
    assert parse_settings(["300", "30", "5"]) == TimeSettings(300, 30, 5)
    assert parse_settings(["300", "30", "0"]) is None
    assert parse_kgs_settings(["none"]) is None
    assert parse_kgs_settings(["byoyomi", "60", "10", "3"]) == TimeSettings(60, 10, periods=3)
    assert parse_kgs_settings(["byoyomi", "60", "10", "0"]) == parse_kgs_settings(["absolute", "60"])
    for words in (["1", "2"], ["1", "2", "3", "4"], ["1", "2", "-3"], ["a", "b", "c"], ["1e99", "0", "0"]):
        with pytest.raises(ValueError):
            parse_settings(words)
