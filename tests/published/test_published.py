"""Published items are complete, are confirmed, can fail, and are on the page."""

import dataclasses
from collections import Counter

import numpy as np
import pytest

from tests.published import __main__ as program
from tests.published.items import (
    Finding,
    Item,
    Row,
    computations,
    items,
    rows,
)
from tests.published.norrlof import inverse as norrlof_inverse

COUNTS = {
    "Norrlöf 1999": {"reproduced": 46, "misprint": 21, "ambiguous": 5, "lost": 3},
    "Norrlöf, lecture 3": {"reproduced": 7, "misprint": 6, "lost": 1},
    "Aliaga 2019": {"reproduced": 17, "misprint": 6, "ambiguous": 1, "lost": 5},
    "Ljubljana manual": {"reproduced": 19, "misprint": 8, "ambiguous": 2, "lost": 7},
    "Kawasaki": {"reproduced": 6, "lost": 1},
}


@pytest.fixture(scope="module")
def computed():
    return list(rows())


def test_every_item_is_computed_or_gives_a_reason_and_none_is_lost():
    found = {source: Counter(item.verdict for item in items() if item.source == source) for source in COUNTS}
    assert found == COUNTS
    assert len(items()) == 161
    for item in items():
        assert bool(item.text_only) != (item.id in computations()), item.id
    assert set(computations()) <= {item.id for item in items()}
    assert sum(not item.text_only for item in items() if item.verdict == "misprint") >= 30


def test_every_item_is_confirmed_and_every_misprint_has_an_error_above_1e_3(computed):
    assert not [f"{row.item.id}: {row.finding} {row.error}" for row in computed if not row.passes]
    for row in computed:
        if row.finding is not None and row.item.verdict == "misprint":
            assert row.finding.printed_residual > max(1e-3, 1e3 * row.item.tolerance), row.item.id
        if row.finding is not None and not np.size(row.item.expected):  # an equation
            assert row.item.tolerance <= 1e-9 or row.item.note, row.item.id


def test_residuals_decide_whether_a_verdict_is_confirmed():
    item = Item("X-1", "source", "(1)", "a number", "misprint", tolerance=0.1, least_error=2.0)
    confirmed = dataclasses.replace(item, verdict="reproduced")
    assert Row(confirmed, Finding(0, 0.1)).passes
    assert Row(item, Finding(0, 0.0, 2.0)).passes
    for wrong in (Row(confirmed, Finding(0, np.nan)), Row(item, Finding(0, 0.0, 1.9)), Row(item, None)):
        assert not wrong.passes


@pytest.mark.parametrize("name", ["N-2.29", "N-2.34", "N-2.38"])
def test_item_fails_if_an_elbow_solution_is_missing(monkeypatch, name):
    whole = norrlof_inverse.main_axis_angles

    def without(robot, p):
        theta = whole(robot, p)
        theta[:, [1, 3]] = np.nan
        return theta

    (item,) = (item for item in items() if item.id == name)
    monkeypatch.setattr(norrlof_inverse, "main_axis_angles", without)
    assert not next(rows([item])).passes


def test_page_is_up_to_date(computed):
    """If this fails, `python -m tests.published --write` updates the page."""
    assert program.PAGE.read_text(encoding="utf-8") == program.page(computed)


def test_chosen_items_are_printed_in_full(capsys):
    assert program.main(["N-2.9", "T-FK1"]) == 0
    text = capsys.readouterr().out
    assert "conj(q) / |q|^2" in text
    assert "2 published items (1 misprint, 1 reproduced; 2 computed, 0 text only): all confirmed" in text
    assert program.main(["N-9.9"]) == 2
