"""Ratings: what is known about Elo, and which game tells most."""

import numpy as np
import pytest

from alphago_zero.ladder import most_telling_pair
from alphago_zero.ratings import expected_score, rate


def results(pairs, players):
    wins = np.zeros((players, players))
    for (i, j), (won, lost) in pairs.items():
        wins[i, j] += won
        wins[j, i] += lost
    return wins


def test_three_wins_in_four_are_191_elo():
    ratings = rate(results({(1, 0): (7500, 2500)}, 2))
    assert ratings.elo[0] == 0
    assert ratings.elo[1] == pytest.approx(400 * np.log10(3), abs=0.5)


def test_the_interval_is_that_of_the_binomial_distribution():
    ratings = rate(results({(1, 0): (500, 500)}, 2))
    assert ratings.margin[0] == 0
    assert ratings.margin[1] == pytest.approx(1.96 * 400 / np.log(10) * 2 / np.sqrt(1000), rel=0.01)


def test_known_ratings_are_found_again_within_their_intervals():
    rng = np.random.default_rng(0)
    truth = np.array([0, 150, 300, 320, 700.0])
    hits = []
    for _ in range(20):
        wins = np.zeros((5, 5))
        for i in range(5):
            for j in range(i):
                won = rng.binomial(100, expected_score(truth)[i, j])
                wins[i, j], wins[j, i] = won, 100 - won
        ratings = rate(wins)
        hits += list(np.abs(ratings.elo - truth)[1:] < ratings.margin[1:])
    assert 0.85 < np.mean(hits) <= 1


def test_the_estimate_explains_the_points():
    """At the maximum of the likelihood each player's expected points are those it made (one drawn game more)."""
    wins = results({(1, 0): (18, 2), (2, 1): (11, 9), (2, 0): (10, 0)}, 3)
    counted = wins + 0.25 * (1 - np.eye(3))
    expected = (counted + counted.T) * expected_score(rate(wins).elo)
    assert expected.sum(axis=1) == pytest.approx(counted.sum(axis=1), rel=1e-4)


def test_who_never_lost_has_a_rating():
    ratings = rate(results({(1, 0): (20, 0)}, 2))
    assert 400 < ratings.elo[1] < 2000 and np.isfinite(ratings.margin).all()


def test_a_newcomer_plays_first():
    wins = results({(1, 0): (50, 50), (2, 1): (50, 50)}, 4)
    assert 3 in most_telling_pair(wins)


def test_equals_tell_more_than_master_and_beginner():
    wins = results({(1, 0): (199, 1), (2, 1): (3, 3)}, 3)
    assert set(most_telling_pair(wins)) == {1, 2}
