"""The compiled search against the reference, node for node, and what must be true of any search."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from fake_networks import EquivariantNetwork, FlatNetwork, HashNetwork, ScoreNetwork
from reference_search import ReferenceSearch

from alphago_zero import tree as kernels
from alphago_zero.config import SearchConfig
from alphago_zero.coordinates import from_gtp
from alphago_zero.go import BLACK, EMPTY, WHITE, BoardState, Rules
from alphago_zero.mcts import TreeSearch, visit_policy
from alphago_zero.symmetries import apply_to_policy, point_permutations


def random_state(rules: Rules, moves: int, rng, pass_rate: float = 0.02) -> BoardState:
    """A position after `moves` random moves, or the last one before the game would be over."""
    state = BoardState(rules)
    for _ in range(moves):
        legal = np.flatnonzero(state.legal_moves()[:-1])
        passes = not len(legal) or rng.random() < pass_rate
        after = state.play_move(rules.points if passes else int(rng.choice(legal)))
        if after.is_game_over:
            break
        state = after
    return state


def assert_same_tree(search: TreeSearch, index: int, node, seen: Counter) -> None:
    """Every node, edge by edge; `seen` counts what the trees contained."""
    trees = search.trees
    status = kernels.TERMINAL if node.state.is_game_over else kernels.WAITING if node.P is None else kernels.EVALUATED
    assert trees.status[index] == status
    assert not trees.V[index].any()
    assert trees.total[index] == node.N.sum()
    assert np.array_equal(trees.legal[index], node.legal)
    assert np.array_equal(trees.N[index], node.N)
    assert np.array_equal(trees.W[index], node.W)
    if node.P is not None:
        assert np.array_equal(trees.P[index], node.P)
    if node.value is not None:
        assert trees.value[index] == node.value
    assert trees.positions.hash[index] == node.state.hash
    seen["nodes"] += 1
    for move in np.flatnonzero(~node.legal[:-1] & (node.state.board.ravel() == EMPTY)):
        seen["superko"] += "superko" in (node.state._complaint(move) or "")
    for move, child in node.children.items():
        if child.state.is_game_over:  # needs no node
            assert trees.child[index, move] == kernels.NONE
            assert trees.W[index, move] == -trees.N[index, move] * child.value
            seen["ends"] += 1
            seen["ends by two passes"] += child.state.moves[-2:] == 2 * (child.state.rules.points,)
        else:
            assert_same_tree(search, trees.child[index, move], child, seen)
    assert np.count_nonzero(trees.child[index] != kernels.NONE) == sum(
        not child.state.is_game_over for child in node.children.values()
    )


def search_both(state, config, rng, network, *, searches=3, readouts=14, noise=False, leaves=1, no_pass_before=0):
    """Search, play, search on in the kept tree: both searches with the same random numbers. Counts what was seen."""
    seed, seen = int(rng.integers(2**32)), Counter()
    search = TreeSearch(state.rules, config, np.random.default_rng(seed), leaves=leaves, no_pass_before=no_pass_before)
    search.set_position(0, state)
    twin = np.random.default_rng(seed)
    reference = ReferenceSearch(state, config, twin, leaves=leaves, no_pass_before=no_pass_before)
    for _ in range(searches):
        number = int(rng.integers(1, 2 * readouts))
        search.begin(0, number, noise=noise)
        moves = state.rules.points + 1
        reference.begin(number, twin.standard_gamma(search.alpha, moves).astype(np.float32) if noise else None)
        search.run(network)
        reference.run(network)
        assert_same_tree(search, search.trees.root[0], reference.root, seen)
        seen["positions"] += 1
        legal = np.flatnonzero(reference.root.state.legal_moves())
        best = search.best_move(0)
        move = best if best in legal and rng.random() < 0.8 else int(rng.choice(legal)) if len(legal) else None
        if move is None or reference.root.state.is_game_over:
            break
        search.play(0, move)
        reference.play(move)
    return seen


PAPER = dict(first_visit="zero", first_visit_reduction=0.0)  # the default is another (docs/fidelity.md)

# name: (board sizes, positions of each, SearchConfig, Rules, what search_both is told)
GOLDEN = {
    "as in the paper": ((5, 7, 9), 60, {}, {}, {}),
    "noise at the root": ((5, 7, 9), 60, {}, {}, dict(noise=True)),
    "more noise, another alpha": ((5, 9), 30, dict(noise_fraction=0.5, noise_alpha=0.7), {}, dict(noise=True)),
    "8 leaves in flight": ((5, 7, 9), 60, {}, {}, dict(leaves=8, noise=True)),
    "32 leaves in flight": ((5, 9), 30, {}, {}, dict(leaves=32, readouts=50)),
    "first visit a loss": ((5, 7, 9), 30, dict(first_visit="loss"), {}, {}),
    "first visit the parent's value": ((5, 7, 9), 30, dict(first_visit="parent"), {}, dict(leaves=2)),
    "first visit a reduced value": ((5, 9), 30, dict(first_visit="parent", first_visit_reduction=0.3), {}, {}),
    "another c_puct": ((5, 9), 30, dict(c_puct=0.3), {}, {}),
    "pass is a move like others": ((5, 9), 30, dict(pass_answers_pass=False), {}, {}),
    "no pass early": ((5, 9), 30, {}, {}, dict(no_pass_before=12)),
    "suicide allowed": ((5, 7), 40, {}, dict(allow_suicide=True), {}),
    "draws": ((3, 5), 60, {}, dict(komi=0.0), dict(leaves=3)),
    "tiny boards, full of superko": ((2, 3), 80, {}, dict(komi=0.5), dict(readouts=24)),
    "tiny boards with suicide": ((2, 3), 60, {}, dict(komi=0.5, allow_suicide=True), dict(readouts=24, leaves=4)),
}


@pytest.mark.parametrize("case", GOLDEN)
def test_same_tree_as_the_reference(case):
    sizes, positions, config, rules, options = GOLDEN[case]
    rng = np.random.default_rng(sum(map(ord, case)))
    seen = Counter()
    for size in sizes:
        for _ in range(positions):
            game = Rules(board_size=size, **rules)
            state = random_state(game, int(rng.integers(0, 3 * size * size // 2)), rng)
            seen += search_both(state, SearchConfig(**{**PAPER, **config}), rng, HashNetwork(), **options)
    assert seen["positions"] > positions * len(sizes)
    if min(sizes) == 2:
        assert seen["superko"] > 100 and seen["ends by two passes"] > 100


@pytest.mark.parametrize("size", [5, 9])
def test_same_tree_as_the_reference_near_the_end_of_a_game(size):
    rng = np.random.default_rng(size)
    seen = Counter()
    for _ in range(40):
        rules = Rules(board_size=size, max_moves=int(rng.integers(4, 30)))
        state = random_state(rules, rules.max_moves - int(rng.integers(0, 4)), rng, pass_rate=0.2)
        readouts, leaves = int(rng.choice([10, 200])), int(rng.choice([1, 8]))
        seen += search_both(state, SearchConfig(**PAPER), rng, HashNetwork(), readouts=readouts, leaves=leaves)
    assert seen["ends"] > 200 and seen["ends by two passes"] > 20


def test_same_tree_as_the_reference_with_an_equivariant_network():
    rng = np.random.default_rng(1)
    for size in (5, 7, 9):
        for _ in range(20):
            state = random_state(Rules(board_size=size), int(rng.integers(0, 40)), rng)
            search_both(state, SearchConfig(**PAPER), rng, EquivariantNetwork(), readouts=25)


class Unturned:
    """Random numbers that leave the board as it is."""

    def integers(self, count, size):
        return np.zeros(size, np.int64)


def test_many_games_in_lockstep_are_the_same_as_each_alone():
    """Games of different lengths and readouts, some over, in one pool; new games take the place of old ones."""
    rng = np.random.default_rng(4)
    rules, games = Rules(board_size=5, max_moves=30), 24
    search = TreeSearch(rules, SearchConfig(), Unturned(), games=games, leaves=2)
    references = [None] * games
    for _ in range(12):
        for game in range(games):
            if references[game] is None or references[game].root.state.is_game_over or rng.random() < 0.1:
                state = random_state(rules, int(rng.integers(0, 30)), rng)
                search.set_position(game, state)
                references[game] = ReferenceSearch(state, search.config, Unturned(), leaves=2)
        readouts = rng.integers(0, 40, size=games)
        search.begin_many(np.arange(games), readouts, np.zeros(games, bool))
        search.run(HashNetwork())
        for game, reference in enumerate(references):
            reference.begin(readouts[game])
            reference.run(HashNetwork())
            assert_same_tree(search, search.trees.root[game], reference.root, Counter())
            if not reference.root.state.is_game_over:
                move = int(rng.choice(np.flatnonzero(reference.root.state.legal_moves())))
                search.play(game, move)
                reference.play(move)
        assert_no_node_lost(search)


# --- what must be true of any search ---------------------------------------------------------------------------------


def reachable_nodes(search: TreeSearch) -> list:
    nodes = [int(root) for root in search.trees.root if root != kernels.NONE]
    for node in nodes:  # grows while it is read
        children = search.trees.child[node]
        nodes.extend(children[children != kernels.NONE].tolist())
    return nodes


def assert_no_node_lost(search: TreeSearch) -> None:
    """Every node of the pool is in one tree, or free."""
    free = search.trees.free[: search.trees.free_count[0]].tolist()
    assert sorted(reachable_nodes(search) + free) == list(range(len(search.trees.N)))


def searched(state: BoardState, network, readouts: int, *, leaves=1, noise=False, seed=0, **config) -> TreeSearch:
    search = TreeSearch(state.rules, SearchConfig(**config), np.random.default_rng(seed), leaves=leaves)
    search.set_position(0, state)
    search.begin(0, readouts, noise=noise)
    search.run(network)
    return search


@pytest.mark.parametrize("leaves", [1, 8, 32])
@pytest.mark.parametrize("moves", [0, 30, 60])
def test_counts_values_and_virtual_loss(leaves, moves):
    state = random_state(Rules(), moves, np.random.default_rng(moves))
    search = searched(state, HashNetwork(), 500, leaves=leaves, noise=True)
    root = search.root(0, state)
    assert root.N == 500
    assert not search.trees.V.any()

    def check(node):
        legal = node.state.legal_moves()
        if not node.is_terminal:
            np.testing.assert_array_equal(node.legal, legal)
            assert node.child_P.sum() == pytest.approx(1, abs=1e-5)
        assert not node.child_P[~legal].any() and not node.child_N[~legal].any()
        assert (np.abs(node.child_Q) <= 1).all()
        assert search.trees.total[node._index] == node.child_N.sum()
        for move, child in node.children():
            assert node.child_N[move] > 0
            if not child.is_terminal:
                assert child.child_N.sum() == node.child_N[move] - 1
            assert child.Q == pytest.approx(-node.child_Q[move], abs=1e-5)
            check(child)

    check(root)
    assert_no_node_lost(search)


def test_a_walk_in_flight_looks_lost_and_leaves_no_trace():
    """Between select and back up every leaf in flight stands in V; afterwards nothing does."""
    leaves = 8
    search = searched(BoardState(Rules()), HashNetwork(), 50, leaves=leaves)
    flights = []

    class Watch(HashNetwork):
        def evaluate(self, planes):
            root = search.trees.root[0]
            flights.append(search.trees.V[root].sum())
            assert len(planes) == flights[-1]
            assert search.trees.total[root] == search.trees.N[root].sum() + flights[-1]
            nodes = search.trees.leaf[: len(planes)].tolist()
            assert len(set(nodes)) == len(nodes), "a leaf is evaluated once"
            return super().evaluate(planes)

    search.begin(0, 100)
    search.run(Watch())
    assert max(flights) == leaves
    assert not search.trees.V.any()


def test_memory_is_flat_and_no_node_is_lost_over_many_games():
    rng = np.random.default_rng(2)
    rules = Rules(board_size=5)
    search = TreeSearch(rules, SearchConfig(), rng, games=4, leaves=3)
    states = [BoardState(rules)] * 4
    for game in range(4):
        search.set_position(game, states[game])
    sizes = []
    for _ in range(300):
        for game in range(4):
            if states[game].is_game_over:
                states[game] = BoardState(rules)
                search.set_position(game, states[game])
            search.begin(game, 30, noise=True)
        search.run(HashNetwork())
        for game in range(4):
            pi = search.policy(game)
            move = int(rng.choice(len(pi), p=pi / pi.sum())) if not states[game].is_game_over else None
            if move is not None:
                states[game] = states[game].play_move(move)
                search.play(game, move)
        assert_no_node_lost(search)
        sizes.append(len(search.trees.N))
    assert sizes[-1] == sizes[100]


def test_walks_that_end_at_once_never_exhaust_the_pool():
    """One move before the cap every simulation but the first ends a game, and all are done in one step."""
    rules = Rules(max_moves=20, komi=-1000)  # White, to play, loses whatever is tried, and so tries everything
    states = [random_state(rules, 19, np.random.default_rng(seed), pass_rate=0) for seed in range(16)]
    search = TreeSearch(rules, SearchConfig(), np.random.default_rng(0), games=16)
    for game, state in enumerate(states):
        search.set_position(game, state)
        search.begin(game, 2000)
    search.run(FlatNetwork())
    for game, state in enumerate(states):
        assert search.visits(game).sum() == 1999
        assert (search.visits(game)[state.legal_moves()] > 0).all()
    assert_no_node_lost(search)


@pytest.mark.parametrize("symmetry", range(8))
def test_a_turned_position_is_searched_the_same_way(symmetry):
    rng = np.random.default_rng(6)
    for size in (5, 9):
        rules = Rules(board_size=size)
        state = random_state(rules, 25, rng)
        turned = BoardState(rules)
        inverse = np.argsort(point_permutations(size)[symmetry])
        for move in state.moves:
            turned = turned.play_move(int(inverse[move]))
        N = searched(state, EquivariantNetwork(), 200, seed=1).visits(0)
        turned_N = searched(turned, EquivariantNetwork(), 200, seed=2).visits(0)
        np.testing.assert_array_equal(turned_N, apply_to_policy(N, symmetry))


def test_on_the_empty_board_moves_that_mirror_each_other_are_visited_alike():
    state = BoardState(Rules())
    N = searched(state, FlatNetwork(), 1 + 82 * 5, pass_answers_pass=False, first_visit="zero").visits(0)
    turned = [apply_to_policy(N, symmetry) for symmetry in range(8)]
    assert np.ptp(turned, axis=0).max() <= 1


def test_the_network_sees_every_symmetry_and_priors_are_turned_back():
    """A network that always prefers the third point of what it sees: under 8 symmetries these are 8 points."""

    class PrefersOnePoint(FlatNetwork):
        def evaluate(self, planes):
            p, v = super().evaluate(planes)
            p[:] = 0
            p[:, 2] = 1
            return p, v

    state = BoardState(Rules())
    search = TreeSearch(state.rules, SearchConfig(), np.random.default_rng(0))
    preferred = set()
    for _ in range(200):
        search.set_position(0, state)
        search.begin(0, 1)
        search.run(PrefersOnePoint())
        preferred.add(int(search.trees.P[search.trees.root[0]].argmax()))
    assert preferred == {from_gtp(text, 9) for text in ("C9", "G9", "A7", "A3", "C1", "G1", "J7", "J3")}


# --- noise -----------------------------------------------------------------------------------------------------------


def test_noise_is_a_mixture_over_legal_moves():
    state = random_state(Rules(), 40, np.random.default_rng(3))
    legal = state.legal_moves()
    plain = searched(state, EquivariantNetwork(), 1).root(0, state).child_P
    mean = np.zeros(82)
    for seed in range(300):
        search = searched(state, EquivariantNetwork(), 2, noise=True, seed=seed)
        P = search.root(0, state).child_P
        assert not P[~legal].any()
        assert P.sum() == pytest.approx(1, abs=1e-5)
        eta = (P - 0.75 * plain) / 0.25
        assert eta.min() > -1e-5 and eta.sum() == pytest.approx(1, abs=1e-4)
        mean += eta / 300
    n = legal.sum()
    # eta ~ Dirichlet(alpha) over n moves: mean 1/n, variance (n - 1) / (n^2 (n alpha + 1)).
    deviation = np.sqrt((n - 1) / (n**2 * (n * 0.03 * 361 / 81 + 1)) / 300)
    assert (np.abs(mean[legal] - 1 / n) < 5 * deviation).all()


def test_noise_is_added_once_whatever_was_searched_before():
    """A second search at the same root has noise of its own, not noise upon noise; a search without has none."""
    state = BoardState(Rules())
    search = searched(state, EquivariantNetwork(), 10)
    root = search.root(0, state)
    plain = root.child_P.copy()
    for _ in range(3):
        search.begin(0, 10, noise=True)
        search.run(EquivariantNetwork())
        assert (root.child_P >= 0.75 * plain - 1e-6).all()
        assert not np.array_equal(root.child_P, plain)
    search.begin(0, 10)
    search.run(EquivariantNetwork())
    np.testing.assert_array_equal(root.child_P, plain)


def test_alpha_scales_with_the_area():
    rng = np.random.default_rng(0)
    assert TreeSearch(Rules(board_size=19), SearchConfig(), rng).alpha == pytest.approx(0.03)
    assert TreeSearch(Rules(board_size=9), SearchConfig(), rng).alpha == pytest.approx(0.1337, abs=1e-4)
    assert TreeSearch(Rules(board_size=9), SearchConfig(noise_alpha=0.5), rng).alpha == 0.5


# --- Go --------------------------------------------------------------------------------------------------------------


def test_a_capture_is_found():
    rules = Rules(board_size=7, komi=0.5)
    state = BoardState.from_ascii(
        """
        . . . . . . .
        . X X X X . .
        X O O O O . .
        . X X X X . .
        . . . . . . .
        . O O O O O .
        . . . . . . .
        """,
        rules,
    )
    search = searched(state, ScoreNetwork(rules), 200, leaves=4)
    assert search.best_move(0) == from_gtp("F5", 7)
    assert search.visits(0)[from_gtp("F5", 7)] > 3 * np.sort(search.visits(0))[-2]


WALL = """
    . X O . .
    . X O . .
    X X O O O
    X X X X X
    . X . X .
