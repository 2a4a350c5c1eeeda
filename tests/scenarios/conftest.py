import pytest

from scenarios.running import execute


@pytest.fixture
def in_this_process(monkeypatch):
    """Run user code, and all runs of `validate`, in this process, without workers, which take a second."""
    monkeypatch.setattr(execute, "_task", lambda *_, **__: None)
