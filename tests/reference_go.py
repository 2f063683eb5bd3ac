"""The rules of Go once more: slow, obvious, and written independently of `alphago_zero.go`, to prove it against.

A point is (row, column). A position is a pair of sets: Black's points and White's. A game remembers every position.
"""

from __future__ import annotations

BLACK, WHITE = 0, 1


class ReferenceGame:
    def __init__(self, size: int, allow_suicide: bool = False):
        self.points = [(row, column) for row in range(size) for column in range(size)]
        self.neighbours = {
            (row, column): [
                point
                for point in ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1))
                if 0 <= point[0] < size and 0 <= point[1] < size
            ]
            for row, column in self.points
        }
        self.allow_suicide = allow_suicide
        self.position = (frozenset(), frozenset())
        self.history = {self.position}
        self.captures = [0, 0]  # stones that Black, White has taken off the board
        self.to_play = BLACK

    def connected(self, point, stones) -> set:
        """`point` and all points that are joined to it through points of `stones`."""
        chain, edge = {point}, [point]
        while edge:
            for neighbour in self.neighbours[edge.pop()]:
                if neighbour in stones and neighbour not in chain:
                    chain.add(neighbour)
                    edge.append(neighbour)
        return chain

    def has_liberty(self, chain, position) -> bool:
        return any(n not in position[BLACK] and n not in position[WHITE] for p in chain for n in self.neighbours[p])

    def position_after(self, point):
        """The position after the player to move plays at `point`; None if that is against the rules."""
        me, opponent = self.to_play, 1 - self.to_play
        if point in self.position[BLACK] or point in self.position[WHITE]:
            return None
        position = list(self.position)
        position[me] |= {point}
        for neighbour in self.neighbours[point]:
            if neighbour in position[opponent]:
                chain = self.connected(neighbour, position[opponent])
                if not self.has_liberty(chain, position):
                    position[opponent] -= chain
        chain = self.connected(point, position[me])
        if not self.has_liberty(chain, position):
            if not self.allow_suicide:
                return None
            position[me] -= chain
        position = tuple(position)
        return None if position in self.history else position

    def legal_points(self) -> list:
        return [point for point in self.points if self.position_after(point) is not None]

    def play(self, point) -> None:
        """Play at `point`, or pass if it is None."""
        if point is not None:
            position = self.position_after(point)
            assert position is not None, f"{point} is illegal"
            taken = sum(map(len, self.position)) + 1 - sum(map(len, position))
            suicide = point not in position[self.to_play]
            self.captures[1 - self.to_play if suicide else self.to_play] += taken
            self.position = position
            self.history.add(position)
        self.to_play = 1 - self.to_play

    def area(self, color) -> int:
        """Stones of `color`, and empty points from which only stones of `color` are reached (Tromp and Taylor)."""
        empty = set(self.points) - self.position[BLACK] - self.position[WHITE]
        area = len(self.position[color])
        while empty:
            region = self.connected(next(iter(empty)), empty)
            empty -= region
            borders = {neighbour for point in region for neighbour in self.neighbours[point]} - region
            if borders and borders <= self.position[color]:
                area += len(region)
        return area

    def score(self, komi: float) -> float:
        return self.area(BLACK) - self.area(WHITE) - komi
