"""What the network thinks of a game: win rates, better moves, mistakes.

In: records of games, and an evaluator. Out: a `PositionReport` for every position, an annotated record, a picture.
Positions are searched side by side, each with its own tree, so that the network's batch is full: a game of 60 moves is
one batch, several games share it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import numpy as np

from alphago_zero.config import Config
from alphago_zero.coordinates import to_gtp
from alphago_zero.files import atomic_path, atomic_write_text
from alphago_zero.go import BLACK, EMPTY, BoardState
from alphago_zero.mcts import TreeSearch
from alphago_zero.model import load_model_info
from alphago_zero.sgf import GameRecord, Note, SgfError, Variation, read_sgf, write_sgf

DOUBTFUL, BAD, VERY_BAD = 0.05, 0.10, 0.25  # win rate that a move cost, from which it is marked
_LONGEST_LINE = 12  # moves of a principal variation
_MOST_CANDIDATES = 10
_BATCHES_AT_ONCE = 16  # of positions: so few files' results are lost if the rest is stopped, and batches are still full


@dataclass(frozen=True)
class Candidate:
    """A move at a position."""

    move: int
    visits: int
    win_rate: float  # for the player to move, 0 to 1
    prior: float
    line: tuple[int, ...]  # principal variation, beginning with the move


@dataclass(frozen=True)
class PositionReport:
    """What the search said about a position."""

    black_win_rate: float  # 0 to 1
    candidates: tuple[Candidate, ...]  # best first
    loss: float | None  # win rate that the move played here cost its player; None at the last position


def analyze_game(
    record: GameRecord,
    evaluator,
    config: Config,
    *,
    readouts: int,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[PositionReport]:
    """A report for each of `record.states()`. `on_progress` is told (simulations done, simulations in all)."""
    return analyze_games([record], evaluator, config, readouts=readouts, on_progress=on_progress)[0]


def analyze_games(
    records: Sequence[GameRecord],
    evaluator,
    config: Config,
    *,
    readouts: int,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[list[PositionReport]]:
    """Reports on several games, `evaluator.batch_size` positions at a time."""
    size = evaluator.model.rules.board_size
    for record in records:
        _check_board(record, size, evaluator.model.name)
    positions = [(game, state) for game, record in enumerate(records) for state in positions_to_search(record)]
    # A search has one set of rules. The last position of a game is not searched if the game is over there.
    by_rules: dict = {}
    for index, (_, state) in enumerate(positions):
        if not state.is_game_over:
            by_rules.setdefault(state.rules, []).append(index)
    total = readouts * sum(map(len, by_rules.values()))
    done = 0

    def progress(simulations: int) -> None:
        nonlocal done
        done += simulations
        if on_progress:
            on_progress(done, total)

    reports: list = [None] * len(positions)
    for rules, indices in by_rules.items():
        search = TreeSearch(
            rules,
            dataclasses.replace(config.search, algorithm=config.evaluation.algorithm),
            np.random.default_rng(config.seed),
            games=min(evaluator.batch_size, len(indices)),
        )
        for first in range(0, len(indices), search.games):
            chunk = indices[first : first + search.games]
            states = [positions[index][1] for index in chunk]
            for index, report in zip(chunk, _search_side_by_side(search, states, evaluator, readouts, progress)):
                reports[index] = report
    for index, (_, state) in enumerate(positions):
        if reports[index] is None:
            reports[index] = _final_report(state)
    split = iter(reports)
    return [_with_losses(record, [next(split) for _ in range(len(record.moves) + 1)]) for record in records]


def _check_board(record: GameRecord, size: int, model: str, where: str = "") -> None:
    board = record.rules.board_size
    if board != size:
        raise SgfError(f"{where}the game is on {board}x{board}, and {model} plays on {size}x{size}")


def positions_to_search(record: GameRecord) -> Iterable[BoardState]:
    """`record.states()`, each with the player to move who did move there."""
    for state, (color, _) in zip(record.states(), (*record.moves, (0, 0))):
        yield state.with_to_play(color) if color else state


def _search_side_by_side(search: TreeSearch, states: list, evaluator, readouts: int, progress) -> list[PositionReport]:
    for game, state in enumerate(states):
        search.set_position(game, state)
    count = len(states)
    search.begin_many(np.arange(count), np.full(count, readouts), np.zeros(count, bool))
    left = search.trees.remaining.sum()
    while left:
        search.step(evaluator)
        before, left = left, search.trees.remaining.sum()
        progress(int(before - left))
    return [_report(search, game, state) for game, state in enumerate(states)]


def _report(search: TreeSearch, game: int, state: BoardState) -> PositionReport:
    root = search.root(game, state)
    candidates = []
    for move in root.ranked_moves()[:_MOST_CANDIDATES]:
        child = root.child(move)
        line = (move, *(child.principal_variation(_LONGEST_LINE - 1) if child else ()))
        win_rate = (1 + float(root.child_Q[move])) / 2
        candidates.append(Candidate(move, int(root.child_N[move]), win_rate, float(root.child_P[move]), line))
    value = root.Q if state.to_play == BLACK else -root.Q
    return PositionReport((1 + value) / 2, tuple(candidates), None)


def _final_report(state: BoardState) -> PositionReport:
    winner = state.winner()
    return PositionReport(0.5 if winner == EMPTY else float(winner == BLACK), (), None)


def _with_losses(record: GameRecord, reports: list[PositionReport]) -> list[PositionReport]:
    """What each move cost: the best move's win rate less that of the position it led to; the best costs nothing."""
    finished = []
    for (color, move), report, following in zip(record.moves, reports, reports[1:]):
        best = report.candidates[0] if report.candidates else None
        after = following.black_win_rate if color == BLACK else 1 - following.black_win_rate
        loss = 0.0 if best is None or best.move == move else max(0.0, best.win_rate - after)
        finished.append(dataclasses.replace(report, loss=loss))
    return [*finished, reports[-1]]


