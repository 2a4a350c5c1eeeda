"""Tables of refusals: each call raises an error whose one sentence has the given text."""

import re

import pytest


def refused(*rows, given=(), error=ValueError):
    """Assert that every call (of `given`) in rows of (call, text or pattern) is refused with that text."""
    for call, told in rows:
        try:
            call(*given)
        except error as fault:
            sentence = str(fault)
            assert told in sentence or re.search(told, sentence), f"expected {told!r}, got {sentence!r}"
        else:
            pytest.fail(f"accepted, expected the refusal {told!r}")


def edits_refused(path, text, rows, load, error=ValueError):
    """Assert that a file is refused in one sentence after each edit of its text: rows of (old, new, told)."""
    for old, new, told in rows:
        assert old in text, old
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
        with pytest.raises(error) as fault:
            load(path)
        sentence = str(fault.value)
        assert told in sentence or re.search(told, sentence), f"expected {told!r}, got {sentence!r}"
        assert "\n" not in sentence
