"""`Rules`: what is being played. On its own, because it needs nothing: reading a configuration or the description of a
model must not load the compiled board.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rules:
    """What is being played. Also the `game` part of a configuration."""

    board_size: int = 9
    komi: float = 7.5
    allow_suicide: bool = False  # of more than one stone
    max_moves: int = 0  # a longer game is scored as it stands; 0: 2 * N * N

    def __post_init__(self):
        if not 2 <= self.board_size <= 19:
            raise ValueError(f"board_size must be between 2 and 19, not {self.board_size}")
        if not abs(self.komi) <= 1000:
            raise ValueError(f"komi must be between -1000 and 1000, not {self.komi}")
        if not 0 <= self.max_moves <= 30_000:  # int16 counters
            raise ValueError(f"max_moves must be between 0 and 30000, not {self.max_moves}")

    @property
    def points(self) -> int:
        return self.board_size**2

    @property
    def length_cap(self) -> int:
        return self.max_moves or 2 * self.points
