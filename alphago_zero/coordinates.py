"""The names of a point: one table, and the functions between its columns.

| system       | D5 on 9x9 | pass        | origin                                                           |
|--------------|-----------|-------------|------------------------------------------------------------------|
| flat         | 39        | N * N       | the upper left corner is 0; `row * N + column`; used everywhere  |
| (row, column)| (4, 3)    | none        | the upper left corner is (0, 0)                                  |
| GTP          | "D5"      | "pass"      | the lower left corner is A1; there is no column I                |
| SGF          | "de"      | "" or "tt"  | the upper left corner is "aa"; column first; "tt" up to 19x19    |
"""

from __future__ import annotations

COLUMNS = "ABCDEFGHJKLMNOPQRST"  # no I
_SGF_LETTERS = "abcdefghijklmnopqrs"


def to_row_column(move: int, size: int) -> tuple[int, int]:
    """
    >>> to_row_column(39, 9)
    (4, 3)
    """
    if not 0 <= move < size * size:
        raise ValueError(f"{move} is not a point of a {size}x{size} board")
    return divmod(int(move), size)


def from_row_column(row: int, column: int, size: int) -> int:
    """
    >>> from_row_column(4, 3, 9)
    39
    """
    if not (0 <= row < size and 0 <= column < size):
        raise ValueError(f"row {row}, column {column} is not on a {size}x{size} board")
    return row * size + column


def to_gtp(move: int, size: int) -> str:
    """
    >>> to_gtp(39, 9), to_gtp(81, 9)
    ('D5', 'pass')
    """
    if move == size * size:
        return "pass"
    row, column = to_row_column(move, size)
    return f"{COLUMNS[column]}{size - row}"


def from_gtp(text: str, size: int) -> int:
    """
    >>> from_gtp("d5", 9), from_gtp("PASS", 9)
    (39, 81)
    """
    name = text.strip().upper()
    if name == "PASS":
        return size * size
    column, digits = COLUMNS.find(name[:1]), name[1:]
    if column >= 0 and digits.isascii() and digits.isdigit() and len(digits) <= 2:
        row = size - int(digits)
        if 0 <= row < size and column < size:
            return from_row_column(row, column, size)
    raise ValueError(f"{text!r} is not a point of a {size}x{size} board")


def to_sgf(move: int, size: int) -> str:
    """
    >>> to_sgf(39, 9), to_sgf(81, 9)
    ('de', '')
    """
    if move == size * size:
        return ""
    row, column = to_row_column(move, size)
    return _SGF_LETTERS[column] + _SGF_LETTERS[row]


def from_sgf(text: str, size: int) -> int:
    """
    >>> from_sgf("de", 9), from_sgf("", 9), from_sgf("tt", 9)
    (39, 81, 81)
    """
    if text in ("", "tt"):
        return size * size
    if len(text) == 2:
        column, row = (_SGF_LETTERS.find(letter) for letter in text)
        if 0 <= row < size and 0 <= column < size:
            return from_row_column(row, column, size)
    raise ValueError(f"{text!r} is not a point of a {size}x{size} board")
