"""Quantities mean exactly what Kubernetes says they mean."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import example, given, strategies as st

from hekla.domain import quantity
from hekla.domain.errors import InvalidError

NANO = Fraction(1, 10**9)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("0", Fraction(0)),
        ("1", Fraction(1)),
        ("500m", Fraction(1, 2)),
        ("0.1", Fraction(1, 10)),
        (".5", Fraction(1, 2)),
        ("5.", Fraction(5)),
        ("+1", Fraction(1)),
        ("-1", Fraction(-1)),
        ("-500m", Fraction(-1, 2)),
        ("1n", NANO),
        ("1u", Fraction(1, 10**6)),
        ("1k", Fraction(1000)),
        ("1Ki", Fraction(1024)),
        ("1.5Gi", Fraction(3 * 2**29)),
        ("1M", Fraction(10**6)),
        ("4Gi", Fraction(4 * 2**30)),
        ("1Ti", Fraction(2**40)),
        ("1Pi", Fraction(2**50)),
        ("1Ei", Fraction(2**60)),
        ("1E", Fraction(10**18)),
        ("1e3", Fraction(1000)),
        ("1E3", Fraction(1000)),
        ("12e-1", Fraction(6, 5)),
        ("1e+2", Fraction(100)),
        ("0e999999999999", Fraction(0)),
        (3, Fraction(3)),
        (-3, Fraction(-3)),
        (0.1, Fraction(1, 10)),
        (1e21, Fraction(2**63 - 1)),
        ("9007199254740993", Fraction(2**53 + 1)),
        ("9223372036854775807", Fraction(2**63 - 1)),
        ("0.1n", NANO),
        ("-0.1n", -NANO),
        ("1e-400", NANO),
        ("100E", Fraction(2**63 - 1)),
        ("-100E", Fraction(1 - 2**63)),
        ("1e999999999", Fraction(2**63 - 1)),
        (10**30, Fraction(2**63 - 1)),
    ],
)
def test_a_quantity_is_read_exactly(written: str | int | float, meant: Fraction) -> None:
    assert quantity.parse(written) == meant


@pytest.mark.parametrize(
    "written",
    [
        "",
        " ",
        "1 ",
        " 1",
        "m",
        ".",
        "+",
        "-",
        "1mi",
        "1ki",
        "1K",
        "1gi",
        "1Gb",
        "1.2.3",
        "--1",
        "1e",
        "1e1.5",
        "0x10",
        "1_000",
        "1,5",
        "\u0661",
        "1e5k",
        "NaN",
        "Inf",
        "9" * 1000,
        "1\n",
        "five",
        float("nan"),
        float("inf"),
        True,
        None,
        [],
        {"a": 1},
    ],
)
def test_what_is_no_quantity_is_refused(written: object) -> None:
    with pytest.raises(InvalidError, match="must be a quantity"):
        quantity.parse(written)  # type: ignore[arg-type]


@given(st.integers(1 - 10**18, 10**18 - 1), st.booleans())
@example(nanos=0, binary=True)
def test_what_is_written_is_read_back(nanos: int, binary: bool) -> None:  # noqa: FBT001
    value = nanos * NANO

    assert quantity.parse(quantity.format(value, binary=binary)) == value


@given(st.integers(-(2**63) + 1, 2**63 - 1), st.booleans())
def test_whole_numbers_survive_either_way_of_writing(number: int, binary: bool) -> None:  # noqa: FBT001
    assert quantity.parse(quantity.format(number, binary=binary)) == number


@given(st.fractions(0, 10**6), st.sampled_from([1, 1000]))
def test_rounding_never_loses_and_adds_less_than_one_unit(value: Fraction, per: int) -> None:
    rounded = quantity.ceil(value, per=per)

    assert 0 <= rounded - value * per < 1


@pytest.mark.parametrize(
    ("value", "binary", "written"),
    [
        (Fraction(0), False, "0"),
        (Fraction(1500), False, "1500"),
        (Fraction(2000), False, "2k"),
        (Fraction(3, 2), False, "1500m"),
        (Fraction(2**30), True, "1Gi"),
        (Fraction(3 * 2**29), True, "1536Mi"),
        (Fraction(1000), True, "1000"),
        (Fraction(-1, 2), False, "-500m"),
    ],
)
def test_a_quantity_is_written_as_kubernetes_does(
    value: Fraction,
    binary: bool,  # noqa: FBT001
    written: str,
) -> None:
    assert quantity.format(value, binary=binary) == written


def test_what_is_finer_than_a_quantity_cannot_be_written() -> None:
    with pytest.raises(InvalidError, match="finer"):
        quantity.format(Fraction(1, 3))


@given(st.text())
def test_no_text_breaks_the_parser(text: str) -> None:
    try:
        value = quantity.parse(text)
    except InvalidError:
        return
    assert abs(value) <= quantity.LARGEST
