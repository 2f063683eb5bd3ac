"""Gumbel search: the schedule of sequential halving, the improved policy, and what is kept between searches."""

from __future__ import annotations

import math

import numpy as np
import pytest
from fake_networks import FlatNetwork, HashNetwork, ScoreNetwork

from alphago_zero import tree as kernels
from alphago_zero.config import SearchConfig
from alphago_zero.coordinates import from_gtp
from alphago_zero.go import BoardState, Rules
from alphago_zero.gumbel import best_root_action, improved_policy, improved_policy_action, sequential_halving
from alphago_zero.mcts import TreeSearch

GUMBEL = SearchConfig(algorithm="gumbel")
VISIT, SCALE = GUMBEL.gumbel_visit, GUMBEL.gumbel_scale


def considered_visits(actions: int, simulations: int) -> list:
    """As in the source's library (mctx, `get_sequence_of_considered_visits`)."""
    if actions <= 1:
        return list(range(simulations))
    log2 = math.ceil(math.log2(actions))
    sequence, visits, considered = [], [0] * actions, actions
    while len(sequence) < simulations:
        for _ in range(max(1, int(simulations / (log2 * considered)))):
            sequence.extend(visits[:considered])
            for k in range(considered):
                visits[k] += 1
        considered = max(2, considered // 2)
    return sequence[:simulations]


def test_sequential_halving_is_that_of_the_source():
    for actions in (*range(1, 20), 82):
        for simulations in (*range(1, 70), 100, 200, 800):
            assert sequential_halving(actions, simulations).tolist() == considered_visits(actions, simulations)


def test_sequential_halving_by_hand():
    """16 simulations on 8 actions: 3 rounds; all 8 once, then the best 4, then the best 2 as long as there are any."""
    assert sequential_halving(8, 16).tolist() == [0] * 8 + [1] * 4 + [2, 2, 3, 3]
    assert sequential_halving(2, 6).tolist() == [0, 0, 1, 1, 2, 2]
    assert sequential_halving(1, 3).tolist() == [0, 1, 2]
    assert sequential_halving(16, 5).tolist() == [0] * 5


# --- formulas --------------------------------------------------------------------------------------------------------


def random_edges(rng, visited: float, moves: int = 26):
    """N, W, V, P, legal, value of a node."""
    legal = rng.random(moves) < 0.8
    legal[-1] = True
    N = (rng.integers(1, 12, moves) * (rng.random(moves) < visited) * legal).astype(np.int32)
    V = (rng.integers(0, 3, moves) * (rng.random(moves) < visited / 2) * legal).astype(np.int32)
    W = (rng.uniform(-1, 1, moves) * N).astype(np.float32)
    P = (rng.dirichlet(np.full(moves, 0.3)) * legal).astype(np.float32)
    return N, W, V, P / P.sum(), legal, np.float32(rng.uniform(-1, 1))


def direct(N, W, V, P, legal, value):
    """Completed q and improved policy in float64, straight from the source's equations 10, 11 and 33."""
    n = (N + V).astype(float)
    q = np.divide(W - V, n, out=np.zeros(len(n)), where=n > 0)
    seen = n > 0
    v_mix = float(value)
    if P[seen].sum() > 0:
        v_mix = (value + n.sum() * (P[seen] * q[seen]).sum() / P[seen].astype(float).sum()) / (1 + n.sum())
    completed = np.where(seen, q, v_mix)
    with np.errstate(divide="ignore"):
        logits = np.where(legal, np.log(P.astype(float)), -np.inf)
    sigma = (VISIT + N.max()) * SCALE * completed
    x = logits + sigma
    weights = np.exp(x - x.max())
    return completed, sigma, weights / weights.sum()


@pytest.mark.parametrize("visited", [0.0, 0.1, 0.5, 1.0])
def test_improved_policy(visited):
    rng = np.random.default_rng(7)
    for _ in range(200):
        edges = random_edges(rng, visited)
        pi = np.empty(26, np.float32)
        improved_policy(*edges, VISIT, SCALE, pi)
        assert pi.sum() == pytest.approx(1, abs=1e-5)
        assert not pi[~edges[4]].any()
        np.testing.assert_allclose(pi, direct(*edges)[2], atol=2e-5)


def test_without_visits_the_improved_policy_is_the_prior():
    edges = random_edges(np.random.default_rng(0), 0.0)
    pi = np.empty(26, np.float32)
    improved_policy(*edges, VISIT, SCALE, pi)
    np.testing.assert_allclose(pi, edges[3], rtol=1e-5)


def test_inside_the_tree_visits_follow_the_improved_policy():
    rng = np.random.default_rng(8)
    for _ in range(300):
        edges = random_edges(rng, 0.5)
        N, _, V, _, legal, _ = edges
        pi = direct(*edges)[2]
        score = np.where(legal, pi - (N + V) / (1 + (N + V).sum()), -np.inf)
        chosen = improved_policy_action(*edges, VISIT, SCALE, np.empty(26, np.float32))
        assert score[chosen] == pytest.approx(score.max(), abs=1e-5)


def test_at_the_root_the_best_of_those_considered_is_taken():
    rng = np.random.default_rng(9)
    for _ in range(300):
        edges = random_edges(rng, 0.5)
        N, _, V, P, legal, _ = edges
        noise = rng.gumbel(size=26).astype(np.float32)
        considered = int(rng.choice((N + V)[legal]))
        score = noise + np.log(np.maximum(P, 1e-20)) + direct(*edges)[1]
        score = np.where(legal & (N + V == considered), score, -np.inf)
        scores = np.empty(26, np.float32)
        chosen = best_root_action(*edges, noise, considered, VISIT, SCALE, scores)
        assert score[chosen] == pytest.approx(score.max(), abs=1e-3)


# --- searches --------------------------------------------------------------------------------------------------------


def searched(state, network, readouts, *, noise=False, leaves=1, seed=0, config=GUMBEL) -> TreeSearch:
    search = TreeSearch(state.rules, config, np.random.default_rng(seed), leaves=leaves)
    search.set_position(0, state)
    search.begin(0, readouts, noise=noise)
    search.run(network)
    return search


@pytest.mark.parametrize("readouts", [3, 16, 33, 64, 200])
@pytest.mark.parametrize("noise", [False, True])
def test_visits_at_the_root_are_those_of_sequential_halving(readouts, noise):
    """Among 82 moves 16 are considered, whatever their values; the first simulation evaluates the root."""
    search = searched(BoardState(Rules()), HashNetwork(), readouts, noise=noise)
    visits = [0] * 82
    for before in considered_visits(16, readouts - 1):
        visits[visits.index(before)] += 1
    assert sorted(search.visits(0)) == sorted(visits)


def test_no_more_moves_are_considered_than_are_legal():
    """Two points and the pass are left: 3 actions, two rounds."""
    state = BoardState.from_ascii("X . X\nX X X\nX X .", Rules(board_size=3))
    assert state.legal_moves().sum() == 3
    search = searched(state, HashNetwork(), 13)
    visits = [0] * 3
    for before in considered_visits(3, 12):
        visits[visits.index(before)] += 1
    assert sorted(search.visits(0)[state.legal_moves()]) == sorted(visits)


def test_the_survivor_is_played_and_the_target_is_the_improved_policy():
    state = BoardState(Rules())
    search = searched(state, HashNetwork(), 65, noise=True)
    root = search.root(0, state)
    edges = root.child_N, root.child_W, np.zeros(82, np.int32), root.child_P, root.legal, root.v
    _, sigma, pi = direct(*edges)
    np.testing.assert_allclose(search.policy(0), pi, atol=2e-5)
    assert search.policy(0).sum() == pytest.approx(1, abs=1e-5)
    score = search.trees.noise[0] + np.log(root.child_P) + sigma
    assert search.best_move(0) == np.where(root.child_N == root.child_N.max(), score, -np.inf).argmax()


def test_without_noise_the_search_is_deterministic_and_with_it_not():
    class SeesNoSymmetry(FlatNetwork):
        def evaluate(self, planes):
            p, v = super().evaluate(planes)
            return p, v + np.float32(0.01) * planes.sum(axis=(1, 2, 3)) % 1

    state = BoardState(Rules())
    visits = [searched(state, SeesNoSymmetry(), 40, seed=seed).visits(0).tolist() for seed in range(5)]
    assert all(other == visits[0] for other in visits)
    noisy = {tuple(searched(state, SeesNoSymmetry(), 40, seed=seed, noise=True).visits(0)) for seed in range(5)}
    assert len(noisy) == 5


def test_evaluations_below_the_move_played_are_used_again():
    state = BoardState(Rules())
    search = searched(state, HashNetwork(), 200)
    move = search.best_move(0)
    known = int(search.visits(0)[move])
    assert known > 20
    search.play(0, move)
    before = search.trees.counters.copy()
    search.begin(0, 100)
    search.run(HashNetwork())
    simulations, evaluations, reused = search.trees.counters - before
    trees = search.trees
    used = np.setdiff1d(np.arange(len(trees.N)), trees.free[: trees.free_count[0]])
    ended = trees.N[used][trees.child[used] == kernels.NONE].sum()  # where a game is over there is no node
    assert simulations == 100 and evaluations + reused + ended == 100
    assert 0 < reused < known
    assert search.visits(0).sum() == 100, "the root itself was known, and visits are counted anew"


def test_a_search_continued_at_the_same_root_counts_anew():
    state = BoardState(Rules())
    search = searched(state, HashNetwork(), 65)
    first = search.visits(0)
    before = search.trees.counters.copy()
    search.begin(0, 64)
    search.run(HashNetwork())
    assert search.visits(0).tolist() == first.tolist()
    assert (search.trees.counters - before)[kernels.EVALUATIONS] == 0


@pytest.mark.parametrize("leaves", [8, 32])
def test_leaves_in_flight_leave_no_trace(leaves):
    search = searched(BoardState(Rules()), HashNetwork(), 300, leaves=leaves, noise=True)
    assert not search.trees.V.any()
    assert search.visits(0).sum() == 299
    nodes = np.flatnonzero(search.trees.total)
    np.testing.assert_array_equal(search.trees.total[nodes], search.trees.N[nodes].sum(axis=1))


def test_a_capture_is_found_with_few_simulations():
    rules = Rules(board_size=5, komi=0.5)
    state = BoardState.from_ascii(
        """
        . X X X .
        X O O O .
        . X X X .
        . . . . .
        . O O O .
        """,
        rules,
    )
    config = SearchConfig(algorithm="gumbel", gumbel_actions=26)
    search = searched(state, ScoreNetwork(rules), 60, config=config)
    assert search.best_move(0) == search.policy(0).argmax() == from_gtp("E4", 5)
