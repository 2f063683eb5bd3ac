"""The commands of the Go Text Protocol that need a player: moves, clocks, analysis, the score.

In: the arguments of a command. Out: its answer, or GtpError. The player loads while the game may already be going on;
commands that need it wait. Its tree is kept as long as the game goes on from where it searched last.
"""

from __future__ import annotations

import dataclasses
import math
import os
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import numpy as np

from alphago_zero import gtp_analysis as analysis
from alphago_zero.alphagozero_agent import AlphaGoZeroAgent
from alphago_zero.config import Config
from alphago_zero.coordinates import to_gtp
from alphago_zero.go import BLACK, WHITE, BoardState
from alphago_zero.gtp import GtpError
from alphago_zero.gtp_game import Game, command, fixed_handicap, parse_number
from alphago_zero.inference import load_evaluator
from alphago_zero.mcts import MCTreeSearchNode
from alphago_zero.rules import Rules
from alphago_zero.scoring import chains, dead_stones, final_owners, score, seki_stones
from alphago_zero.sgf import score_result
from alphago_zero.time_control import Clock, TimeSettings, parse_kgs_settings, parse_settings

READOUTS = 1600  # a move, as in the paper, where neither an option nor a clock limits the search
MOST_VISITS = 200_000  # of a root: some 0.7 GB on 9x9
_HANDICAP_READOUTS = 32  # for each stone that has no fixed place


@dataclass(frozen=True)
class Options:
    """How the engine plays."""

    readouts: int | None = None  # simulations a move, at most
    seconds: float | None = None  # a move, at most
    ponder: bool = False  # search in the opponent's time


def for_playing(config: Config, rules: Rules) -> Config:
    """A run's configuration, made to play by a model's rules: by PUCT search, whose visits can grow step by step."""
    search = dataclasses.replace(config.search, algorithm="puct")
    return dataclasses.replace(config, game=rules, search=search)


