"""What a client may ask for, and how what it sends is read.

In: numbers and names out of messages that anybody may have written. Out: values within limits, or a `Refusal`, whose
text is shown to the person.
"""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass

from alphago_zero.errors import UserError


@dataclass(frozen=True)
class Limits:
    """Every bound of the page in one place."""

    readouts: int = 3200  # simulations of one position
    boards: int = 64  # connections that are open at once, in all browsers together
    models: int = 3  # in memory, besides those that boards hold
    games: int = 64  # opened for review and kept
    analyses: int = 2  # of whole games at once
    counts: int = 2  # of games that are over, or as if they were, at once
    judgements: int = 2  # of positions by models at once
    uploads: int = 2  # files that are read at once
    upload_bytes: int = 1_000_000
    message_bytes: int = 32_768
    messages_per_second: float = 20.0
    message_burst: int = 60
    idle_seconds: float = 1800.0  # without a message, then a board is closed


class Refusal(UserError):
    """Something that cannot be done; the message says why, to the person who asked."""


class Bucket:
    """So many messages a second, and a burst now and then."""

    def __init__(self, per_second: float, burst: int):
        self._rate, self._most = per_second, float(burst)
        self._left, self._time = self._most, time.monotonic()

    def take(self) -> bool:
        now = time.monotonic()
        self._left = min(self._most, self._left + (now - self._time) * self._rate)
        self._time = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


def parse_message(data: str | bytes) -> dict:
    """A JSON object with a `type`."""
    try:
        message = json.loads(data)
    except (ValueError, RecursionError):
        raise Refusal("That is not JSON.") from None
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise Refusal("A message is a JSON object with a type.")
    return message


def whole_number(message: dict, key: str, low: int, high: int, default: int | None = None) -> int:
    value = message.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise Refusal(f"{key} must be a whole number from {low} to {high}.")
    return value


def number(message: dict, key: str, low: float, high: float, default: float) -> float:
    value = message.get(key, default)
    # A whole number of a thousand digits has no float: compare before converting.
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise Refusal(f"{key} must be a number from {low:g} to {high:g}.")
    return float(value) if math.isfinite(value) else default


def choice(message: dict, key: str, allowed: tuple, default: str) -> str:
    value = message.get(key, default)
    if not isinstance(value, str) or value not in allowed:
        raise Refusal(f"{key} must be one of {', '.join(allowed)}.")
    return value


def move_list(message: dict, key: str, points: int, most: int = 1000) -> list:
    """Flat moves, the pass included."""
    moves = message.get(key, [])
    if not isinstance(moves, list) or len(moves) > most:
        raise Refusal(f"{key} must be a list of at most {most} moves.")
    if not all(type(move) is int and 0 <= move <= points for move in moves):
        raise Refusal(f"{key} must be whole numbers from 0 to {points}.")
    return moves
