import pytest

from scenarios.running import execution as execute
from scenarios.shell.command_line import main


@pytest.fixture
def in_this_process(monkeypatch):
    """Run user code, and all runs of `validate`, in this process, without workers, which take a second."""
    monkeypatch.setattr(execute, "_work", lambda *_, **__: None)


@pytest.fixture
def command(capsys):
    """Function that runs a command, checks its exit status, and returns what it printed, `out` and `err`."""

    def run(words, status=0):
        assert main(words) == status
        return capsys.readouterr()

    return run
