"""What a network says about a position before any search: its policy and its value.

In: moves from the empty board, and a model's name. Out: probabilities and Black's chance, the mean over the 8
symmetries, so that what is seen is knowledge and not a corner that the network happens to prefer. Answers are kept,
since the page asks every generation about the same opening again and again.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict

import numpy as np

from alphago_zero.features import extract_features
from alphago_zero.go import BoardState
from alphago_zero.symmetries import COUNT, apply_to_planes, apply_to_policy, inverse
from alphago_zero.web.limits import Limits, Refusal, move_list
from alphago_zero.web.networks import Networks
from alphago_zero.web.thinker import black_win_rate, stones_text

_KEPT = 4096


class Judge:
    """Asks networks, and remembers their answers."""

    def __init__(self, networks: Networks, limits: Limits):
        self._networks = networks
        self._turns = asyncio.Semaphore(limits.judgements)
        self._answers: OrderedDict = OrderedDict()  # (model, its graph, moves): answer

    async def answer(self, question: dict) -> dict:
        name = question.get("model")
        if not isinstance(name, str):
            raise Refusal("model must be a name.")
        info = await asyncio.to_thread(self._networks.info, name)
        moves = tuple(move_list(question, "moves", info.rules.points))
        key = (name, info.graph_digest, moves)
        if key not in self._answers:
            state = BoardState(info.rules)
            for move in moves:
                state = state.play_move(move)
            async with self._turns:
                self._answers[key] = await asyncio.to_thread(self._ask, name, state)
            while len(self._answers) > _KEPT:
                self._answers.popitem(last=False)
        return self._answers[key]

    def _ask(self, name: str, state: BoardState) -> dict:
        planes = extract_features(state)
        p, v = self._networks.get(name).evaluate(np.stack([apply_to_planes(planes, s) for s in range(COUNT)]))
        policy = np.mean([apply_to_policy(p[s], inverse(s)) for s in range(COUNT)], axis=0) * state.legal_moves()
        policy /= max(policy.sum(), 1e-9)
        return {
            "model": name,
            "size": state.size,
            "stones": stones_text(state),
            "to_play": state.to_play,
            "last_move": state.last_move,
            "policy": [round(float(probability), 4) for probability in policy],
            "black_win_rate": black_win_rate(float(v.mean()), state.to_play),
        }
