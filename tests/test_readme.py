"""README is one screen, what it promises is there, and its lines of Python track to round-off."""

import re

from tests.doc_pages import HOUSE, blocks

README = (HOUSE / "README.md").read_text(encoding="utf-8")


def test_it_is_one_screen():
    assert len(README.splitlines()) <= 105


def test_its_script_tracks_to_round_off(tmp_path, monkeypatch, capsys):
    (script,) = (block.text for block in blocks(README) if block.kind == "python")
    assert len(script.splitlines()) <= 12
    monkeypatch.chdir(tmp_path)
    exec(script, {})
    error = re.search(r"1\.000 s, largest joint error (\S+) rad", capsys.readouterr().out)
    assert error is not None
    assert float(error[1]) <= 1e-10


def test_every_command_of_make_exists():
    makefile = (HOUSE / "Makefile").read_text(encoding="utf-8")
    pages = [README, (HOUSE / "docs" / "guides" / "development.md").read_text(encoding="utf-8")]
    targets = {target for page in pages for target in re.findall(r"^    make (\w+)", page, flags=re.M)}
    assert targets >= {"run", "test", "docs", "lint", "bench", "fuzz"}
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.M), target


def test_every_link_leads_somewhere():
    links = re.findall(r"\]\(([^)]+)\)", README)
    assert len(links) > 15
    for link in links:
        assert (HOUSE / link).is_file(), link


def test_its_workflow_is_the_one_of_the_guide_which_is_tested():
    (workflow,) = (block.text for block in blocks(README) if block.kind == "yaml")
    assert workflow in (HOUSE / "docs" / "guides" / "continuous_integration.md").read_text(encoding="utf-8")
    assert len(workflow.splitlines()) <= 17


def test_what_a_newcomer_must_know_is_said():
    for words in ("Python 3.10", "urchin", "urdfpy", "named `twin`, `controllers` or `scenarios`"):
        assert words in README
