"""What the search thinks, as other programs want to hear it: Leela Zero's and KataGo's lines, GoGui's boards.

In: the root of a search. Out: text. All win rates are those of the player to move.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from alphago_zero.coordinates import from_gtp, to_gtp
from alphago_zero.go import BLACK, WHITE, BoardState, geometry
from alphago_zero.gtp import GtpError
from alphago_zero.mcts import MCTreeSearchNode
from alphago_zero.scoring import random_shares

COLORS = {"b": BLACK, "black": BLACK, "w": WHITE, "white": WHITE}
_INTERVAL = 1.0  # seconds, where a client does not say
_SHORTEST_INTERVAL = 0.01
_LONGEST_LINE = 20  # moves of a principal variation
_Z = 1.96  # standard deviations below the win rate, for its lower bound
_SWITCHES = ("ownership", "rootInfo")
# KataGo's further switches: such figures are never sent, which its clients are told to expect.
_IGNORED = ("pvVisits", "pvEdgeVisits", "movesOwnership", "ownershipStdev", "movesOwnershipStdev", "noResultValue")


@dataclass
class AnalysisRequest:
    """The arguments of `lz-analyze`, `kata-analyze` and their kin."""

    color: int | None = None  # None: whose turn it is
    interval: float = _INTERVAL  # seconds
    fewest: int = 0  # moves to tell of, where so many are legal
    most: int = 1000
    ownership: bool = False
    root: bool = False
    allowed: list[tuple[int, frozenset]] = field(default_factory=list)  # (colour, moves): no others are tried
    avoided: list[tuple[int, frozenset]] = field(default_factory=list)

    def mask(self, state: BoardState) -> np.ndarray | None:
        """bool [moves]: what may be tried for the player to move; None: everything."""
        allowed, avoided = ([m for c, m in part if c == state.to_play] for part in (self.allowed, self.avoided))
        if not allowed and not avoided:
            return None
        mask = np.full(state.rules.points + 1, not allowed)
        mask[list(frozenset().union(*allowed))] = True
        mask[list(frozenset().union(*avoided))] = False
        if not (mask & state.legal_moves()).any():
            raise GtpError("no legal move is left to analyse")
        return mask


def parse_request(words: list[str], size: int) -> AnalysisRequest:
    """`[color] [interval] [key value]...`; the interval counts hundredths of a second."""
    request, words = AnalysisRequest(), list(words)
    try:
        if words and words[0].lower() in COLORS:
            request.color = COLORS[words.pop(0).lower()]
        if words and words[0].replace(".", "", 1).isdecimal():
            request.interval = _hundredths(words.pop(0))
        while words:
            key = words.pop(0)
            if key in ("allow", "avoid"):
                color, moves, depth = words.pop(0), words.pop(0), words.pop(0)
                if int(depth) < 1:
                    raise ValueError
                restriction = COLORS[color.lower()], frozenset(from_gtp(move, size) for move in moves.split(","))
                (request.allowed if key == "allow" else request.avoided).append(restriction)
            elif key == "interval":
                request.interval = _hundredths(words.pop(0))
            elif key == "minmoves":
                request.fewest = int(words.pop(0))
            elif key == "maxmoves":
                request.most = max(int(words.pop(0)), 0)
            elif key in _SWITCHES or key in _IGNORED:
                value = {"true": True, "false": False}[words.pop(0).lower()]
                request.ownership = value if key == "ownership" else request.ownership
                request.root = value if key == "rootInfo" else request.root
            else:
                raise GtpError(f"syntax error: unknown key {key}")
    except (ValueError, KeyError, IndexError):
        expected = "[color] [hundredths of a second] [minmoves N] [maxmoves N] [allow|avoid color vertex,... depth]"
        raise GtpError(f"syntax error: expected {expected}") from None
    return request


def _hundredths(word: str) -> float:
    return max(min(float(word) / 100, 1e6), _SHORTEST_INTERVAL)


# --- Leela Zero and KataGo --------------------------------------------------------------------------------------------


def leela_line(root: MCTreeSearchNode, request: AnalysisRequest) -> str:
    """Whole numbers, in ten thousandths."""
    share = lambda x: round(10_000 * x)  # noqa: E731
    return " ".join(
        f"info move {m.name} visits {m.visits} winrate {share(m.win_rate)} prior {share(m.prior)} "
        f"lcb {share(m.bound)} order {m.order} pv {m.line}"
        for m in _moves(root, request)
    )


def kata_line(root: MCTreeSearchNode, request: AnalysisRequest, ownership: str = "") -> str:
    """Fractions. No scores are told, because the network does not estimate any; the utility is the value, -1 to 1."""
    parts = [
        f"info move {m.name} visits {m.visits} utility {2 * m.win_rate - 1:.6f} winrate {m.win_rate:.6f} "
        f"prior {m.prior:.6f} lcb {m.bound:.6f} utilityLcb {2 * m.bound - 1:.6f} order {m.order} pv {m.line}"
        for m in _moves(root, request)
    ]
    if request.root:
        win_rate = (1 + root.Q) / 2
        parts.append(f"rootInfo visits {root.N} utility {root.Q:.6f} winrate {win_rate:.6f}")
    if ownership:
        parts.append(ownership)
    return " ".join(parts)


def ownership_text(state: BoardState, rng: np.random.Generator) -> str:
    """Each point from -1 (the opponent's) to 1, row by row from the top: the mean of random games from here."""
    shares = random_shares(state._positions, 0, state.rules.allow_suicide, geometry(state.size), rng)
    values = shares[state.to_play] - shares[3 - state.to_play]
    return "ownership " + " ".join(f"{value:.3f}" for value in values)


@dataclass(frozen=True)
class _Move:
    name: str
    visits: int
    win_rate: float
    prior: float
    bound: float  # lower bound of the win rate
    order: int
    line: str


def _moves(root: MCTreeSearchNode, request: AnalysisRequest) -> list[_Move]:
    """The moves to tell of, best first: those that were visited, and as many others as are asked for."""
    ranked, size = root.ranked_moves(), root.state.size
    if len(ranked) < request.fewest:
        by_prior = np.argsort(-root.child_P, kind="stable")
        others = [int(move) for move in by_prior if root.legal[move] and root.child_N[move] == 0]
        ranked += others[: request.fewest - len(ranked)]
    moves = []
    for order, move in enumerate(ranked[: request.most]):
        visits = int(root.child_N[move])
        win_rate = (1 + (root.child_Q[move] if visits else root.Q)) / 2
        child = root.child(move) if visits else None
        line = [move, *(child.principal_variation(_LONGEST_LINE - 1) if child else ())]
        moves.append(
            _Move(
                name=to_gtp(move, size),
                visits=visits,
                win_rate=float(min(max(win_rate, 0.0), 1.0)),
                prior=float(root.child_P[move]),
                bound=_lower_bound(float(win_rate), visits),
                order=order,
                line=" ".join(to_gtp(m, size) for m in line),
            )
        )
    return moves


def _lower_bound(win_rate: float, visits: int) -> float:
    """Wilson's, as if every visit were a game won or lost."""
    if not visits:
        return 0.0
    z = _Z * _Z / visits
    spread = _Z * math.sqrt(max(win_rate * (1 - win_rate), 0.0) / visits + z / (4 * visits))
    return min(max((win_rate + z / 2 - spread) / (1 + z), 0.0), 1.0)


# --- GoGui ------------------------------------------------------------------------------------------------------------

GOGUI_COMMANDS = """\
cboard/Prior of the network/az-prior
cboard/Visits of the search/az-visits
dboard/Value for Black after each move/az-value
sboard/Win rate of each move in percent/az-win_rates
var/Principal variation/az-variation
hstring/Table of the search/az-describe
none/Forget the search tree/clear_cache"""


def heat_board(weights: np.ndarray, size: int) -> str:
    """A board of colours from pale yellow to red, for weights [points] of 0 and more; none where it is 0."""
    shares = weights / max(weights.max(), 1e-9)
    return _board(
        [f"#ff{round(240 * (1 - x)):02x}{round(160 * (1 - x)):02x}" if x > 0.005 else '""' for x in shares], size
    )


def value_board(root: MCTreeSearchNode) -> str:
    """A board of numbers: +1 where a move would win for Black, -1 where for White, 0 where nothing is known."""
    sign = 1 if root.state.to_play == BLACK else -1
    values = np.where(root.child_N > 0, sign * root.child_Q, 0)[:-1]
    return _board([f"{value:.3f}" for value in values], root.state.size)


def win_rate_board(root: MCTreeSearchNode) -> str:
    cells = [f"{50 * (1 + q):.0f}" if n else '""' for q, n in zip(root.child_Q[:-1], root.child_N[:-1])]
    return _board(cells, root.state.size)


def _board(cells: list[str], size: int) -> str:
    """Rows of cells; GoGui wants the first one on a line of its own."""
    return "\n" + "\n".join(" ".join(cells[row * size : (row + 1) * size]) for row in range(size))