def analyze_files(
    files: Sequence[str | Path], model: Path, config: Config, *, readouts: int, batch: int = 64
) -> Iterator[dict]:
    """Analyze SGF files together; beside each GAME.sgf come GAME.analyzed.sgf and GAME.analyzed.png.

    All files are read before the first is analyzed; a summary comes as soon as a file's results are written.
    """
    import tqdm

    from alphago_zero.inference import load_evaluator
    from alphago_zero.workers import available_cores

    games = [(Path(file), read_sgf(file)) for file in files]
    size = load_model_info(model).rules.board_size
    for file, record in games:
        _check_board(record, size, model.name, f"{file}: ")
    settings = config.inference
    positions = sum(len(record.moves) + 1 for _, record in games)
    batch = min(batch, positions)
    evaluator = load_evaluator(model, batch, available_cores(), settings.backend, settings.precision)
    with tqdm.tqdm(total=positions, desc="analyze", unit="position", disable=None) as progress:
        for group in _groups(games, _BATCHES_AT_ONCE * batch):
            records = [record for _, record in group]
            before, here = progress.n, sum(len(record.moves) + 1 for record in records)

            def on_progress(done: int, total: int, before=before, here=here) -> None:
                progress.update(before + here * done // total - progress.n)

            analyses = analyze_games(records, evaluator, config, readouts=readouts, on_progress=on_progress)
            progress.update(before + here - progress.n)
            for (file, record), reports in zip(group, analyses):
                yield _write_analysis(file, record, reports)


def _groups(games: list[tuple[Path, GameRecord]], positions: int) -> Iterator[list[tuple[Path, GameRecord]]]:
    """The games in their order, so many at a time that they have as many positions."""
    group: list = []
    for game in games:
        group.append(game)
        if sum(len(record.moves) + 1 for _, record in group) >= positions:
            yield group
            group = []
    if group:
        yield group


def _write_analysis(file: Path, record: GameRecord, reports: list[PositionReport]) -> dict:
    """Write what was found beside the game; a summary."""
    sgf, picture = file.with_suffix(".analyzed.sgf"), file.with_suffix(".analyzed.png")
    atomic_write_text(sgf, write_sgf(annotate(record, reports)))
    draw_win_rate(picture, record, reports)
    return {
        "file": str(file),
        "sgf": str(sgf),
        "picture": str(picture),
        "mistakes": sum(report.loss is not None and report.loss >= BAD for report in reports),
        "black_win_rate": [round(report.black_win_rate, 4) for report in reports],
        "loss": [None if report.loss is None else round(report.loss, 4) for report in reports],
    }


# --- for people -------------------------------------------------------------------------------------------------------


def annotate(record: GameRecord, reports: Sequence[PositionReport]) -> GameRecord:
    """The record with what the search said: win rates, the better line as a variation, a mark at every mistake."""
    size = record.rules.board_size
    old_notes = record.notes or (Note(),) * (len(record.moves) + 1)
    notes, variations = [], []
    for number, (note, report) in enumerate(zip(old_notes, reports)):
        played = reports[number - 1] if number else None
        said = [note.comment] if note.comment else []
        said.append(f"Black wins {100 * report.black_win_rate:.1f} %.")
        if played is not None and played.loss is not None and played.loss >= DOUBTFUL:
            better = to_gtp(played.candidates[0].move, size)
            said.append(f"This move cost {100 * played.loss:.1f} %; better was {better}.")
        said += [_describe(letter, candidate, size) for letter, candidate in zip("ABC", report.candidates)]
        labels = tuple((c.move, letter) for letter, c in zip("ABC", report.candidates) if c.move < size * size)
        mark = _mark(played.loss) if played is not None and played.loss is not None else ""
        notes.append(Note("\n".join(said), report.black_win_rate, labels, mark))
    for (color, move), report in zip(record.moves, reports):
        best = report.candidates[0] if report.candidates else None
        variations.append(() if best is None or best.move == move else (_better_line(color, best, size),))
    return dataclasses.replace(record, notes=tuple(notes), variations=tuple(variations))


def _describe(letter: str, candidate: Candidate, size: int) -> str:
    line = " ".join(to_gtp(move, size) for move in candidate.line)
    return f"{letter}: {100 * candidate.win_rate:.1f} % for the player, {candidate.visits} visits: {line}"


def _better_line(color: int, best: Candidate, size: int) -> Variation:
    moves = tuple((color if k % 2 == 0 else 3 - color, move) for k, move in enumerate(best.line))
    black = best.win_rate if color == BLACK else 1 - best.win_rate
    return Variation(moves, Note(f"Better: {100 * best.win_rate:.1f} % for the player, {best.visits} visits.", black))


def _mark(loss: float) -> str:
    """The SGF property of a move that cost so much."""
    return "BM2" if loss >= VERY_BAD else "BM1" if loss >= BAD else "DO" if loss >= DOUBTFUL else ""


def draw_win_rate(path: Path, record: GameRecord, reports: Sequence[PositionReport]) -> None:
    """A picture: Black's win rate after every move, with the mistakes of either side."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    axes = figure.subplots()
    curve = [100 * report.black_win_rate for report in reports]
    axes.axhline(50, color="0.7", linewidth=0.8)
    axes.fill_between(range(len(curve)), curve, 0, color="0.85")
    axes.plot(curve, color="black", linewidth=1.5)
    for (color, move), report, number in zip(record.moves, reports, range(1, len(reports))):
        if report.loss is not None and report.loss >= BAD:
            axes.plot(number, curve[number], "o", color="tab:red", markersize=5)
            name = f"{'B' if color == BLACK else 'W'} {to_gtp(move, record.rules.board_size)}"
            axes.annotate(name, (number, curve[number]), xytext=(3, 5), textcoords="offset points", fontsize=7)
    axes.set(xlim=(0, max(len(curve) - 1, 1)), ylim=(0, 100), xlabel="move", ylabel="Black wins, %")
    names = " - ".join(name for name in (record.black_name, record.white_name) if name)
    axes.set_title(f"{names}  {record.result}   (red: cost {100 * BAD:.0f} % or more)", fontsize=9, parse_math=False)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=110, format=path.suffix[1:])