"""


def test_the_one_who_is_ahead_answers_a_pass_by_a_pass():
    state = BoardState.from_ascii(WALL, Rules(board_size=5, komi=3.5), to_play=WHITE).pass_move()
    assert state.score() > 0
    search = searched(state, FlatNetwork(), 60)
    assert search.best_move(0) == 25
    assert search.root(0, state).child_Q[25] == 1


def test_the_one_who_is_behind_does_not_pass():
    """Both ways: not as an answer to a pass, and not while the opponent could answer by one."""
    behind = BoardState.from_ascii(WALL, Rules(board_size=5, komi=3.5), to_play=BLACK).pass_move()
    for state in (behind, BoardState.from_ascii(WALL, Rules(board_size=5, komi=3.5), to_play=WHITE)):
        search = searched(state, FlatNetwork(), 60)
        assert search.visits(0)[25] <= 3
        assert search.root(0, state).child_Q[25] < 0


def test_a_won_endgame_is_won_against_random_play():
    rng = np.random.default_rng(0)
    rules = Rules(board_size=5, komi=3.5)
    state = BoardState.from_ascii(WALL, rules, to_play=BLACK)
    search = TreeSearch(rules, SearchConfig(), rng, leaves=4)
    search.set_position(0, state)
    while not state.is_game_over:
        if state.to_play == BLACK:
            search.begin(0, 150)
            search.run(ScoreNetwork(rules))
            move = search.best_move(0)
        else:
            move = int(rng.choice(np.flatnonzero(state.legal_moves())))
        state = state.play_move(move)
        search.play(0, move)
    assert state.winner() == BLACK


def test_a_draw_is_worth_nothing():
    rules = Rules(board_size=5, komi=5.0)
    board = """
        X X X O O
        X X X O O
        X . X O .
        X X X O O
        X X X O O
    """
    state = BoardState.from_ascii(board, rules, to_play=WHITE).pass_move()
    assert state.score() == 0 and state.winner() == 0
    root = searched(state, HashNetwork(), 50).root(0, state)
    assert root.child_N[25] > 0 and root.child_W[25] == 0


def test_superko_holds_inside_the_tree():
    """Black takes the ko; the tree knows that White may not take back at once, but may after an exchange."""
    state = BoardState.from_ascii(
        """
        . X O . .
        X O . O .
        . X O . .
        . . . . .
        . . . . .
        """
    )
    ko, point = from_gtp("C4", 5), from_gtp("B4", 5)
    search = TreeSearch(state.rules, SearchConfig(), np.random.default_rng(0))
    search.set_position(0, state)
    search.begin(0, 3000)
    search.run(FlatNetwork())
    taken = search.root(0, state).child(ko)
    assert not taken.legal[point] and taken.child_N[point] == 0
    assert taken.child_N.sum() > 30
    threat = next(node for move, node in taken.children() if move != 25)
    answer = next(node for move, node in threat.children() if move not in (25, point))
    assert answer.legal[point]


# --- the object for people -------------------------------------------------------------------------------------------


def test_search_probabilities():
    N, P = np.array([1, 4, 0, 4]), np.array([0.2, 0.3, 0.1, 0.4], np.float32)
    np.testing.assert_allclose(visit_policy(N, P, 1.0), N / 9, rtol=1e-6)
    np.testing.assert_allclose(visit_policy(N, P, 0.5), N**2 / 33, rtol=1e-6)
    assert visit_policy(N, P, 0.0).tolist() == [0, 0, 0, 1], "the better prior decides a tie"
    np.testing.assert_allclose(visit_policy(0 * N, P, 1.0), P, rtol=1e-6)
    assert visit_policy(np.array([999_999, 1]), P[:2], 0.01).tolist() == [1, 0], "no overflow"


def test_a_position_must_fit_the_rules_of_the_search():
    search = TreeSearch(Rules(board_size=9, max_moves=10), SearchConfig(), np.random.default_rng(0))
    for rules in (Rules(board_size=5), Rules(board_size=9), Rules(board_size=9, max_moves=10, komi=0.5)):
        with pytest.raises(ValueError, match="rules"):
            search.set_position(0, BoardState(rules))


def test_a_search_before_the_first_evaluation_has_nothing_to_say():
    state = BoardState(Rules(board_size=5))
    search = TreeSearch(state.rules, SearchConfig(), np.random.default_rng(0))
    search.set_position(0, state)
    root = search.root(0, state)
    assert root.N == 0 and root.Q == 0 and search.root_value(0) == 0
    assert root.is_waiting and not root.is_terminal and root.principal_variation() == []


def test_a_game_that_is_over_is_not_searched():
    state = BoardState(Rules(board_size=5, komi=-0.5)).pass_move().pass_move()
    search = searched(state, FlatNetwork(), 10)
    root = search.root(0, state)
    assert root.is_terminal and root.Q == 1 and not root.legal.any()
    assert not search.visits(0).any()


def test_a_node_describes_itself():
    state = BoardState(Rules())
    root = searched(state, HashNetwork(), 100).root(0, state)
    lines = root.describe(rows=5).splitlines()
    assert len(lines) == 3 + 5
    assert lines[0].startswith("value ") and lines[0].endswith("visits 100")
    best = root.ranked_moves()[0]
    assert root.principal_variation()[0] == best and root.child_N[best] == root.child_N.max()
    line = state
    for move in root.principal_variation():
        line = line.play_move(move)  # IllegalMove if the variation cannot be played
    with pytest.raises(ValueError, match="read-only"):
        root.child_N[0] = 1
