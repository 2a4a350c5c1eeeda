"""Run the examples in the docstrings of all functions and classes that the reference describes."""

import doctest
import re
from importlib import import_module
from itertools import chain

import numpy as np
import pytest

import controllers
import twin
from tests.support.doc_pages import HOUSE

pytestmark = pytest.mark.slow("runs every example of the reference")

REFERENCE = HOUSE / "docs" / "reference"

USUAL = {"np": np, "controllers": controllers, "twin": twin}
"""Names that an example may use without importing them."""

COMPLETE = {path.stem for path in REFERENCE.glob("*.rst")}
"""Pages of which every function has an example: all."""

WITHOUT = {
    "twin.view": "it opens a page in a browser",
    "twin.egm.replay": "it needs a robot and a client at once",
}
"""Functions of these pages that need no example, and why."""


def described(page):
    """Return the kind, "function" or "class", of every object that a page describes, by its name."""
    text = (REFERENCE / f"{page}.rst").read_text(encoding="utf-8")
    found = re.findall(r"^\.\. auto(function|class):: ([\w.]+)$", text, flags=re.M)
    return {name: kind for kind, name in found}


def resolved(name):
    """Return the object of a dotted name, which begins with the name of its module."""
    module, _, attribute = name.rpartition(".")
    return getattr(import_module(module), attribute)


def examples_of(name):
    """Return the doctests of an object's docstring and, for a class, of its methods' docstrings."""
    found = doctest.DocTestFinder().find(resolved(name), name, module=False, globs=dict(USUAL))
    return [test for test in found if test.examples]


@pytest.mark.parametrize("page", sorted(path.stem for path in REFERENCE.glob("*.rst")))
def test_examples_of_a_page_return_what_they_print(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    report = []
    for test in chain.from_iterable(map(examples_of, described(page))):
        runner.run(test, out=report.append)
    assert not runner.failures, "".join(report)


@pytest.mark.parametrize("page", sorted(COMPLETE))
def test_every_function_of_a_complete_page_has_an_example_of_two_to_five_lines(page):
    functions = [name for name, kind in described(page).items() if kind == "function"]
    lengths = {
        name: sum(example.source.count("\n") for test in examples_of(name) for example in test.examples)
        for name in functions
    }
    missing = {name for name, length in lengths.items() if not length}
    assert missing == {name for name in functions if name in WITHOUT}
    assert not {name: n for name, n in lengths.items() if n and not 2 <= n <= 5}


def test_functions_without_an_example_are_in_the_reference():
    assert WITHOUT.keys() <= {name for page in COMPLETE for name in described(page)}


def test_wrong_example_is_reported_with_its_function(monkeypatch):
    monkeypatch.setattr("twin.inverse_kinematics.__doc__", ">>> 1 + 1\n3\n")
    with pytest.raises(AssertionError, match=r"(?s)twin\.inverse_kinematics.*Expected:\s*3\s*Got:\s*2"):
        test_examples_of_a_page_return_what_they_print("kinematics", HOUSE, monkeypatch)
