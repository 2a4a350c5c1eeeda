"""The examples in the docstrings of the functions of `twin` run and print what they show."""

import doctest
import inspect

import numpy as np
import pytest

import controllers
import twin

WITHOUT = {
    "compare": "the guide on plots has one",
    "film": "the guide on replays has one",
    "identify": "the guide on identification has one",
    "sweep": "the guide on sweeps has one",
    "view": "it opens a page in a browser",
}
"""Functions without an example, and the reason."""

FUNCTIONS = {name: getattr(twin, name) for name in dir(twin) if inspect.isfunction(getattr(twin, name))}


@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() - WITHOUT.keys()))
def test_example_prints_what_it_shows(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"np": np, "controllers": controllers, "twin": twin}
    tests = doctest.DocTestFinder(recurse=False).find(FUNCTIONS[name], name, globs=namespace)
    assert 1 <= len(tests[0].examples) <= 9
    output = []
    assert doctest.DocTestRunner(verbose=False).run(tests[0], out=output.append).failed == 0, "".join(output)


def test_every_exception_is_a_function_without_an_example():
    for name in WITHOUT:
        assert ">>>" not in FUNCTIONS[name].__doc__, name
