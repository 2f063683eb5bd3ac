"""The commands of the Go Text Protocol that keep a game: board, moves, handicap, komi, rules, SGF.

In: the arguments of a command. Out: its answer, or GtpError with the standard's words ("illegal move", "cannot undo").
The game is a list of positions, so that moves of either colour may come in any order and be taken back.
"""

from __future__ import annotations

import dataclasses
import json
import os.path
from typing import Callable

import numpy as np

from alphago_zero.coordinates import from_gtp, from_row_column, to_gtp
from alphago_zero.files import atomic_write_text
from alphago_zero.go import BLACK, WHITE, BoardState, IllegalMove
from alphago_zero.gtp import NAME, GtpError
from alphago_zero.rules import Rules
from alphago_zero.sgf import GameRecord, SgfError, read_sgf, write_sgf

LONGEST_GAME = 5000  # moves; it is the client who decides when a game is over, so this is far beyond any
COLORS = {"b": BLACK, "black": BLACK, "w": WHITE, "white": WHITE}
COLOR_WORDS = {BLACK: "black", WHITE: "white"}
_RULES = {  # KataGo's words for rules, and what each can be here
    "hasButton": (False,),
    "ko": ("POSITIONAL",),
    "scoring": ("AREA",),
    "suicide": (False, True),
    "tax": ("NONE",),
    "whiteHandicapBonus": ("0", "N-1", "N"),  # what White gets for N handicap stones
}
_RULE_NAMES = {
    "tromp-taylor": {"suicide": True, "whiteHandicapBonus": "0"},
    "chinese-ogs": {"suicide": False, "whiteHandicapBonus": "N"},
    "chinese-kgs": {"suicide": False, "whiteHandicapBonus": "N"},
}


def command(name: str) -> Callable:
    """Makes a method the command `name`."""

    def mark(method: Callable) -> Callable:
        method.gtp_name = name
        return method

    return mark


def find_commands(thing: object) -> dict[str, Callable]:
    """Name and bound method of every command of `thing`, in the order in which they are written."""
    methods = {name: method for cls in type(thing).__mro__[::-1] for name, method in vars(cls).items()}
    return {m.gtp_name: getattr(thing, name) for name, m in methods.items() if hasattr(m, "gtp_name")}


