"""The names of a point, for every board size."""

import doctest

import pytest

from alphago_zero import coordinates
from alphago_zero.coordinates import from_gtp, from_row_column, from_sgf, to_gtp, to_row_column, to_sgf

SIZES = range(2, 20)


@pytest.mark.parametrize("size", SIZES)
def test_every_point_survives_the_way_there_and_back(size):
    for move in range(size * size):
        assert from_row_column(*to_row_column(move, size), size) == move
        assert from_gtp(to_gtp(move, size), size) == move
        assert from_sgf(to_sgf(move, size), size) == move
    assert from_gtp(to_gtp(size * size, size), size) == size * size
    assert from_sgf(to_sgf(size * size, size), size) == size * size


@pytest.mark.parametrize(
    "size, move, gtp, sgf",
    [
        (9, 0, "A9", "aa"),  # upper left
        (9, 8, "J9", "ia"),  # upper right: the ninth column is J
        (9, 72, "A1", "ai"),  # lower left
        (9, 40, "E5", "ee"),  # the centre
        (19, 72, "Q16", "pd"),
        (19, 360, "T1", "ss"),
        (2, 1, "B2", "ba"),
    ],
)
def test_known_points(size, move, gtp, sgf):
    assert to_gtp(move, size) == gtp
    assert to_sgf(move, size) == sgf


def test_gtp_is_read_in_either_case_and_with_spaces():
    assert from_gtp(" d5 ", 9) == from_gtp("D5", 9) == from_gtp("D05", 9)
    assert from_gtp("Pass", 9) == 81


@pytest.mark.parametrize("text", ["", "I5", "K5", "A0", "A10", "AA", "5", "D", "D-5", "D5 E5", "D٥", "D²", "resign"])
def test_a_name_that_is_no_point_is_named_in_the_error(text):
    with pytest.raises(ValueError, match="is not a point of a 9x9 board") as error:
        from_gtp(text, 9)
    assert repr(text) in str(error.value)


@pytest.mark.parametrize("text", ["a", "aj", "ja", "AA", "a1", "aaa", "tu", "  "])
def test_sgf_points_off_the_board_are_refused(text):
    with pytest.raises(ValueError, match="is not a point of a 9x9 board"):
        from_sgf(text, 9)


@pytest.mark.parametrize("move", [-1, 82])
def test_numbers_off_the_board_are_refused(move):
    for convert in (to_gtp, to_sgf, to_row_column):
        with pytest.raises(ValueError, match=str(move)):
            convert(move, 9)


@pytest.mark.parametrize("row, column", [(-1, 0), (0, -1), (9, 0), (0, 9)])
def test_rows_and_columns_off_the_board_are_refused(row, column):
    with pytest.raises(ValueError, match="not on a 9x9 board"):
        from_row_column(row, column, 9)


def test_the_examples_in_the_module_are_true():
    assert doctest.testmod(coordinates) == (0, 6)
