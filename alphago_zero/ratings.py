"""Ratings from results: Bradley-Terry, with 95 % intervals, and which game would tell most.

In: how often each player beat each other. Out: Elo for every player, one of them fixed at 0.
    P(i beats j) = 1 / (1 + 10^((elo_j - elo_i) / 400))
The estimate is choix's; each player has besides its games one drawn game, spread over all others, so that a player who
lost nothing has a rating, too. The intervals come from the curvature of the likelihood at the estimate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

ELO = 400 / math.log(10)  # Elo for one unit of log odds


@dataclass(frozen=True)
class Ratings:
    """Elo of each player, and how well it is known."""

    elo: np.ndarray  # [players]; that of the fixed player is 0
    covariance: np.ndarray  # [players, players] in Elo; 0 at the fixed player

    @property
    def margin(self) -> np.ndarray:
        """Half of the 95 % interval, [players]."""
        return 1.96 * np.sqrt(np.diag(self.covariance))

    def information(self) -> np.ndarray:
        """What one more game of i and j would tell, [players, players]: the gain in log det of the information.

        It is large where the difference of two ratings is not known well, and the game's end not certain.
        """
        variance = np.diag(self.covariance)
        unknown = (variance[:, None] + variance[None] - 2 * self.covariance) / ELO**2
        certain = expected_score(self.elo)
        return np.log1p(certain * (1 - certain) * unknown)


def expected_score(elo: np.ndarray) -> np.ndarray:
    """P(i beats j), [players, players]."""
    return 1 / (1 + np.exp((elo[None] - elo[:, None]) / ELO))


def rate(wins: np.ndarray, fixed: int = 0) -> Ratings:
    """`wins[i, j]`: games that i won against j; a draw is half a game for both."""
    import choix

    players = len(wins)
    if players == 1:
        return Ratings(np.zeros(1), np.zeros((1, 1)))
    prior = 0.5 / (players - 1) * (1 - np.eye(players))
    counted = wins + prior
    log_odds = choix.ilsr_pairwise_dense(counted, max_iter=100_000, tol=1e-9)
    elo = ELO * (log_odds - log_odds[fixed])
    certain = expected_score(elo)
    weights = (counted + counted.T) * certain * (1 - certain) / ELO**2
    information = np.diag(weights.sum(axis=1)) - weights
    others = np.delete(np.arange(players), fixed)
    covariance = np.zeros((players, players))
    covariance[np.ix_(others, others)] = np.linalg.inv(information[np.ix_(others, others)])
    return Ratings(elo, covariance)