class Game:
    """A game under the rules of a model, which decide the size of the board."""

    def __init__(self, rules: Rules):
        self.komi, self.suicide, self.bonus = rules.komi, rules.allow_suicide, "0"
        self._rules = dataclasses.replace(rules, max_moves=LONGEST_GAME)
        self.commands = find_commands(self)
        self.new_game()

    def new_game(self, state: BoardState | None = None, handicap: int = 0) -> None:
        """Begin at `state`, by default an empty board. Black has `handicap` stones there."""
        self.handicap = handicap
        start = state or BoardState(self._rules)
        self.setup = {color: np.flatnonzero(start.board == color).tolist() for color in (BLACK, WHITE)}
        self.states = [start]  # the position before the first move, and that after each
        self.moves: list[tuple[int, int]] = []  # (color, move)
        self.change_rules()

    def change_rules(self) -> None:
        """Let komi, suicide and handicap bonus of now hold for the whole game."""
        bonus = {"0": 0, "N-1": self.handicap - 1, "N": self.handicap}[self.bonus] if self.handicap else 0
        self._rules = dataclasses.replace(self._rules, komi=self.komi + bonus, allow_suicide=self.suicide)
        if self.state.rules != self._rules:
            self.states = [state.with_rules(self._rules) for state in self.states]

    @property
    def state(self) -> BoardState:
        return self.states[-1]

    @property
    def size(self) -> int:
        return self._rules.board_size

    def state_for(self, color: int) -> BoardState:
        """The position with `color` to move, whoever moved last; two passes do not end a game here."""
        state = self.state
        if state.to_play != color:
            state = state.with_to_play(color)
        return state.resumed() if state.is_game_over and len(self.moves) < LONGEST_GAME else state

    def add_move(self, color: int, move: int) -> None:
        """Play a move of either colour. Raises IllegalMove."""
        self.states.append(self.state_for(color).play_move(move))
        self.moves.append((color, move))

    def parse_color(self, words: list[str]) -> int:
        if not words or words[0].lower() not in COLORS:
            raise GtpError("syntax error: expected a colour, black or white")
        return COLORS[words[0].lower()]

    def parse_vertex(self, word: str) -> int:
        try:
            return from_gtp(word, self.size)
        except ValueError as error:
            raise GtpError(f"invalid coordinate: {error}") from None

    def vertices(self, points) -> str:
        return " ".join(to_gtp(point, self.size) for point in points)

    # --- board and moves ----------------------------------------------------------------------------------------------

    @command("boardsize")
    def _boardsize(self, words: list[str]) -> str:
        if parse_number(words, 0, int) != self.size:
            raise GtpError(f"unacceptable size: this model plays on {self.size}x{self.size}")
        self.new_game()
        return ""

    @command("query_boardsize")
    def _query_boardsize(self, words: list[str]) -> str:
        return str(self.size)

    @command("clear_board")
    def _clear_board(self, words: list[str]) -> str:
        self.new_game()
        return ""

    @command("komi")
    def _set_komi(self, words: list[str]) -> str:
        komi = parse_number(words, 0, float)
        if not abs(komi) <= 500:
            raise GtpError("komi must be between -500 and 500")
        self.komi = komi
        self.change_rules()
        return ""

    @command("get_komi")
    def _get_komi(self, words: list[str]) -> str:
        return f"{self.komi:g}"

    @command("play")
    def _play(self, words: list[str]) -> str:
        color = self.parse_color(words)
        if len(words) < 2:
            raise GtpError("syntax error: expected a colour and a vertex")
        self._play_or_fail(color, self.parse_vertex(words[1]))
        return ""

    def _play_or_fail(self, color: int, move: int) -> None:
        try:
            self.add_move(color, move)
        except IllegalMove as error:
            raise GtpError(f"illegal move: {str(error).partition(': ')[2]}") from None

    @command("gogui-play_sequence")
    def _play_sequence(self, words: list[str]) -> str:
        if len(words) % 2:
            raise GtpError("syntax error: expected colours and vertices")
        moves = [(self.parse_color([c]), self.parse_vertex(vertex)) for c, vertex in zip(words[::2], words[1::2])]
        before = len(self.moves)
        try:
            for color, move in moves:
                self._play_or_fail(color, move)
        except GtpError:
            self._take_back(len(self.moves) - before)
            raise
        return ""

    @command("undo")
    def _undo(self, words: list[str]) -> str:
        return self._undo_many(["1"])

    @command("gg-undo")
    def _undo_many(self, words: list[str]) -> str:
        count = parse_number(words, 0, int) if words else 1
        if not 0 <= count <= len(self.moves):
            raise GtpError("cannot undo")
        self._take_back(count)
        return ""

    def _take_back(self, count: int) -> None:
        if count:
            del self.states[-count:], self.moves[-count:]

    @command("showboard")
    def _showboard(self, words: list[str]) -> str:
        return f"\n{self.state}"

    @command("is_legal")
    def _is_legal(self, words: list[str]) -> str:
        color = self.parse_color(words)
        if len(words) < 2:
            raise GtpError("syntax error: expected a colour and a vertex")
        return str(int(self.state_for(color).is_legal(self.parse_vertex(words[1]))))

    @command("all_legal")
    def _all_legal(self, words: list[str]) -> str:
        return self.vertices(np.flatnonzero(self.state_for(self.parse_color(words)).legal_moves()[:-1]))

    @command("list_stones")
    def _list_stones(self, words: list[str]) -> str:
        return self.vertices(np.flatnonzero(self.state.board == self.parse_color(words)))

    @command("captures")
    def _captures(self, words: list[str]) -> str:
        return str(self.state.captures[self.parse_color(words)])

    # --- handicap -----------------------------------------------------------------------------------------------------

    @command("fixed_handicap")
    def _fixed_handicap(self, words: list[str]) -> str:
        self._refuse_stones()
        points = fixed_handicap(self.size, parse_number(words, 0, int))
        if points is None:
            raise GtpError("invalid handicap")
        return self.place_handicap(points)

    @command("set_free_handicap")
    def _set_free_handicap(self, words: list[str]) -> str:
        self._refuse_stones()
        points = []
        for word in words:
            try:
                points.append(from_gtp(word, self.size))
            except ValueError:
                raise GtpError(f"bad vertex list: {word}") from None
        if len(points) < 2 or len(set(points)) < len(points) or self._rules.points in points:
            raise GtpError("bad vertex list: expected two or more different vertices")
        try:
            self.place_handicap(points)
        except IllegalMove as error:
            raise GtpError(f"bad vertex list: {error}") from None
        return ""

    def _refuse_stones(self) -> None:
        if self.moves or self.state.board.any():
            raise GtpError("board not empty")

    def place_handicap(self, points: list[int]) -> str:
        """Begin a game with black stones, White to move."""
        self.new_game(BoardState.setup(self._rules, points, (), WHITE), handicap=len(points))
        return self.vertices(points)

    # --- rules --------------------------------------------------------------------------------------------------------

    @command("kata-get-rules")
    def _get_rules(self, words: list[str]) -> str:
        rules = {key: possible[0] for key, possible in _RULES.items()}
        return json.dumps({**rules, "suicide": self.suicide, "whiteHandicapBonus": self.bonus})

    @command("kata-set-rules")
    def _set_rules(self, words: list[str]) -> str:
        text = " ".join(words)
        wanted = _RULE_NAMES.get(text.lower())
        if wanted is None:
            wanted = self._parse_rules(text)
        self.suicide = wanted.get("suicide", self.suicide)
        self.bonus = wanted.get("whiteHandicapBonus", self.bonus)
        self.change_rules()
        return ""

    def _parse_rules(self, text: str) -> dict:
        try:
            wanted = json.loads(text)
        except (ValueError, RecursionError):
            wanted = None
        if not isinstance(wanted, dict):
            raise GtpError(f"unknown rules: expected {', '.join(_RULE_NAMES)} or what kata-get-rules answers")
        for key, value in wanted.items():
            if key not in _RULES:
                raise GtpError(f"unknown rule {key}")
            if not any(value == possible and type(value) is type(possible) for possible in _RULES[key]):
                raise GtpError(f"rule {key} can only be {' or '.join(map(json.dumps, _RULES[key]))} here")
        return wanted

    # --- SGF ----------------------------------------------------------------------------------------------------------

    @command("loadsgf")
    def _loadsgf(self, words: list[str]) -> str:
        if not words:
            raise GtpError("syntax error: expected a file name")
        before = None
        if len(words) > 1 and words[-1].isdecimal():
            *words, before = words
        try:
            record = read_sgf(file_name(words))
            if record.rules.board_size != self.size:
                raise SgfError(f"the game is on {record.rules.board_size}x{record.rules.board_size}")
            self._replay(record, len(record.moves) if before is None else max(int(before) - 1, 0))
        except (SgfError, IllegalMove, ValueError) as error:
            raise GtpError(f"cannot load file: {error}") from None
        return ""

    def _replay(self, record: GameRecord, count: int) -> None:
        """Take over a game up to its first `count` moves, all of which `read_sgf` has played."""
        rules = dataclasses.replace(record.rules, max_moves=LONGEST_GAME)
        start = BoardState.setup(rules, record.black_setup, record.white_setup, record.to_play)
        handicap = len(record.black_setup) if record.to_play == WHITE and not record.white_setup else 0
        self.komi, self.suicide = rules.komi, rules.allow_suicide
        self.new_game(start, handicap)
        for color, move in record.moves[:count]:
            self.add_move(color, move)

    @command("printsgf")
    def _printsgf(self, words: list[str]) -> str:
        first = self.states[0]
        record = GameRecord(
            rules=dataclasses.replace(self._rules, komi=self.komi),
            moves=tuple(self.moves),
            black_name=NAME,
            white_name=NAME,
            black_setup=tuple(self.setup[BLACK]),
            white_setup=tuple(self.setup[WHITE]),
            to_play=first.to_play,
        )
        text = write_sgf(record)
        if not words:
            return text.strip()
        name = file_name(words)
        try:
            atomic_write_text(name, text)
        except (OSError, ValueError) as error:
            raise GtpError(f"cannot save file: {name}: {getattr(error, 'strerror', None) or error}") from None
        return ""


