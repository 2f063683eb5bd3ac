"""The rules of Go: compiled kernels over flat arrays, and `BoardState`, the immutable object built on them.

In: moves. Out: positions, legal moves, scores. Rules as in the paper (Methods, 'Domain knowledge'): Tromp-Taylor
scoring, positional superko over the whole game, suicide forbidden unless `Rules.allow_suicide`.

A move is a flat number: row * N + column with row 0 at the top; N * N is the pass.

Two ideas make the kernels fast and short:

* A chain knows its *pseudo-liberties*: the pairs (stone of the chain, empty neighbour). It is captured when they
  reach 0, and it is in atari at point p exactly when all of them touch p; nothing else is ever asked of them.
* A move repeats an earlier position only if a stone of its colour stood at its point before and was taken since.
  `was_taken` remembers such points, so the history is searched only for them (and for suicides).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

import numpy as np

from alphago_zero.coordinates import COLUMNS, to_gtp
from alphago_zero.errors import UserError
from alphago_zero.jit import njit, prefetch
from alphago_zero.rules import Rules

EMPTY, BLACK, WHITE, OFF_BOARD = 0, 1, 2, 3
COLOR_NAMES = {EMPTY: "empty", BLACK: "Black", WHITE: "White"}
HISTORY = 8  # positions that one byte of `Positions.history` remembers

_UNSEEN = 4  # in `area`: an empty point that was not looked at yet

# What `move_status` answers.
LEGAL, OCCUPIED, SUICIDE, SUPERKO = 0, 1, 2, 3
_REASONS = {OCCUPIED: "occupied", SUICIDE: "suicide", SUPERKO: "forbidden by superko (it repeats a position)"}


def opponent(color: int) -> int:
    return 3 - color


class IllegalMove(UserError):
    """A move that the rules refuse; the message says which and why."""


class Geometry(NamedTuple):
    """The board as tables. Index `points` stands for everything outside the board."""

    size: int
    points: int
    neighbors: np.ndarray  # [points, 4] int16
    diagonals: np.ndarray  # [points, 4] int16
    zobrist: np.ndarray  # [colour, points] uint64


class Positions(NamedTuple):
    """Many positions side by side; every array begins with the slot."""

    stones: np.ndarray  # [slots, points + 1] uint8 colour; the last entry is OFF_BOARD
    chain: np.ndarray  # [slots, points] int16 the stone that stands for the chain of this stone
    next_in_chain: np.ndarray  # [slots, points] int16 the chain's stones as a ring
    pseudo_liberties: np.ndarray  # [slots, points] int16 valid at the stone that stands for a chain
    history: np.ndarray  # [slots, 2, points] uint8; bit t of [:, colour - 1]: such a stone stood here t moves ago
    was_taken: np.ndarray  # [slots, points] uint8; bit `colour`: such a stone was taken here
    hash: np.ndarray  # [slots] uint64 Zobrist hash of the stones
    captures: np.ndarray  # [slots, 3] int16 stones taken by each colour
    to_play: np.ndarray  # [slots] uint8
    move_number: np.ndarray  # [slots] int16 moves played, passes included
    passes: np.ndarray  # [slots] uint8 passes in a row


@cache
def geometry(size: int) -> Geometry:
    """The tables of an N x N board; hashes are the same in every process."""
    points = size * size

    def at(row, column):
        return row * size + column if 0 <= row < size and 0 <= column < size else points

    cells = [(p // size, p % size) for p in range(points)]
    neighbors = [[at(r - 1, c), at(r, c - 1), at(r, c + 1), at(r + 1, c)] for r, c in cells]
    diagonals = [[at(r - 1, c - 1), at(r - 1, c + 1), at(r + 1, c - 1), at(r + 1, c + 1)] for r, c in cells]
    zobrist = np.random.Generator(np.random.PCG64(size)).integers(1, 2**64 - 1, size=(3, points), dtype=np.uint64)
    tables = [np.array(neighbors, np.int16), np.array(diagonals, np.int16), zobrist]
    for table in tables:
        table.setflags(write=False)
    return Geometry(size, points, *tables)


def empty_positions(size: int, slots: int) -> Positions:
    """`slots` empty boards, Black to play."""
    points = size * size
    stones = np.zeros((slots, points + 1), np.uint8)
    stones[:, points] = OFF_BOARD
    return Positions(
        stones=stones,
        chain=np.zeros((slots, points), np.int16),
        next_in_chain=np.zeros((slots, points), np.int16),
        pseudo_liberties=np.zeros((slots, points), np.int16),
        history=np.zeros((slots, 2, points), np.uint8),
        was_taken=np.zeros((slots, points), np.uint8),
        hash=np.zeros(slots, np.uint64),
        captures=np.zeros((slots, 3), np.int16),
        to_play=np.full(slots, BLACK, np.uint8),
        move_number=np.zeros(slots, np.int16),
        passes=np.zeros(slots, np.uint8),
    )


# --- kernels: one position is slot `i` of `positions` -------------------------------------------------------------


@njit
def _copy(source, target):
    for k in range(len(source)):  # one array a loop: these become moves of whole blocks
        target[k] = source[k]


@njit
def copy_position(source, i, target, j):
    _copy(source.stones[i], target.stones[j])
    _copy(source.chain[i], target.chain[j])
    _copy(source.next_in_chain[i], target.next_in_chain[j])
    _copy(source.pseudo_liberties[i], target.pseudo_liberties[j])
    _copy(source.history[i, 0], target.history[j, 0])
    _copy(source.history[i, 1], target.history[j, 1])
    _copy(source.was_taken[i], target.was_taken[j])
    target.hash[j] = source.hash[i]
    for color in range(3):
        target.captures[j, color] = source.captures[i, color]
    target.to_play[j] = source.to_play[i]
    target.move_number[j] = source.move_number[i]
    target.passes[j] = source.passes[i]


@njit
def prefetch_position(positions, i):
    """Ask for the memory of slot `i`, which is about to be copied or written."""
    points = positions.chain.shape[1]
    for line in range(0, points, 64):
        prefetch(positions.stones, i, line)
        prefetch(positions.was_taken, i, line)
    for line in range(0, 2 * points, 64):
        prefetch(positions.chain, i, line)
        prefetch(positions.next_in_chain, i, line)
        prefetch(positions.pseudo_liberties, i, line)
        prefetch(positions.history, i, line)
    prefetch(positions.hash, i, 0)
    prefetch(positions.captures, i, 0)
    prefetch(positions.to_play, i, 0)
    prefetch(positions.move_number, i, 0)
    prefetch(positions.passes, i, 0)


@njit
def place_stone(positions, i, point, color, geometry):
    """Put a stone down, take what it captures (last of all its own chain), and return the number of own stones lost."""
    stones, chain, next_in_chain = positions.stones[i], positions.chain[i], positions.next_in_chain[i]
    liberties = positions.pseudo_liberties[i]
    stones[point] = color
    chain[point] = point
    next_in_chain[point] = point
    liberties[point] = 0
    positions.hash[i] ^= geometry.zobrist[color, point]
    for k in range(4):
        neighbor = geometry.neighbors[point, k]
        if stones[neighbor] == EMPTY:
            liberties[chain[point]] += 1
        elif stones[neighbor] == color:
            liberties[chain[neighbor]] -= 1
            if chain[neighbor] != chain[point]:
                _join_chains(chain, next_in_chain, liberties, neighbor, point)
        elif stones[neighbor] != OFF_BOARD:
            liberties[chain[neighbor]] -= 1
    for k in range(4):
        neighbor = geometry.neighbors[point, k]
        if stones[neighbor] == 3 - color and liberties[chain[neighbor]] == 0:
            positions.captures[i, color] += _remove_chain(positions, i, neighbor, geometry)
    if liberties[chain[point]] == 0:
        lost = _remove_chain(positions, i, point, geometry)
        positions.captures[i, 3 - color] += lost
        return lost
    return 0


@njit
def _join_chains(chain, next_in_chain, liberties, a, b):
    """The chain of stone `b` becomes part of the chain of stone `a`."""
    keep, drop = chain[a], chain[b]
    stone = b
    while True:
        chain[stone] = keep
        stone = next_in_chain[stone]
        if stone == b:
            break
    next_in_chain[a], next_in_chain[b] = next_in_chain[b], next_in_chain[a]
    liberties[keep] += liberties[drop]


@njit
def _remove_chain(positions, i, start, geometry):
    """Take a chain off the board; return its number of stones."""
    stones, chain, next_in_chain = positions.stones[i], positions.chain[i], positions.next_in_chain[i]
    color = stones[start]
    removed = 0
    stone = start
    while True:
        stones[stone] = EMPTY
        positions.was_taken[i, stone] |= 1 << color
        positions.hash[i] ^= geometry.zobrist[color, stone]
        for k in range(4):
            neighbor = geometry.neighbors[stone, k]
            if stones[neighbor] == 3 - color:
                positions.pseudo_liberties[i, chain[neighbor]] += 1
        removed += 1
        stone = next_in_chain[stone]
        if stone == start:
            return removed


@njit
def play(positions, i, move, geometry):
    """Play a legal move for the player whose turn it is."""
    color = positions.to_play[i]
    if move == geometry.points:
        positions.passes[i] += 1
    else:
        place_stone(positions, i, move, color, geometry)
        positions.passes[i] = 0
    positions.to_play[i] = 3 - color
    positions.move_number[i] += 1
    remember_stones(positions, i, geometry)


@njit
def remember_stones(positions, i, geometry):
    """Move the history on by one: the stones on the board become those of now (t = 0)."""
    stones, black, white = positions.stones[i], positions.history[i, BLACK - 1], positions.history[i, WHITE - 1]
    for point in range(geometry.points):
        black[point] = (black[point] << 1) | (stones[point] == BLACK)
        white[point] = (white[point] << 1) | (stones[point] == WHITE)


@njit
def move_status(positions, i, point, geometry, allow_suicide, hashes, number):
    """LEGAL, or why the player to move may not play at `point`. `hashes[:number]`: all positions of the game."""
    stones, chain, liberties = positions.stones[i], positions.chain[i], positions.pseudo_liberties[i]
    color = positions.to_play[i]
    if stones[point] != EMPTY:
        return OCCUPIED
    may_repeat = (positions.was_taken[i, point] >> color) & 1
    if not may_repeat:
        for k in range(4):
            if stones[geometry.neighbors[point, k]] == EMPTY:
                return LEGAL  # as most moves are
    breathes, captures, joins = False, False, False
    for k in range(4):
        neighbor = geometry.neighbors[point, k]
        if stones[neighbor] == EMPTY:
            breathes = True
        elif stones[neighbor] != OFF_BOARD:
            in_atari = liberties[chain[neighbor]] == _contacts(chain, stones, point, neighbor, geometry)
            if stones[neighbor] == color:
                joins = True
                breathes |= not in_atari
            else:
                captures |= in_atari
    suicide = not breathes and not captures
    if suicide and not (allow_suicide and joins):
        return SUICIDE
    if suicide or may_repeat:
        after = _hash_after(positions, i, point, suicide, geometry)
        for k in range(number):
            if hashes[k] == after:
                return SUPERKO
    return LEGAL


@njit
def _contacts(chain, stones, point, neighbor, geometry):
    """How many neighbours of `point` belong to the chain of `neighbor`."""
    contacts = 0
    for k in range(4):
        other = geometry.neighbors[point, k]
        if stones[other] == stones[neighbor] and chain[other] == chain[neighbor]:
            contacts += 1
    return contacts


@njit
def _hash_after(positions, i, point, suicide, geometry):
    """The hash of the position after the player to move plays at `point`."""
    stones, chain, liberties = positions.stones[i], positions.chain[i], positions.pseudo_liberties[i]
    color = positions.to_play[i]
    taken = color if suicide else 3 - color  # the colour that loses stones, if any
    after = positions.hash[i]
    if not suicide:
        after ^= geometry.zobrist[color, point]
    for k in range(4):
        neighbor = geometry.neighbors[point, k]
        if stones[neighbor] != taken:
            continue
        seen = False
        for earlier in range(k):
            other = geometry.neighbors[point, earlier]
            seen |= stones[other] == taken and chain[other] == chain[neighbor]
        if seen or liberties[chain[neighbor]] != _contacts(chain, stones, point, neighbor, geometry):
            continue
        stone = neighbor
        while True:
            after ^= geometry.zobrist[taken, stone]
            stone = positions.next_in_chain[i, stone]
            if stone == neighbor:
                break
    return after


@njit
def legal_moves(positions, i, geometry, allow_suicide, hashes, number, legal):
    """Fill `legal` (bool [points + 1]) for the player to move; the pass is always legal."""
    for point in range(geometry.points):
        legal[point] = move_status(positions, i, point, geometry, allow_suicide, hashes, number) == LEGAL
    legal[geometry.points] = True


@njit
def is_over(positions, i, length_cap):
    return positions.passes[i] >= 2 or positions.move_number[i] >= length_cap


@njit
def area(positions, i, geometry, owners, queue):
    """Tromp-Taylor: fill `owners` (uint8 [points], EMPTY where neutral), return Black's area less White's.

    `queue` (int16 [points]) is scratch.
    """
    stones = positions.stones[i]
    difference = 0
    for point in range(geometry.points):
        owners[point] = stones[point] if stones[point] != EMPTY else _UNSEEN
    for start in range(geometry.points):
        if owners[start] != _UNSEEN:
            if stones[start] != EMPTY:
                difference += 1 if stones[start] == BLACK else -1
            continue
        queue[0], filled, head, borders = start, 1, 0, 0
        owners[start] = EMPTY
        while head < filled:
            for k in range(4):
                neighbor = geometry.neighbors[queue[head], k]
                if stones[neighbor] != EMPTY:
                    borders |= 0 if stones[neighbor] == OFF_BOARD else stones[neighbor]
                elif owners[neighbor] == _UNSEEN:
                    owners[neighbor] = EMPTY
                    queue[filled] = neighbor
                    filled += 1
            head += 1
        if borders == BLACK or borders == WHITE:
            for k in range(filled):
                owners[queue[k]] = borders
            difference += filled if borders == BLACK else -filled
    return difference


# --- the object for people --------------------------------------------------------------------------------------------


class BoardState:
    """An immutable position with the game that led to it.

    >>> state = BoardState(Rules(board_size=9)).play_move(40)
    >>> state.to_play == WHITE, state.move_number, state.is_legal(40)
    (True, 1, False)
    """

    __slots__ = ("rules", "moves", "position_hashes", "_positions")

    def __init__(self, rules: Rules = Rules()):
        positions = empty_positions(rules.board_size, 1)
        self._fill(rules, positions, (), positions.hash.copy())

    def _fill(self, rules, positions, moves, position_hashes):
        for array in (*positions, position_hashes):
            array.setflags(write=False)
        for name, value in zip(self.__slots__, (rules, moves, position_hashes, positions)):
            object.__setattr__(self, name, value)

    def __setattr__(self, name, value):
        raise AttributeError("a BoardState does not change; play_move returns a new one")

    def __reduce__(self):
        return self._make, (self.rules, self._positions, self.moves, self.position_hashes)

    @classmethod
    def _make(cls, rules, positions, moves, position_hashes) -> BoardState:
        state = cls.__new__(cls)
        state._fill(rules, positions, moves, position_hashes)
        return state

    @classmethod
    def setup(cls, rules: Rules, black: Iterable[int] = (), white: Iterable[int] = (), to_play: int = BLACK):
        """The start of a game from stones already on the board."""
        positions = empty_positions(rules.board_size, 1)
        tables = geometry(rules.board_size)
        for color, points in ((BLACK, black), (WHITE, white)):
            for point in points:
                if not 0 <= point < rules.points:
                    raise IllegalMove(f"setup: {point} is not a point of a {rules.board_size}x{rules.board_size} board")
                if positions.stones[0, point] != EMPTY:
                    raise IllegalMove(f"setup: two stones at {to_gtp(point, rules.board_size)}")
                place_stone(positions, 0, point, color, tables)
        if positions.captures.any():
            raise IllegalMove("setup: a chain has no liberty")
        remember_stones(positions, 0, tables)
        positions.to_play[0] = _color(to_play)
        return cls._make(rules, positions, (), positions.hash.copy())

    @classmethod
    def from_ascii(cls, text: str, rules: Rules | None = None, to_play: int = BLACK) -> BoardState:
        """A drawn board: a row a line, `X` black, `O` white, `.` empty; blanks are ignored."""
        rows = ["".join(line.split()) for line in text.splitlines() if line.strip()]
        rules = rules or Rules(board_size=len(rows))
        if len(rows) != rules.board_size or any(len(row) != rules.board_size or set(row) - set("XO.") for row in rows):
            raise ValueError(f"expected {rules.board_size} rows of {rules.board_size} out of X, O and .")
        cells = "".join(rows)
        black, white = ([p for p, cell in enumerate(cells) if cell == stone] for stone in "XO")
        return cls.setup(rules, black, white, to_play)

    @property
    def size(self) -> int:
        return self.rules.board_size

    @property
    def board(self) -> np.ndarray:
        """Colours, uint8 [N, N], read-only."""
        return self._positions.stones[0, :-1].reshape(self.size, self.size)

    @property
    def to_play(self) -> int:
        return int(self._positions.to_play[0])

    @property
    def move_number(self) -> int:
        return int(self._positions.move_number[0])

    @property
    def last_move(self) -> int | None:
        return self.moves[-1] if self.moves else None

    @property
    def captures(self) -> dict:
        """Stones taken by each colour."""
        return {color: int(self._positions.captures[0, color]) for color in (BLACK, WHITE)}

    @property
    def hash(self) -> int:
        return int(self._positions.hash[0])

    @property
    def is_game_over(self) -> bool:
        return bool(is_over(self._positions, 0, self.rules.length_cap))

    def legal_moves(self) -> np.ndarray:
        """bool [N * N + 1]; nothing is legal once the game is over."""
        legal = np.zeros(self.rules.points + 1, bool)
        if not self.is_game_over:
            hashes = self.position_hashes
            legal_moves(self._positions, 0, geometry(self.size), self.rules.allow_suicide, hashes, len(hashes), legal)
        return legal

    def is_legal(self, move: int) -> bool:
        return self._complaint(move) is None

    def _complaint(self, move: int) -> str | None:
        """Why `move` cannot be played, or None."""
        if not 0 <= move <= self.rules.points:
            return f"{move} is not a point of a {self.size}x{self.size} board"
        if self.is_game_over:
            return "the game is over"
        if move == self.rules.points:
            return None
        hashes = self.position_hashes
        tables = geometry(self.size)
        status = move_status(self._positions, 0, move, tables, self.rules.allow_suicide, hashes, len(hashes))
        return None if status == LEGAL else f"{to_gtp(move, self.size)} is {_REASONS[status]}"

    def play_move(self, move: int, color: int | None = None) -> BoardState:
        """The position after `move`; `color`, where given, must be the one whose turn it is."""
        if color is not None and _color(color) != self.to_play:
            raise IllegalMove(f"it is {COLOR_NAMES[self.to_play]}'s turn, not {COLOR_NAMES[color]}'s")
        complaint = self._complaint(move)
        if complaint:
            raise IllegalMove(f"illegal move {self.move_number + 1} of {COLOR_NAMES[self.to_play]}: {complaint}")
        positions = self._copy_positions()
        play(positions, 0, move, geometry(self.size))
        hashes = np.append(self.position_hashes, positions.hash)
        return self._make(self.rules, positions, (*self.moves, int(move)), hashes)

    def pass_move(self) -> BoardState:
        return self.play_move(self.rules.points)

    def with_to_play(self, color: int) -> BoardState:
        """The same position with `color` to move."""
        positions = self._copy_positions()
        positions.to_play[0] = _color(color)
        return self._make(self.rules, positions, self.moves, self.position_hashes)

    def with_rules(self, rules: Rules) -> BoardState:
        """The same game so far, played on under other rules (another komi, a later end)."""
        if rules.board_size != self.size:
            raise ValueError(f"a game on {self.size}x{self.size} cannot go on on {rules.board_size}x{rules.board_size}")
        return self._make(rules, self._copy_positions(), self.moves, self.position_hashes)

    def resumed(self) -> BoardState:
        """The same position with no pass before it: after two passes, the game goes on."""
        positions = self._copy_positions()
        positions.passes[0] = 0
        return self._make(self.rules, positions, self.moves, self.position_hashes)

    def _copy_positions(self) -> Positions:
        return Positions(*(array.copy() for array in self._positions))

    def owners(self) -> np.ndarray:
        """Whose area each point is by Tromp-Taylor: uint8 [N, N], EMPTY where neutral."""
        return self._count()[1].reshape(self.size, self.size)

    def score(self) -> float:
        """Black's area less White's less komi."""
        return float(self._count()[0] - self.rules.komi)

    def _count(self) -> tuple:
        owners, queue = np.empty(self.rules.points, np.uint8), np.empty(self.rules.points, np.int16)
        return area(self._positions, 0, geometry(self.size), owners, queue), owners

    def winner(self) -> int:
        """BLACK, WHITE, or EMPTY for a draw, as the board stands."""
        score = self.score()
        return BLACK if score > 0 else WHITE if score < 0 else EMPTY

    def __repr__(self) -> str:
        letters = " ".join(COLUMNS[: self.size])
        lines = [f"   {letters}"]
        for row in range(self.size):
            line = f"{self.size - row:2d}"
            for column in range(self.size):
                point = row * self.size + column
                before = "(" if point == self.last_move else ")" if column and point - 1 == self.last_move else " "
                line += before + ".XO"[self.board[row, column]]
            closing = ")" if row * self.size + self.size - 1 == self.last_move else " "
            lines.append(f"{line}{closing}{self.size - row}")
        lines.append(f"   {letters}")
        if self.last_move is None:
            last = ""
        else:
            last = f" Last move: {to_gtp(self.last_move, self.size)}."
        captures = self.captures
        lines.append(
            f"Move {self.move_number}.{last} {COLOR_NAMES[self.to_play]} ({'.XO'[self.to_play]}) to play. "
            f"Captures: Black {captures[BLACK]}, White {captures[WHITE]}."
        )
        return "\n".join(lines)


def _color(color: int) -> int:
    if color not in (BLACK, WHITE):
        raise IllegalMove(f"a colour is BLACK ({BLACK}) or WHITE ({WHITE}), not {color!r}")
    return color
