"""How long to think about a move, so that no clock ever runs out.

In: what the Go Text Protocol tells of a player's time. Out: seconds for the next move. Three kinds of clock:
absolute (main time only), Canadian (so many stones in each period) and Japanese byo-yomi (a period for every move; KGS
sends these). A controller that never says how much is left is not a problem: the clock runs here, too.
"""

from __future__ import annotations

from dataclasses import dataclass

LAG = 0.25  # seconds that a move may take outside of the search: the controller, a busy computer
_FEWEST_MOVES = 10  # main time always has to last for so many further moves


@dataclass(frozen=True)
class TimeSettings:
    """The clock of a game, in seconds."""

    main: float
    period: float = 0.0  # overtime; 0: none
    stones: int = 1  # to be played in each period
    periods: int = 0  # byo-yomi: a move longer than a period costs one of so many; 0: Canadian

    @property
    def share(self) -> float:
        """Overtime for one stone."""
        return self.period / self.stones


class Clock:
    """One player's clock."""

    def __init__(self, settings: TimeSettings):
        self.settings = settings
        self.main = settings.main
        self.period = settings.period  # left of the current period
        self.stones = settings.stones  # left to be played in it
        self.periods = settings.periods

    def set_left(self, seconds: float, count: int) -> None:
        """What a controller says: seconds of main time, or, with a count of stones (periods), of overtime."""
        seconds = max(seconds, 0.0)
        if not count:
            self.main = seconds
            return
        self.main, self.period = 0.0, seconds
        if self.settings.periods:
            self.periods = count
        else:
            self.stones = count

    def spend(self, seconds: float) -> None:
        """A move was played after so long."""
        overtime = seconds - self.main
        self.main = max(self.main - seconds, 0.0)
        if overtime < 0 or not self.settings.period:
            return
        self.period -= overtime
        if self.settings.periods:
            while self.period < 0 and self.periods > 1:
                self.period += self.settings.period
                self.periods -= 1
            if self.period >= 0:
                self.period = self.settings.period
            return
        self.stones -= 1
        if self.stones <= 0:
            self.period, self.stones = self.settings.period, self.settings.stones

    @property
    def has_run_out(self) -> bool:
        return self.period < 0 if self.settings.period else self.main <= 0

    def allot(self, moves_left: float) -> float:
        """Seconds for the next move, if the player has to play about so many more; 0: at once."""
        moves_left = max(moves_left, _FEWEST_MOVES)
        if self.main > 0:
            # Main time is spent evenly; where overtime waits, each move may have the share that it will have then.
            overtime = _careful(self.settings.share)
            return min(max(self.main / moves_left - LAG, 0.0) + overtime, _careful(self.main + self.settings.share))
        if self.settings.periods:
            return _careful(self.period)
        return _careful(self.period / max(self.stones, 1))


def _careful(seconds: float) -> float:
    """What can be used of a limit: less by the lag, or, if there is little, by 60 %."""
    return max(seconds - LAG, 0.4 * seconds) if seconds > 0 else 0.0


def parse_settings(words: list[str]) -> TimeSettings | None:
    """Arguments of `time_settings`: main time, period, stones. None: no limit. Raises ValueError."""
    if len(words) != 3 or int(words[2]) < 0:
        raise ValueError("expected main time, period and stones")
    main, period, stones = _seconds(words[0]), _seconds(words[1]), int(words[2])
    if period > 0 and stones == 0:
        return None  # so says the standard
    return TimeSettings(main, period, max(stones, 1)) if period > 0 else TimeSettings(main)


def parse_kgs_settings(words: list[str]) -> TimeSettings | None:
    """Arguments of `kgs-time_settings`: none, absolute, byoyomi or canadian with their numbers. Raises ValueError."""
    kind, numbers = "".join(words[:1]), words[1:]
    if kind == "none" and not numbers:
        return None
    if kind == "absolute" and len(numbers) == 1:
        return TimeSettings(_seconds(numbers[0]))
    if kind == "canadian" and len(numbers) == 3:
        return parse_settings(numbers)
    if kind == "byoyomi" and len(numbers) == 3:
        main, period, periods = _seconds(numbers[0]), _seconds(numbers[1]), int(numbers[2])
        return TimeSettings(main, period, periods=periods) if period > 0 and periods > 0 else TimeSettings(main)
    raise ValueError("expected none, absolute M, byoyomi M S PERIODS or canadian M S STONES")


def _seconds(word: str) -> float:
    seconds = float(word)
    if not 0 <= seconds < 1e7:
        raise ValueError(f"{word} is not a time")
    return seconds
