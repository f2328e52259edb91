"""The base of all domain types."""

from __future__ import annotations

import pytest

from domain.value import Value


class Point(Value):
    x: int
    y: int = 0


class Named(Value):
    name: str


class Marked(Point):
    pass


class Place(Marked, Point):
    height: int = 5
    x: int = 7


def test_fields_are_given_by_position_or_name_and_default() -> None:
    assert Point(1) == Point(1, 0) == Point(x=1, y=0)
    assert (Point(1, y=2).x, Point(1, y=2).y) == (1, 2)


def test_fields_of_all_bases_come_before_own_ones() -> None:
    place = Place(1, 2)
    assert (place.x, place.y, place.height) == (1, 2, 5)
    assert repr(place) == "Place(x=1, y=2, height=5)"


def test_a_default_can_be_given_to_an_inherited_field() -> None:
    assert Place() == Place(7, 0, 5)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (Point, "field 'x' is missing"),
        (lambda: Point(1, 2, 3), "takes at most 2 fields, not 3"),
        (lambda: Point(1, x=2), "field 'x' is given twice"),
        (lambda: Point(1, z=2, w=3), "has no field 'z', 'w'"),
    ],
)
def test_wrong_fields_are_refused(make: object, why: str) -> None:
    with pytest.raises(TypeError, match=why):
        make()


def test_a_value_cannot_change_nor_grow_a_field() -> None:
    point = Point(1)
    with pytest.raises(AttributeError, match="use replace"):
        point.x = 2
    with pytest.raises(AttributeError, match="use replace"):
        del point.x
    with pytest.raises(AttributeError):
        object.__setattr__(point, "z", 1)
    assert point == Point(1)


def test_replace_makes_another_value() -> None:
    point = Point(1, 2)
    assert point.replace(y=3) == Point(1, 3)
    assert point == Point(1, 2)
    with pytest.raises(TypeError):
        point.replace(z=1)


def test_values_are_equal_by_type_and_fields() -> None:
    assert Point(1) != Point(2)
    assert Point(1) != Named("1")
    assert Point(1) != (1, 0)
    assert len({Point(1), Point(1, 0), Point(2)}) == 2
    assert hash(Point(1)) != hash(Place(1, 0, 0))
