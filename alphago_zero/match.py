"""The games of a match, many in lockstep: at even plies Black moves at every board, at odd ones White.

In: two players, and numbers of games. Out: finished games. In half of them A is Black and in the other half White, so
that both sides are on turn at half of the boards all the time: a network's batch is always as full, and programs
think while it is evaluated. Openings are drawn from the models' own policies (without a model: at random), no two
alike; after that there is no noise, and every player plays its best move.

How a game counts: by Tromp-Taylor on the board after two passes, or by resignation. A program that ends, does not
answer in time, refuses a legal move or plays an illegal one loses, and the record says why. One that counts the final
board otherwise than we do changes nothing, but the record says so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from alphago_zero.alphagozero_agent import game_record
from alphago_zero.config import Config
from alphago_zero.coordinates import to_gtp
from alphago_zero.features import extract_features
from alphago_zero.go import BLACK, COLOR_NAMES, EMPTY, BoardState, opponent
from alphago_zero.players import Concession, PlayerError, PlayerSpec, load_match_evaluator, seat_player
from alphago_zero.random_play import random_seed, sensible_random_move
from alphago_zero.sgf import Note, score_result, write_sgf

_DRAWS_OF_AN_OPENING = 30  # tries for one that differs from all others


@dataclass(frozen=True)
class MatchGame:
    """One game of a match, as it travels from a process to the writer."""

    number: int  # A is Black in even ones; games 2k and 2k + 1 have the same opening
    winner: int  # BLACK, WHITE, or EMPTY for a draw
    result: str  # "B+3.5", "W+R" (resigned), "W+T" (no answer in time), "B+F" (forfeited)
    reason: str  # in words, where it is not the count
    confirmed: bool  # a player counted it, too, with the same result
    disputed: str  # how a player counted it otherwise; else empty
    moves: tuple[int, ...]
    sgf: str

    @property
    def a_color(self) -> int:
        return BLACK if self.number % 2 == 0 else opponent(BLACK)

    @property
    def points_a(self) -> float:
        return 0.5 if self.winner == EMPTY else float(self.winner == self.a_color)


class Match:
    """The games `numbers` of a match of `games` games."""

    def __init__(self, a: PlayerSpec, b: PlayerSpec, config: Config, numbers, games: int, seed: int):
        self._labels, self._rules = (a.label, b.label), config.game
        most = config.evaluation.parallel_games
        if "gtp" in (a.kind, b.kind):
            most = min(most, config.evaluation.programs)
        boards = min(most, len(numbers))
        boards += boards % 2 if most > 1 else 0
        # Board s is for games of parity s % 2, so that each side is on turn at one half of the boards.
        lanes = 2 if boards > 1 else 1
        batch = boards // lanes
        self._waiting = [[n for n in numbers if n % lanes == lane] for lane in range(lanes)]
        self._numbers: list[int | None] = [None] * boards
        self._states: list[BoardState | None] = [None] * boards
        self._ply = 0
        evaluators = [load_match_evaluator(spec, config, batch) if spec.has_network else None for spec in (a, b)]
        self._openings = draw_openings(config, evaluators, (games + 1) // 2, seed)
        self._players = []
        try:
            for side, spec in enumerate((a, b)):
                rng = np.random.default_rng([seed, side, numbers[0]])
                self._players.append(
                    seat_player(spec, config, rng, boards=boards, batch=batch, evaluator=evaluators[side])
                )
        except PlayerError:
            self.close()
            raise

    @property
    def is_over(self) -> bool:
        return not any(self._waiting) and all(number is None for number in self._numbers)

    def close(self) -> None:
        for player in self._players:
            player.close()

    def ply(self) -> list:
        """One move in every game; returns those that ended."""
        if self._ply % 2 == 0:
            self._start_games()
        # Even games have A as Black, and Black moves at even plies.
        active = [board for board, number in enumerate(self._numbers) if number is not None]
        turns = [[board for board in active if (self._numbers[board] + self._ply) % 2 == side] for side in (0, 1)]
        positions = [[self._states[board] for board in boards] for boards in turns]
        for player, boards, states in zip(self._players, turns, positions):
            if boards:
                player.think(boards, states)
        ended = []
        for side, (player, boards, states) in enumerate(zip(self._players, turns, positions)):
            if boards:
                for board, choice in zip(boards, player.choose(boards, states)):
                    ended.append(self._take(side, board, choice))
        self._ply += 1
        return [game for game in ended if game]

    def _start_games(self) -> None:
        for board, number in enumerate(self._numbers):
            waiting = self._waiting[board % len(self._waiting)]
            if number is None and waiting:
                self._numbers[board] = waiting.pop(0)
                self._states[board] = self._openings[self._numbers[board] // 2]
                for player in self._players:
                    player.start(board, self._states[board])

    def _take(self, side: int, board: int, choice: int | Concession) -> MatchGame | None:
        """A player's choice at a board; the game, if it ends there."""
        state = self._states[board]
        if not isinstance(choice, Concession) and not state.is_legal(choice):
            choice = Concession("F", f"illegal move {to_gtp(choice, state.size)}")
        if isinstance(choice, Concession):
            winner = opponent(state.to_play)
            result = f"{COLOR_NAMES[winner][0]}+{choice.letter}"
            reason = f"{COLOR_NAMES[state.to_play]} ({self._labels[side]}) lost: {choice.reason}"
            return self._finish(board, winner, result, reason)
        for other, player in enumerate(self._players):
            player.see(board, state, choice, own=other == side)
        state = self._states[board] = state.play_move(choice)
        if not state.is_game_over:
            return None
        confirmed, disputed = self._ask_for_counts(board)
        return self._finish(board, state.winner(), score_result(state.score()), "", confirmed, disputed)

    def _ask_for_counts(self, board: int) -> tuple[bool, str]:
        """Did a player count the final board as we do, and who counted it otherwise?"""
        ours = self._states[board].score()
        counts = [(label, player.final_score(board)) for label, player in zip(self._labels, self._players)]
        others = [f"{label} counts {count}" for label, count in counts if count and _score(count) != ours]
        return any(count and _score(count) == ours for _, count in counts), "; ".join(others)

    def _finish(
        self, board: int, winner: int, result: str, reason: str, confirmed: bool = False, disputed: str = ""
    ) -> MatchGame:
        number, state = self._numbers[board], self._states[board]
        self._numbers[board] = None
        black, white = self._labels if number % 2 == 0 else self._labels[::-1]
        said = "\n".join(text for text in (reason, disputed) if text)
        notes = [Note()] * len(state.moves) + [Note(said)] if said else ()
        record = game_record(BoardState(self._rules), state.moves, result, notes, black, white)
        return MatchGame(number, winner, result, reason, confirmed, disputed, state.moves, write_sgf(record))


