"""Games as SGF files, for people and other programs.

In: a `GameRecord` (what was played, and what the search said about it). Out: SGF text, and back again. The grammar is
sgfmill's. Reading takes the main line of the first game in a file and checks it against the rules, so that a record
can always be replayed; what it does not know it leaves alone.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sgfmill import sgf_grammar

from alphago_zero import __version__
from alphago_zero.coordinates import from_row_column, from_sgf, to_row_column, to_sgf
from alphago_zero.errors import UserError
from alphago_zero.go import BLACK, EMPTY, WHITE, BoardState, Rules

_COLORS = {"B": BLACK, "W": WHITE}
_SETUP = {"AB": BLACK, "AW": WHITE, "AE": EMPTY}
_LETTERS = {BLACK: "B", WHITE: "W"}
_RULES_WITH_SUICIDE = ("nz", "new zealand", "tromp-taylor", "tromptaylor")
_MOST_BYTES = 1_000_000  # what is larger is no game: 400 moves with a long comment on each take half of that
_MOST_NODES = 2_000


class SgfError(UserError):
    """A file that is not a game of Go; the message names the file, the move and the reason."""


@dataclass(frozen=True)
class Note:
    """What is said about one position."""

    comment: str = ""
    black_win_rate: float | None = None  # Black's chance, 0 to 1: Sabaki draws it as a curve (SBKV)
    labels: tuple[tuple[int, str], ...] = ()  # (point, text) written on the board
    mark: str = ""  # of the move that led here: "DO" doubtful, "BM1" bad, "BM2" very bad, "TE1" good, "TE2" very good


@dataclass(frozen=True)
class Variation:
    """A line that was not played, and what is said about its first move."""

    moves: tuple[tuple[int, int], ...]  # (color, flat move), at least one
    note: Note = Note()


@dataclass(frozen=True)
class GameRecord:
    """A game: how it began, what was played, how it ended, and what is said about it."""

    rules: Rules = Rules()
    moves: tuple[tuple[int, int], ...] = ()  # (color, flat move)
    result: str = "?"  # "B+3.5", "W+R", "B+T", "W+F", "B+" (margin unknown), "0" (a draw), "Void" or "?"
    black_name: str = ""
    white_name: str = ""
    black_setup: tuple[int, ...] = ()  # handicap or setup stones (flat points)
    white_setup: tuple[int, ...] = ()
    to_play: int = BLACK  # before the first move
    notes: tuple[Note, ...] = ()  # none, or one for each of `states()`
    variations: tuple[tuple[Variation, ...], ...] = ()  # none, or for each move the lines that could replace it

    @property
    def winner(self) -> int | None:
        """BLACK, WHITE, EMPTY for a draw, None if the result is not known."""
        return EMPTY if self.result == "0" else _COLORS.get(self.result.partition("+")[0])

    def states(self) -> Iterator[BoardState]:
        """The position before the first move, and the one after each move."""
        state = BoardState.setup(self.rules, self.black_setup, self.white_setup, self.to_play)
        yield state
        for color, move in self.moves:
            state = state.with_to_play(color).play_move(move)
            yield state


def score_result(score: float) -> str:
    """
    >>> score_result(3.5), score_result(-12.0), score_result(0.0)
    ('B+3.5', 'W+12', '0')
    """
    return "0" if score == 0 else f"{'B' if score > 0 else 'W'}+{abs(score):g}"


def resignation_result(winner: int) -> str:
    """
    >>> resignation_result(WHITE)
    'W+R'
    """
    return f"{_LETTERS[winner]}+R"


# --- writing ----------------------------------------------------------------------------------------------------------


def write_sgf(record: GameRecord) -> str:
    """The record as SGF (FF[4], UTF-8)."""
    rules = record.rules
    root = {
        "FF": [b"4"],
        "GM": [b"1"],
        "CA": [b"UTF-8"],
        "AP": [_raw(f"alphago_zero:{__version__}")],
        "SZ": [_raw(str(rules.board_size))],
        "KM": [_raw(f"{rules.komi:.10g}")],
        "RU": [_raw("Tromp-Taylor" if rules.allow_suicide else "Chinese")],
        "PB": [_raw(record.black_name)],
        "PW": [_raw(record.white_name)],
        "RE": [_raw(record.result)],
    }
    for key, points in (("AB", record.black_setup), ("AW", record.white_setup)):
        if points:
            root[key] = [_raw(to_sgf(point, rules.board_size)) for point in points]
    first = record.moves[0][0] if record.moves else BLACK
    if record.black_setup or record.white_setup or WHITE in (record.to_play, first):
        root["PL"] = [_raw(_LETTERS[record.to_play])]
    game = tree = sgf_grammar.Coarse_game_tree()
    nodes = [root, *_line(record.moves, rules.board_size)]
    for node, note in zip(nodes, record.notes):
        _add_note(node, note, rules.board_size)
    for node, variations in itertools.zip_longest(nodes, ((), *record.variations), fillvalue=()):
        if variations:
            played = sgf_grammar.Coarse_game_tree()
            tree.children = [played, *(_variation_tree(variation, rules.board_size) for variation in variations)]
            tree = played
        tree.sequence.append(node)
    return sgf_grammar.serialise_game_tree(game).decode("utf-8")


def _variation_tree(variation: Variation, size: int) -> sgf_grammar.Coarse_game_tree:
    tree = sgf_grammar.Coarse_game_tree()
    tree.sequence = _line(variation.moves, size)
    _add_note(tree.sequence[0], variation.note, size)
    return tree


def _line(moves: tuple[tuple[int, int], ...], size: int) -> list[dict]:
    return [{_LETTERS[color]: [_raw(to_sgf(move, size))]} for color, move in moves]


def _add_note(node: dict, note: Note, size: int) -> None:
    if note.comment:
        node["C"] = [_raw(note.comment)]
    if note.black_win_rate is not None:
        node["SBKV"] = [_raw(f"{100 * note.black_win_rate:.2f}")]
    if note.labels:
        node["LB"] = [_raw(to_sgf(point, size)) + b":" + _raw(text) for point, text in note.labels]
    if note.mark:
        node[note.mark[:2]] = [_raw(note.mark[2:])]


def _raw(text: str) -> bytes:
    return sgf_grammar.escape_text(text.encode("utf-8", errors="replace"))


# --- reading ----------------------------------------------------------------------------------------------------------


def read_sgf(source: str | Path | bytes) -> GameRecord:
    """The main line of the first game in a file, or in bytes. Raises SgfError."""
    name = "SGF data" if isinstance(source, bytes) else str(source)
    data = source if isinstance(source, bytes) else _read_bytes(source)
    if len(data) > _MOST_BYTES:
        raise SgfError(f"{name}: larger than {_MOST_BYTES:,} bytes, that is not a game")
    try:
        record = _record(sgf_grammar.parse_sgf_game(data))
        for _ in record.states():
            pass  # every move is played, so each is legal
    except ValueError as error:
        raise SgfError(f"{name}: {error}") from None
    return record


def _read_bytes(path: str | Path) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise SgfError(f"cannot read {path}: {error.strerror}") from None


def _record(tree: sgf_grammar.Coarse_game_tree) -> GameRecord:
    root = tree.sequence[0]
    if _text(root, "GM", "1") != "1":
        raise ValueError("not a game of Go")
    encoding = _text(root, "CA", "utf-8")
    size = _size(_text(root, "SZ", "19"))
    setup: dict[int, int] = {}  # point: colour
    moves: list[tuple[int, int]] = []
    notes = [Note()]
    to_play = None
    for index, node in enumerate(sgf_grammar.main_sequence_iter(tree)):
        if index == _MOST_NODES:
            raise ValueError(f"more than {_MOST_NODES:,} moves, that is not a game")
        try:
            if not moves:
                setup.update(_setup(node, size))
                to_play = _COLORS.get(_text(node, "PL")[:1].upper(), to_play)
            elif node.keys() & _SETUP.keys():
                raise ValueError("stones are put down after the first move")
            move = _move(node, size)
        except ValueError as error:
            raise ValueError(f"move {len(moves) + 1}: {error}") from None
        if move is not None:
            moves.append(move)
            notes.append(Note())
        notes[-1] = _add_to_note(notes[-1], node, encoding)
    while len(moves) > 2 and all(move == size * size for _, move in moves[-3:]):
        del moves[-1], notes[-1]  # two passes ended the game; some servers write a third
    black, white = (tuple(p for p, c in sorted(setup.items()) if c == color) for color in (BLACK, WHITE))
    if to_play is None:
        to_play = moves[0][0] if moves else WHITE if black and not white else BLACK
    return GameRecord(
        rules=Rules(
            board_size=size,
            komi=_komi(_text(root, "KM")),
            allow_suicide=_text(root, "RU").lower() in _RULES_WITH_SUICIDE,
            max_moves=len(moves) if len(moves) > 2 * size * size else 0,
        ),
        moves=tuple(moves),
        result=_result(_text(root, "RE")),
        black_name=_text(root, "PB", encoding=encoding),
        white_name=_text(root, "PW", encoding=encoding),
        black_setup=black,
        white_setup=white,
        to_play=to_play,
        notes=tuple(notes) if any(note != Note() for note in notes) else (),
    )


def _text(node: dict, key: str, default: str = "", encoding: str = "utf-8") -> str:
    """The first value of a property as text. A wrong encoding spoils the text, not the game."""
    if key not in node:
        return default
    value = sgf_grammar.text_value(node[key][0]).strip()
    for name in (encoding, "utf-8"):
        try:
            return value.decode(name)
        except (LookupError, ValueError):
            pass
    return value.decode("latin-1")


def _size(text: str) -> int:
    columns, _, rows = text.partition(":")
    if not (columns.isdecimal() and len(columns) <= 2 and rows in ("", columns)):
        raise ValueError(f"SZ {text[:20]!r} is not the size of a square board")
    return int(columns)


def _komi(text: str) -> float:
    if not text:
        return Rules.komi
    try:
        return float(text.replace(",", "."))
    except ValueError:
        raise ValueError(f"KM {text[:20]!r} is not a komi") from None


def _result(text: str) -> str:
    """RE in one spelling; "?" for what cannot be understood."""
    if text.lower() in ("0", "draw", "jigo"):
        return "0"
    if text.lower() == "void":
        return "Void"
    match = re.match(r"([BW])\+(?:([RTF])|(\d{1,3}(?:\.\d{1,3})?))?", text.upper())
    if not match:
        return "?"
    winner, reason, margin = match.groups()
    return f"{winner}+{reason or (f'{float(margin):g}' if margin else '')}"


def _setup(node: dict, size: int) -> dict[int, int]:
    """Point: colour (EMPTY: taken away) for each point that a node sets."""
    values = ((color, value) for key, color in _SETUP.items() for value in set(node.get(key, ())))
    return {point: color for color, value in values for point in _points(value, size)}


def _points(value: bytes, size: int) -> list[int]:
    """A point `de`, or a rectangle `aa:cc`."""
    corners = [from_sgf(corner, size) for corner in value[:6].decode("latin-1").strip().split(":")]
    if len(corners) > 2 or size * size in corners:
        raise ValueError(f"{value[:20].decode('latin-1')!r} is not a point")
    (top, left), (bottom, right) = (to_row_column(corner, size) for corner in (corners[0], corners[-1]))
    return [from_row_column(r, c, size) for r in range(top, bottom + 1) for c in range(left, right + 1)]


def _move(node: dict, size: int) -> tuple[int, int] | None:
    """(color, flat move), if the node has a move."""
    moves = [(_COLORS[letter], value) for letter in _COLORS for value in node.get(letter, ())]
    if len(moves) > 1:
        raise ValueError("more than one move in a node")
    for color, value in moves:
        return color, from_sgf(value[:6].decode("latin-1").strip(), size)
    return None


def _add_to_note(note: Note, node: dict, encoding: str) -> Note:
    comment = "\n".join(text for text in (note.comment, _text(node, "C", encoding=encoding)) if text)
    try:
        win_rate = float(_text(node, "SBKV")) / 100
    except ValueError:
        win_rate = math.nan
    return Note(comment, win_rate if 0 <= win_rate <= 1 else note.black_win_rate)