def parse_number(words: list[str], index: int, kind: type):
    """Argument number `index` as an int or a float."""
    try:
        return kind(words[index])
    except (IndexError, ValueError):
        expected = "a whole number" if kind is int else "a number"
        raise GtpError(f"syntax error: expected {expected}") from None


def file_name(words: list[str]) -> str:
    """All arguments together. A pipe or a device is refused: to read it may never end, to save would replace it."""
    name = " ".join(words).strip('"')
    if os.path.exists(name) and not os.path.isfile(name):
        raise GtpError(f"not a file: {name}")
    return name


def fixed_handicap(size: int, count: int) -> list[int] | None:
    """The standard's points for so many stones; None where it has none."""
    odd = size % 2 == 1
    most = 0 if size < 7 else 4 if size == 7 or not odd else 9
    if not 2 <= count <= most:
        return None
    near = 3 if size > 11 else 2
    far, middle = size - 1 - near, size // 2
    at = lambda column, line: from_row_column(size - 1 - line, column, size)  # noqa: E731
    corners = [at(near, near), at(far, far), at(near, far), at(far, near)]
    sides = [at(near, middle), at(far, middle), at(middle, near), at(middle, far)]
    points = corners[:count] + sides[: (count - 4) // 2 * 2 if count > 5 else 0]
    return points + [at(middle, middle)] if count in (5, 7, 9) else points