def _score(text: str) -> float | None:
    """Black's lead out of "B+3.5", "W+12.0" or "0"; None for anything else."""
    match = re.fullmatch(r"([BWbw])\+(\d+(?:\.\d+)?)", text.split()[0]) if text.strip() else None
    if match:
        return float(match[2]) * (1 if match[1] in "Bb" else -1)
    return 0.0 if text.strip() in ("0", "0.0", "Draw", "Jigo") else None


def draw_openings(config: Config, evaluators: list, count: int, seed: int) -> list[BoardState]:
    """The first moves of every pair of games, no two alike; of an even number, so that Black is to move.

    They are drawn from the policies of the networks in turn; without a network, from all moves that do not fill an
    own eye. Where a policy gives the same opening again, it is flattened until it gives another.
    """
    networks = [evaluator for evaluator in evaluators if evaluator]
    length = config.evaluation.opening_moves // 2 * 2
    openings: list = [None] * count
    seen: set = set()
    for attempt in range(_DRAWS_OF_AN_OPENING):
        for turn in range(max(len(networks), 1)):
            missing = [k for k in range(turn, count, max(len(networks), 1)) if openings[k] is None]
            rngs = [np.random.default_rng([seed, k, attempt]) for k in missing]
            states = [BoardState(config.game)] * len(missing)
            for _ in range(length):
                if networks:
                    states = _sample_moves(networks[turn], states, rngs, temperature=1 + attempt / 5)
                else:
                    states = [s.play_move(sensible_random_move(s, random_seed(rng))) for s, rng in zip(states, rngs)]
            for k, state in zip(missing, states):
                last_try = attempt == _DRAWS_OF_AN_OPENING - 1
                if (state.moves not in seen and not state.is_game_over) or last_try or length == 0:
                    openings[k] = state
                    seen.add(state.moves)
    return openings


def _sample_moves(evaluator, states: list, rngs: list, temperature: float) -> list:
    """Each state after one more move, drawn from p^(1/tau) without the pass."""
    following = []
    for first in range(0, len(states), evaluator.batch_size):
        batch = states[first : first + evaluator.batch_size]
        p, _ = evaluator.evaluate(np.stack([extract_features(state) for state in batch]))
        for state, row, rng in zip(batch, p, rngs[first:]):
            weights = np.where(state.legal_moves(), row, 0)[:-1].astype(np.float64) ** (1 / temperature)
            if weights.any():
                state = state.play_move(int(rng.choice(len(weights), p=weights / weights.sum())))
            following.append(state)
    return following
