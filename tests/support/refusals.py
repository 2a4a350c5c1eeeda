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