def load_player(prefix: str | Path, config: Config) -> AlphaGoZeroAgent:
    """A player with the model at `prefix`, all of whose kernels are compiled."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    settings = config.inference
    evaluator = load_evaluator(prefix, config.search.leaves, cores, settings.backend, settings.precision)
    player = AlphaGoZeroAgent(evaluator, config, np.random.default_rng(config.seed))
    player.search_tree(config.search.leaves + 1)
    player.play_move(player.select_move())
    return player


class Engine(Game):
    """A game, and a player who can be asked about it."""

    def __init__(
        self,
        rules: Rules,
        player: Future,  # of an AlphaGoZeroAgent
        options: Options = Options(),
        *,
        pending: Callable[[], bool] = lambda: False,  # the client has sent a further line
        interrupted: threading.Event | None = None,  # the client wants the command to end now
        now: Callable[[], float] = time.monotonic,
    ):
        self._player, self.options = player, options
        self._pending, self._interrupted, self._now = pending, interrupted or threading.Event(), now
        self.send: Callable[..., None] = lambda line="": None  # a line of an answer that is on its way
        self._time_settings: TimeSettings | None = None
        self._clocks: dict[int, Clock] = {}
        self._searched: BoardState | None = None  # where the player's tree has its root
        self._judged: tuple[BoardState, np.ndarray] | None = None  # a position, and who owns its points
        self._pondering = False
        super().__init__(rules)

    def new_game(self, state: BoardState | None = None, handicap: int = 0) -> None:
        super().new_game(state, handicap)
        self._start_clocks()

    @property
    def player(self) -> AlphaGoZeroAgent:
        try:
            return self._player.result()
        except Exception as error:
            raise GtpError(f"cannot load the model: {error}") from None

    # --- searching ----------------------------------------------------------------------------------------------------

    def _go_to(self, state: BoardState) -> AlphaGoZeroAgent:
        """The player at `state`, with its tree if the game went on from there."""
        player = self.player
        if self._searched is state:
            return player
        index = next((k for k in range(len(self.states) - 1, -1, -1) if self.states[k] is self._searched), None)
        if index is None or state is not self.state:
            player.initialize_game(state)
        else:
            for (color, move), after in zip(self.moves[index:], self.states[index + 1 :]):
                if color == player.state.to_play and not player.state.is_game_over:
                    player.play_move(move)
                else:
                    player.initialize_game(after)
        self._searched = state
        return player

    def _search(self, state: BoardState, readouts: int, until: Callable[[], bool]) -> MCTreeSearchNode:
        """At least one batch, so that something is known; then until enough visits, or `until` says so."""
        player, first = self._go_to(state), True

        def enough() -> bool:
            nonlocal first
            first, began = False, first
            return not began and (until() or player.root.N >= MOST_VISITS)

        player.search_tree(max(min(readouts, MOST_VISITS), 1), until=enough)
        return player.root

    def _limits(self, color: int, clock: bool) -> tuple[int, float]:
        """(simulations, seconds) for the next move."""
        readouts, seconds = self.options.readouts, self.options.seconds
        if clock and color in self._clocks:
            moves_left = 0.4 * np.count_nonzero(self.state.board == 0)
            seconds = min(self._clocks[color].allot(moves_left), math.inf if seconds is None else seconds)
        if readouts is None:
            readouts = READOUTS if seconds is None else MOST_VISITS
        return readouts, math.inf if seconds is None else seconds

    def _think(self, color: int, clock: bool = True, report: Callable[..., None] | None = None) -> str:
        """Search for `color` within the limits: a vertex. `report` is called between the batches."""
        started = self._now()
        state = self.state_for(color)
        if state.is_game_over:
            raise GtpError(f"the game is over: it has {len(self.moves)} moves")
        self._go_to(state)
        readouts, seconds = self._limits(color, clock)
        last = self._now()
        longest = 0.0  # the longest batch: the next one must end in time, too

        def until() -> bool:
            nonlocal longest, last
            now = self._now()
            longest, last = max(longest, now - last), now
            if report:
                report()
            return now + longest >= started + seconds or self._interrupted.is_set()

        self._search(state, readouts, until)
        if report:
            report(last=True)
        return to_gtp(self.player.select_move(), self.size)

    def _genmove(self, color: int, report: Callable[..., None] | None = None) -> str:
        started = self._now()
        vertex = self._think(color, report=report)
        if self.player.should_resign():
            vertex = "resign"
        else:
            self.add_move(color, self.parse_vertex(vertex))
            self._pondering = self.options.ponder
        if color in self._clocks:
            self._clocks[color].spend(self._now() - started)
        return vertex

    def ponder(self) -> bool:
        """Search a little in the opponent's time. False when there is nothing more to do."""
        if not self._pondering or self.state.is_game_over:
            return False
        self._pondering = False  # should anything go wrong now, it goes wrong once
        root = self._search(self.state, self.player.leaves, lambda: False)
        self._pondering = root.N < MOST_VISITS
        return self._pondering

    @command("genmove")
    def _genmove_command(self, words: list[str]) -> str:
        return self._genmove(self.parse_color(words))

    @command("reg_genmove")
    def _reg_genmove(self, words: list[str]) -> str:
        return self._think(self.parse_color(words), clock=False)

    @command("place_free_handicap")
    def _place_free_handicap(self, words: list[str]) -> str:
        """The fixed points as far as they go, then those that the player likes best."""
        self._refuse_stones()
        count = parse_number(words, 0, int)
        if not 2 <= count < self._rules.points:
            raise GtpError("invalid handicap")
        points = next((p for n in range(count, 1, -1) if (p := fixed_handicap(self.size, n))), [])
        while len(points) < min(count, self._rules.points // 2):
            state = BoardState.setup(self._rules, points, (), BLACK)
            root = self._search(state, _HANDICAP_READOUTS, lambda: False)
            wishes = np.where(root.legal, root.child_N + root.child_P, -1)[:-1]
            points.append(int(wishes.argmax()))
        return self.place_handicap(points)

    # --- time ---------------------------------------------------------------------------------------------------------

    def _start_clocks(self) -> None:
        settings = self._time_settings
        self._clocks = {color: Clock(settings) for color in (BLACK, WHITE)} if settings else {}

    def _set_time(self, parse: Callable, words: list[str]) -> str:
        try:
            self._time_settings = parse(words)
        except ValueError as error:
            raise GtpError(f"syntax error: {error}") from None
        self._start_clocks()
        self.player  # noqa: B018  a clock must not run before the network is loaded
        return ""

    @command("time_settings")
    def _time_settings_command(self, words: list[str]) -> str:
        return self._set_time(parse_settings, words)

    @command("kgs-time_settings")
    def _kgs_time_settings(self, words: list[str]) -> str:
        return self._set_time(parse_kgs_settings, words)

    @command("time_left")
    def _time_left(self, words: list[str]) -> str:
        color = self.parse_color(words)
        seconds, count = parse_number(words, 1, float), parse_number(words, 2, int)
        if not math.isfinite(seconds) or count < 0:
            raise GtpError("syntax error: expected a colour, seconds and a number of stones")
        # Who tells of a clock has one, even if nobody set it.
        self._clocks.setdefault(color, Clock(TimeSettings(seconds))).set_left(seconds, count)
        return ""

    # --- the end ------------------------------------------------------------------------------------------------------

    def _owners(self) -> np.ndarray:
        if self._judged is None or self._judged[0] is not self.state:
            player = self.player
            self._judged = self.state, final_owners(self.state, player.evaluator, player.config, rng=player.rng)
        return self._judged[1]

    @command("final_score")
    def _final_score(self, words: list[str]) -> str:
        return score_result(score(self._owners(), self._rules.komi))

    @command("final_status_list")
    def _final_status_list(self, words: list[str]) -> str:
        if words[:1] not in (["alive"], ["dead"], ["seki"]):
            raise GtpError("syntax error: expected alive, dead or seki")
        owners = self._owners()
        dead, seki = set(dead_stones(self.state, owners)), set(seki_stones(self.state, owners))
        status = lambda point: "dead" if point in dead else "seki" if point in seki else "alive"  # noqa: E731
        return "\n".join(self.vertices(chain) for chain in chains(self.state) if status(chain[0]) == words[0])

    # --- analysis -----------------------------------------------------------------------------------------------------

    def _reporter(self, request: analysis.AnalysisRequest, kata: bool, state: BoardState) -> Callable[..., None]:
        """What sends a line about the search whenever the interval is over."""
        ownership = analysis.ownership_text(state, self.player.rng) if kata and request.ownership else ""
        due = self._now() + request.interval

        def report(last: bool = False) -> None:
            nonlocal due
            if not last and self._now() < due:
                return
            due = max(due + request.interval, self._now())
            root = self.player.root
            line = analysis.kata_line(root, request, ownership) if kata else analysis.leela_line(root, request)
            if line:
                self.send(line)

        return report

    def _analyze(self, words: list[str], kata: bool) -> str:
        """Search and tell, until the client sends another line."""
        request = analysis.parse_request(words, self.size)
        state = self.state_for(request.color or self.state.to_play)
        mask = request.mask(state)
        player = self._go_to(state)
        if mask is not None:
            player.initialize_game(state)  # a tree of its own, which is forgotten afterwards
            player.restrict(mask)
        report = self._reporter(request, kata, state)

        def until() -> bool:
            report()
            return self._pending() and player.root.N > 1  # so that there is something to tell

        self.send()
        self._search(state, MOST_VISITS, until)
        while not until():
            time.sleep(0.01)  # no more visits are allowed; what is known is still told
        report(last=True)
        if mask is not None:
            self._searched = None
        return ""

    @command("lz-analyze")
    def _lz_analyze(self, words: list[str]) -> str:
        return self._analyze(words, kata=False)

    @command("kata-analyze")
    def _kata_analyze(self, words: list[str]) -> str:
        return self._analyze(words, kata=True)

    def _genmove_analyze(self, words: list[str], kata: bool, play: bool = True) -> str:
        """Think within the limits and tell of it; at the end, the move."""
        request = analysis.parse_request(words, self.size)
        color = request.color or self.state.to_play
        report = self._reporter(request, kata, self.state_for(color))
        self.send()
        return f"play {self._genmove(color, report) if play else self._think(color, report=report)}"

    @command("lz-genmove_analyze")
    def _lz_genmove_analyze(self, words: list[str]) -> str:
        return self._genmove_analyze(words, kata=False)

    @command("kata-genmove_analyze")
    def _kata_genmove_analyze(self, words: list[str]) -> str:
        return self._genmove_analyze(words, kata=True)

    @command("kata-search_analyze")
    def _kata_search_analyze(self, words: list[str]) -> str:
        return self._genmove_analyze(words, kata=True, play=False)

    @command("stop")
    def _stop(self, words: list[str]) -> str:
        self._pondering = False
        return ""

    @command("clear_cache")
    def _clear_cache(self, words: list[str]) -> str:
        self._searched = None
        return ""

    # --- GoGui --------------------------------------------------------------------------------------------------------

    @command("gogui-analyze_commands")
    def _gogui_analyze_commands(self, words: list[str]) -> str:
        return analysis.GOGUI_COMMANDS

    @command("gogui-interrupt")
    def _gogui_interrupt(self, words: list[str]) -> str:
        return ""  # says only that `# interrupt` is understood

    def _known(self, readouts: int | None = None) -> MCTreeSearchNode:
        """The root at the position, after a search if there was none yet."""
        state = self.state_for(self.state.to_play)
        root = self._go_to(state).root
        readouts = readouts or self._limits(state.to_play, clock=False)[0]
        return root if root.N > min(readouts, 8) - 1 else self._search(state, readouts, self._interrupted.is_set)

    @command("az-prior")
    def _prior(self, words: list[str]) -> str:
        return analysis.heat_board(self._known(1).child_P[:-1], self.size)

    @command("az-visits")
    def _visits(self, words: list[str]) -> str:
        return analysis.heat_board(self._known().child_N[:-1], self.size)

    @command("az-value")
    def _value(self, words: list[str]) -> str:
        return analysis.value_board(self._known())

    @command("az-win_rates")
    def _win_rates(self, words: list[str]) -> str:
        return analysis.win_rate_board(self._known())

    @command("az-variation")
    def _variation(self, words: list[str]) -> str:
        return self.vertices(self._known().principal_variation())

    @command("az-describe")
    def _describe(self, words: list[str]) -> str:
        return self._known().describe()
