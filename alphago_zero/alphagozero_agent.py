"""`AlphaGoZeroAgent`: one player at one board, and games between such players.

In: an evaluator and a configuration. Out: moves, with the reasons for them; a game as SGF and as training data.
(Self-play at full speed, many games in one batch, is in `selfplay.py`; it shares the search and the notes.)
"""

from __future__ import annotations

from typing import Callable

import numpy as np

from alphago_zero.config import Config
from alphago_zero.coordinates import to_gtp
from alphago_zero.features import PLANES, extract_features
from alphago_zero.go import BLACK, COLOR_NAMES, WHITE, BoardState, opponent
from alphago_zero.mcts import MCTreeSearchNode, TreeSearch
from alphago_zero.sgf import GameRecord, Note, resignation_result, score_result, write_sgf


class AlphaGoZeroAgent:
    """Searches, chooses, resigns, and remembers what it thought.

    >>> agent = AlphaGoZeroAgent(evaluator, config, np.random.default_rng())    # doctest: +SKIP
    >>> agent.search_tree(); agent.play_move(agent.select_move())               # doctest: +SKIP
    """

    def __init__(
        self,
        evaluator,
        config: Config,
        rng: np.random.Generator,
        *,
        readouts: int | None = None,
        noise: bool = False,
        leaves: int | None = None,
        name: str = "AlphaGo Zero",
    ):
        self.evaluator, self.config, self.rng, self.name = evaluator, config, rng, name
        self.readouts = readouts or config.search.readouts
        self.noise = noise  # exploration at the root, for self-play only
        self.leaves = leaves or config.search.leaves
        self.initialize_game()

    def initialize_game(self, state: BoardState | None = None) -> None:
        """Begin a game at `state`; by default on an empty board."""
        self.start = self.state = state or BoardState(self.config.game)
        self._search = TreeSearch(self.state.rules, self.config.search, self.rng, leaves=self.leaves)
        self._search.set_position(0, self.state)
        self._notes = [Note()]
        self._examples: list = []  # (planes, pi, colour to play) of every position that was searched
        self._searched = False

    def search_tree(self, readouts: int | None = None, until: Callable[[], bool] | None = None) -> None:
        """Do so many further simulations; `until` is asked between batches and may end it earlier."""
        self._search.begin(0, readouts or self.readouts, noise=self.noise)
        while self._search.trees.remaining[0] > 0 and not (until and until()):
            self._search.step(self.evaluator)
        self._search.trees.remaining[0] = 0
        self._searched = True

    def restrict(self, allowed: np.ndarray) -> None:
        """Let the search try only these moves (bool [moves]) in the position; until a move is played."""
        self._search.trees.legal[self._search.trees.root[0]] &= allowed

    @property
    def root(self) -> MCTreeSearchNode:
        return self._search.root(0, self.state)

    @property
    def value(self) -> float:
        """Of the position, for the player to move: -1 to 1."""
        return self._search.root_value(0)

    def select_move(self, temperature: float = 0.0) -> int:
        """The move that the search prefers; with a temperature, drawn from pi ~ N^(1/tau)."""
        if temperature == 0:
            return self._search.best_move(0)
        pi = self._search.policy(0, temperature).astype(np.float64)
        return int(self.rng.choice(len(pi), p=pi / pi.sum()))

    def play_move(self, move: int) -> None:
        """Play for the player to move, whoever decided it. Raises IllegalMove, and then nothing has changed."""
        following = self.state.play_move(move)
        note = Note()
        if self._searched:
            note = search_note(self._search, 0, self.state.to_play, move)
            self._examples.append((extract_features(self.state), self._search.policy(0), self.state.to_play))
        self._notes.append(note)
        self._search.play(0, move)
        self.state = following
        self._searched = False

    def should_resign(self) -> bool:
        """Both the root's value and its best child's are below the threshold."""
        return max(self.value, best_child_value(self._search, 0)) < self.config.selfplay.resign_threshold

    def to_sgf(self, comments: bool = True, result: str | None = None) -> str:
        """The game so far; with comments: what the search said at every move."""
        result = result or (score_result(self.state.score()) if self.state.is_game_over else "?")
        return write_sgf(game_record(self.start, self.state.moves, result, self._notes if comments else (), self.name))

    def extract_data(self, winner: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """planes [T, N, N, 17], pi [T, moves], z [T] of the positions searched, in a game that `winner` won."""
        rules = self.start.rules
        planes, pi, colors = zip(*self._examples) if self._examples else ((), (), ())
        planes = np.array(planes, np.uint8).reshape(-1, rules.board_size, rules.board_size, PLANES)
        pi = np.array(pi, np.float32).reshape(-1, rules.points + 1)
        return planes, pi, outcomes(np.array(colors), winner)


def play_match(black: AlphaGoZeroAgent, white: AlphaGoZeroAgent, temperature_moves: int = 0) -> str:
    """Let two agents play one game, each with its own tree; returns the result ("B+3.5", "W+R")."""
    black.initialize_game()
    white.initialize_game(black.state)
    players = {BLACK: black, WHITE: white}
    while not black.state.is_game_over:
        player = players[black.state.to_play]
        player.search_tree()
        if player.should_resign():
            return resignation_result(opponent(player.state.to_play))
        move = player.select_move(temperature=1.0 if black.state.move_number < temperature_moves else 0.0)
        for agent in (black, white):
            agent.play_move(move)
    return score_result(black.state.score())


def play_against_self(agent: AlphaGoZeroAgent) -> str:
    """One game of an agent against itself, with temperature and resignation as in self-play; returns the result."""
    agent.initialize_game()
    while not agent.state.is_game_over:
        agent.search_tree()
        if agent.should_resign():
            return resignation_result(opponent(agent.state.to_play))
        early = agent.state.move_number < agent.config.selfplay.temperature_moves
        agent.play_move(agent.select_move(temperature=1.0 if early else 0.0))
    return score_result(agent.state.score())


def best_child_value(search: TreeSearch, game: int) -> float:
    """Q of the most visited move at the root."""
    root = search.trees.root[game]
    best = search.trees.N[root].argmax()
    return float(search.trees.W[root, best] / max(search.trees.N[root, best], 1))


def search_note(search: TreeSearch, game: int, to_play: int, move: int) -> Note:
    """What the search says at its root, for an SGF comment at `move`, which was chosen there."""
    root = MCTreeSearchNode(search, int(search.trees.root[game]), state=None)
    figures = root.child_N[move], root.child_Q[move], root.child_P[move]
    return move_note(search.rules.board_size, to_play, move, root.Q, root.N, *figures, root.principal_variation(10))


def move_note(size: int, to_play: int, move: int, value: float, visits: int, N: int, Q: float, P: float, line) -> Note:
    """The words for it: the root's value and visits, the move's N, Q and P, and the line expected (-1: its end)."""
    comment = (
        f"{COLOR_NAMES[to_play]} expects {value:+.3f} after {visits} visits.\n"
        f"{to_gtp(move, size)}: {N} visits, Q {Q:+.3f}, P {P:.3f}\n"
        f"Line: {' '.join(to_gtp(m, size) for m in line if m >= 0)}"
    )
    return Note(comment, (1 + (value if to_play == BLACK else -value)) / 2)


def game_record(start: BoardState, moves, result: str, notes, black_name: str, white_name: str = "") -> GameRecord:
    """A game of alternating moves from a position without setup stones, as a record."""
    first = start.to_play
    colored = tuple((first if k % 2 == 0 else 3 - first, move) for k, move in enumerate(moves))
    return GameRecord(
        rules=start.rules,
        moves=colored,
        result=result,
        black_name=black_name,
        white_name=white_name or black_name,
        to_play=first,
        notes=tuple(notes),
    )


def outcomes(colors: np.ndarray, winner: int) -> np.ndarray:
    """z for each player to move: +1 won, -1 lost, 0 a draw."""
    return np.where(winner == 0, 0.0, np.where(colors == winner, 1.0, -1.0)).astype(np.float32)
