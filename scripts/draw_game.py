#!/usr/bin/env python
"""`python scripts/draw_game.py GAME.sgf PICTURE.svg`: a game as printed diagrams, with its win-rate curve.

In: a game that `controller.py analyze` has looked at. Out: a picture. Each board shows the stones that stood when its
first move was made, and its moves by number.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import argh
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from alphago_zero.coordinates import to_gtp  # noqa: E402
from alphago_zero.go import BLACK, EMPTY  # noqa: E402
from alphago_zero.sgf import GameRecord, read_sgf  # noqa: E402

_BOARDS = 3
_NAMED = 3  # moves that cost most and are named on the curve
_FILL = {BLACK: "#222222", 3 - BLACK: "#ffffff"}


def draw(game: str, picture: str) -> None:
    """Draw GAME."""
    from matplotlib.figure import Figure

    record = read_sgf(game)
    parts = np.array_split(np.arange(len(record.moves)), _BOARDS)
    figure = Figure(figsize=(3.1 * _BOARDS, 5.0), layout="constrained")
    figure.suptitle(f"Black: {record.black_name}   White: {record.white_name}   {record.result}", fontsize=10)
    axes = figure.subplot_mosaic([[*range(_BOARDS)], ["curve"] * _BOARDS], height_ratios=[1, 0.5])
    states = list(record.states())
    for k, moves in enumerate(parts):
        _draw_board(axes[k], record, states[moves[0]].board, moves)
    _draw_curve(axes["curve"], record)
    figure.savefig(picture, metadata={"Date": None})


def _draw_board(axes, record: GameRecord, stones: np.ndarray, moves: np.ndarray) -> None:
    size = record.rules.board_size
    axes.set_aspect("equal")
    axes.set_facecolor("#e3b566")
    axes.set(xlim=(-0.7, size - 0.3), ylim=(size - 0.3, -0.7))
    for line in range(size):
        axes.plot([0, size - 1], [line, line], color="0.2", lw=0.6, zorder=1)
        axes.plot([line, line], [0, size - 1], color="0.2", lw=0.6, zorder=1)
    axes.set_xticks(range(size), "ABCDEFGHJKLMNOPQRST"[:size], fontsize=6)
    axes.set_yticks(range(size), range(size, 0, -1), fontsize=6)
    axes.tick_params(length=0)
    for point in np.flatnonzero(np.ravel(stones) != EMPTY):
        _draw_stone(axes, divmod(int(point), size), int(np.ravel(stones)[point]), "")
    first, later = {}, []  # a point that is played twice keeps its first number; the others are told below
    for number in moves.tolist():
        color, move = record.moves[number]
        if move == record.rules.points or move in first:
            where = f" at {first[move] + 1}" if move in first else " pass"
            later.append(f"{number + 1}{where}")
            continue
        first[move] = number
        _draw_stone(axes, divmod(move, size), color, str(number + 1))
    axes.set_title(f"moves {moves[0] + 1} to {moves[-1] + 1}", fontsize=7)
    axes.set_xlabel(textwrap.fill(", ".join(later), 58), fontsize=6)


def _draw_stone(axes, place: tuple, color: int, text: str) -> None:
    from matplotlib.patches import Circle

    row, column = place
    axes.add_patch(Circle((column, row), 0.46, facecolor=_FILL[color], edgecolor="0.1", lw=0.6, zorder=2))
    axes.text(column, row, text, ha="center", va="center", fontsize=6, color=_FILL[3 - color], zorder=3)


def _draw_curve(axes, record: GameRecord) -> None:
    rates = np.array([np.nan if note.black_win_rate is None else note.black_win_rate for note in record.notes])
    axes.plot(100 * rates, lw=1.3, color="#c8501e")
    axes.axhline(50, color="0.6", lw=0.7)
    axes.set(xlim=(0, len(rates) - 1), ylim=(0, 100))
    axes.set_xlabel("move", fontsize=7)
    axes.set_ylabel("Black wins, %", fontsize=7)
    axes.tick_params(labelsize=6)
    signs = np.array([1 if color == BLACK else -1 for color, _ in record.moves])
    losses = np.nan_to_num(-signs * np.diff(rates))
    for number in np.argsort(-losses)[:_NAMED]:
        if losses[number] > 0:
            who = "Black" if signs[number] > 0 else "White"
            move = to_gtp(record.moves[number][1], record.rules.board_size)
            words = f"{who} {number + 1}, {move}: -{100 * losses[number]:.0f} %"
            high = 100 * rates[number + 1] > 50
            place = (number + 1, 100 * rates[number + 1])
            axes.annotate(words, place, (4, -9 if high else 6), textcoords="offset points", fontsize=6)
            axes.plot(*place, "o", ms=3, color="0.2")


if __name__ == "__main__":
    argh.dispatch_command(draw)
