"""What numba keeps is forgotten when a file changes from which a compiled function calls another."""

import os
import subprocess
import sys

import pytest

HEAD = "from twin.kernel_cache import compiled\n"
INNER = HEAD + "@compiled\ndef inner():\n    return {}\n"
MIDDLE = HEAD + "from inner import inner\n@compiled\ndef middle():\n    return inner()\n"
OUTER = HEAD + "from middle import middle\n@compiled\ndef outer():\n    return middle()\n"


@pytest.mark.parametrize("called", ["middle", "outer"])
def test_a_change_in_a_file_that_is_called_is_noticed(tmp_path, called):
    (tmp_path / "middle.py").write_text(MIDDLE)
    (tmp_path / "outer.py").write_text(OUTER)
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "NUMBA_DISABLE_JIT": "0"}
    program = f"from {called} import {called} as f; print(f(), sum(f.stats.cache_hits.values()))"
    answers = []
    for value in (1, 2, 2):
        (tmp_path / "inner.py").write_text(INNER.format(value))
        run = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        )
        answers.append(run.stdout.split())
    assert answers == [["1", "0"], ["2", "0"], ["2", "1"]]
