"""Monte Carlo tree search: `TreeSearch` over many games or one, and `MCTreeSearchNode`, a node for people to look at.

In: positions, and an evaluator that gives p, v for a batch of leaves. Out: visit counts, the search probabilities pi,
and the value of the root. Many games with one leaf each a step fill the network's batch in self-play and matches;
one game with several leaves in flight does for GTP and the page. Both are the same kernels, in `simulation.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from alphago_zero import tree as kernels
from alphago_zero.config import SearchConfig
from alphago_zero.coordinates import to_gtp
from alphago_zero.features import PLANES
from alphago_zero.game_log import make_moves
from alphago_zero.go import BoardState, Rules, area, geometry
from alphago_zero.gumbel import best_root_action, improved_policy, sequential_halving
from alphago_zero.simulation import expand_and_back_up, select_leaves
from alphago_zero.symmetries import COUNT, point_permutations

_STEPS_AHEAD = 64
_FIRST_VISIT = {"zero": kernels.ZERO, "loss": kernels.LOSS, "parent": kernels.PARENT}


class TreeSearch:
    """The search trees of `games` games.

    `set_position` each game, `begin` a search of so many simulations, call `step` (or `run`) with an evaluator, then
    read `visits`, `policy` and `value`, and `play` a move.
    """

    def __init__(
        self,
        rules: Rules,
        config: SearchConfig,
        rng: np.random.Generator,
        *,
        games: int = 1,
        leaves: int = 1,
        no_pass_before: int = 0,
    ):
        self.rules, self.config, self.rng = rules, config, rng
        self.games, self.leaves = games, leaves
        self.geometry = geometry(rules.board_size)
        self.permutations = point_permutations(rules.board_size)
        self.settings = kernels.Settings(
            allow_suicide=rules.allow_suicide,
            length_cap=rules.length_cap,
            komi=float(rules.komi),
            c_puct=config.c_puct,
            first_visit=_FIRST_VISIT[config.first_visit],
            first_visit_reduction=config.first_visit_reduction,
            pass_answers_pass=config.pass_answers_pass,
            no_pass_before=no_pass_before,
            noise_fraction=config.noise_fraction,
            gumbel=config.algorithm == "gumbel",
            gumbel_visit=config.gumbel_visit,
            gumbel_scale=config.gumbel_scale,
        )
        self._schedule = np.zeros((games, 0), np.int32)  # [games, simulations] of Gumbel search; grows when needed
        self.trees = kernels.make_trees(
            rules.board_size, rules.length_cap, games, games * leaves, nodes=games * (16 + 2 * leaves)
        )
        self._planes = np.zeros((games * leaves, rules.points, PLANES), np.uint8)
        self._symmetries: list = []  # [batch] each, for the next steps

    @property
    def batch_size(self) -> int:
        """The most leaves that one step sends to the evaluator."""
        return self.games * self.leaves

    @property
    def alpha(self) -> float:
        """Dirichlet noise: 0.03 on 361 points, in proportion on others."""
        return self.config.noise_alpha or 0.03 * 361 / self.rules.points

    def set_position(self, game: int, state: BoardState) -> None:
        """Forget a game's tree; search goes on from `state`."""
        if state.rules != self.rules:
            raise ValueError(f"the position's rules are {state.rules}, those of the search {self.rules}")
        self._make_room(1)
        hashes = state.position_hashes
        kernels.set_root(self.trees, game, state._positions, 0, hashes, self.geometry, self.settings)

    def begin(self, game: int, readouts: int, noise: bool = False) -> None:
        """Let the next steps do `readouts` further simulations in a game, with noise at the root if asked."""
        self.begin_many(np.array([game]), np.array([readouts]), np.array([noise]))

    def begin_many(self, games: np.ndarray, readouts: np.ndarray, noise: np.ndarray) -> None:
        """`begin` for several games: int [K], int [K], bool [K]."""
        trees = self.trees
        noisy = games[noise]
        if len(noisy):
            shape = (len(noisy), self.rules.points + 1)
            draw = self.rng.gumbel(size=shape) if self.settings.gumbel else self.rng.standard_gamma(self.alpha, shape)
            trees.noise[noisy] = draw
        if self.settings.gumbel and len(noisy) < len(games):
            trees.noise[games[~noise]] = 0
        actions = np.empty(len(games), np.int64)
        kernels.begin_searches(trees, games, readouts, noise, self.settings, actions)
        if self.settings.gumbel:
            self._plan(games, readouts, actions)

    def _plan(self, games: np.ndarray, readouts: np.ndarray, actions: np.ndarray) -> None:
        """The schedule of Gumbel's simulations at the roots; the first one evaluates a root that is not yet known."""
        trees = self.trees
        simulations = readouts - (trees.status[trees.root[games]] == kernels.WAITING)
        missing = int(simulations.max()) - self._schedule.shape[1]
        if missing > 0:
            self._schedule = np.pad(self._schedule, ((0, 0), (0, missing)))
        considered = np.clip(actions, 1, self.config.gumbel_actions)
        for game, number, most in zip(games.tolist(), simulations.tolist(), considered.tolist()):
            if number > 0:
                self._schedule[game, :number] = sequential_halving(most, number)

    def step(self, evaluator) -> int:
        """One batch: select leaves in all games, evaluate them together, back up. Returns how many were evaluated."""
        self._make_room(self.batch_size)
        symmetries = self._draw_symmetries()
        waiting = select_leaves(
            self.trees,
            self.leaves,
            self.geometry,
            self.settings,
            self._schedule,
            symmetries,
            self.permutations,
            self._planes,
        )
        if waiting:
            size = self.rules.board_size
            p, v = evaluator.evaluate(self._planes[:waiting].reshape(waiting, size, size, PLANES))
            expand_and_back_up(self.trees, waiting, p, v, symmetries, self.permutations)
        return waiting

    def _draw_symmetries(self) -> np.ndarray:
        """int64 [batch]: a symmetry for each leaf of a step.

        Many games draw them for many steps at once: after the network has run, the caches know nothing of random
        numbers, and such a call costs as much as what it serves.
        """
        if not self._symmetries:
            steps = _STEPS_AHEAD if self.games > 1 else 1
            self._symmetries = list(self.rng.integers(COUNT, size=(steps, self.batch_size)))
        return self._symmetries.pop()

    def run(self, evaluator) -> None:
        """Finish what `begin` asked for."""
        while self.trees.remaining.any():
            self.step(evaluator)

    def _make_room(self, nodes: int) -> None:
        """Let the pool have so many free nodes, or more."""
        if self.trees.free_count[0] < nodes:
            more = max(nodes, len(self.trees.N) // 2)
            self.trees = kernels.with_more_nodes(self.trees, self.rules.board_size, more)

    def play(self, game: int, move: int) -> None:
        """Play a legal move; the subtree under it is kept."""
        self._make_room(1)
        kernels.advance_root(self.trees, game, move, self.geometry, self.settings)

    def make_moves(self, games: np.ndarray, log, *, record, sample, resign_below) -> np.ndarray:
        """Choose moves, enter them into a `GameLog`, and play them: all that self-play does after its searches.

        All are arrays [K]. Returns GOES_ON, RESIGNED or COUNTED for each.
        """
        self._make_room(len(games))
        endings = np.zeros(len(games), np.int64)
        luck = self.rng.random(len(games))
        make_moves(self.trees, games, log, self.geometry, self.settings, record, sample, luck, resign_below, endings)
        return endings

    def count(self, game: int) -> tuple[float, np.ndarray]:
        """Black's area less White's and komi at the root, and the owner of each point (uint8 [points])."""
        trees = self.trees
        difference = area(trees.positions, trees.root[game], self.geometry, trees.owners, trees.queue)
        return float(difference - self.rules.komi), trees.owners.copy()

    def visits(self, game: int) -> np.ndarray:
        """int32 [moves]: N of the root's edges."""
        return self.trees.N[self.trees.root[game]].copy()

    def root_value(self, game: int) -> float:
        """Mean value of the root's simulations, for the player to move."""
        root = self.trees.root[game]
        if self.trees.status[root] == kernels.WAITING:
            return 0.0
        return float((self.trees.value[root] + self.trees.W[root].sum()) / (1 + self.trees.N[root].sum()))

    def policy(self, game: int, temperature: float = 1.0) -> np.ndarray:
        """pi(a) = N(a)^(1/tau) / sum_b N(b)^(1/tau), float32 [moves]; tau = 0: the most visited move.

        With Gumbel search: the improved policy, whatever the temperature.
        """
        trees, root = self.trees, self.trees.root[game]
        if self.settings.gumbel:
            pi = np.empty(self.rules.points + 1, np.float32)
            improved_policy(
                *(array[root] for array in (trees.N, trees.W, trees.V, trees.P, trees.legal)),
                trees.value[root],
                self.settings.gumbel_visit,
                self.settings.gumbel_scale,
                pi,
            )
            return pi
        return visit_policy(trees.N[root], trees.P[root], temperature)

    def best_move(self, game: int) -> int:
        """The move to play when it counts: the most visited one (Gumbel: the last survivor)."""
        trees, root = self.trees, self.trees.root[game]
        if self.settings.gumbel and trees.N[root].any():
            return int(
                best_root_action(
                    *(array[root] for array in (trees.N, trees.W, trees.V, trees.P, trees.legal)),
                    trees.value[root],
                    trees.noise[game],
                    trees.N[root].max(),
                    self.settings.gumbel_visit,
                    self.settings.gumbel_scale,
                    np.empty(self.rules.points + 1, np.float32),
                )
            )
        return int(np.lexsort((trees.P[root], trees.N[root]))[-1])

    def root(self, game: int, state: BoardState) -> MCTreeSearchNode:
        """A view of a game's root, whose position is `state`."""
        return MCTreeSearchNode(self, int(self.trees.root[game]), state)


def visit_policy(N: np.ndarray, P: np.ndarray, temperature: float) -> np.ndarray:
    """pi(a) ~ N(a)^(1/tau); at tau = 0 all weight on the most visited move (the better prior decides a tie)."""
    if temperature == 0:
        pi = np.zeros(len(N), np.float32)
        pi[np.lexsort((P, N))[-1]] = 1
        return pi
    weights = (N / max(N.max(), 1)) ** (1 / temperature)
    return (weights / weights.sum() if weights.any() else P / P.sum()).astype(np.float32)


class MCTreeSearchNode:
    """A read-only view of one node, for people and tests. It is valid until the search goes on."""

    def __init__(self, search: TreeSearch, index: int, state: BoardState):
        self._search, self._index, self.state = search, index, state

    def _array(self, name: str) -> np.ndarray:
        view = getattr(self._search.trees, name)[self._index].view()
        view.setflags(write=False)
        return view

    @property
    def child_N(self) -> np.ndarray:
        """int32 [moves] visits."""
        return self._array("N")

    @property
    def child_W(self) -> np.ndarray:
        return self._array("W")

    @property
    def child_P(self) -> np.ndarray:
        return self._array("P")

    @property
    def child_Q(self) -> np.ndarray:
        """Mean values for the player to move; 0 where unvisited."""
        return self.child_W / np.maximum(self.child_N, 1)

    @property
    def legal(self) -> np.ndarray:
        return self._array("legal")

    @property
    def N(self) -> int:
        """Simulations that went through this node, its own evaluation included."""
        return int(self.child_N.sum()) + (not self.is_waiting)

    @property
    def v(self) -> float:
        """The network's value (or the outcome) for the player to move."""
        return float(self._search.trees.value[self._index])

    @property
    def Q(self) -> float:
        """Mean value of the simulations that went through this node, for the player to move."""
        return float((self.v + self.child_W.sum()) / self.N) if self.N else 0.0

    @property
    def is_waiting(self) -> bool:
        return self._search.trees.status[self._index] == kernels.WAITING

    @property
    def is_terminal(self) -> bool:
        return bool(self._search.trees.status[self._index] == kernels.TERMINAL)

    def child(self, move: int) -> MCTreeSearchNode | None:
        """The node behind a move; None if it was not evaluated, or the game is over there."""
        index = int(self._search.trees.child[self._index, move])
        return None if index == kernels.NONE else MCTreeSearchNode(self._search, index, self.state.play_move(move))

    def children(self) -> Iterator[tuple]:
        """(move, node) for every child, most visited first."""
        for move in self.ranked_moves():
            node = self.child(move)
            if node is not None:
                yield move, node

    def ranked_moves(self) -> list:
        """Moves that were visited, most visited first; the better prior decides a tie."""
        order = np.lexsort((self.child_P, self.child_N))[::-1]
        return [int(move) for move in order if self.child_N[move] > 0]

    def principal_variation(self, length: int = 20) -> list:
        """The most visited moves one after another."""
        line = np.empty(length, np.int16)
        kernels.principal_variation(self._search.trees, self._index, line)
        return line[line != kernels.NONE].tolist()

    def describe(self, rows: int = 15) -> str:
        """The search as a table: value, principal variation, and the most visited moves with their Q, U, P and N."""
        name = lambda move: to_gtp(move, self.state.size)  # noqa: E731
        lines = [f"value {self.Q:+.4f}  visits {self.N}", " ".join(map(name, self.principal_variation()))]
        total = max(int(self.child_N.sum()), 1)
        U = self._search.config.c_puct * self.child_P * np.sqrt(total) / (1 + self.child_N)
        lines.append(f"{'move':>4}  {'action':>7}  {'Q':>7}  {'U':>6}  {'P':>6}  {'N':>6}  {'share':>6}")
        for move in self.ranked_moves()[:rows]:
            Q, N, P = self.child_Q[move], self.child_N[move], self.child_P[move]
            lines.append(
                f"{name(move):>4}  {Q + U[move]:+7.3f}  {Q:+7.3f}  {U[move]:6.3f}  {P:6.3f}  {N:6d}  {N / total:6.3f}"
            )
        return "\n".join(lines)
