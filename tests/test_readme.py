"""README is one screen, what it promises is there, and its lines of Python track to round-off."""

import re

import twin
from scenarios import pose_path
from tests.support.doc_pages import HOUSE, blocks

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


def test_what_is_identified_from_its_log_is_the_arm_with_its_friction():
    """In steps of 20 ms, for the sake of time."""
    lines = [line.partition("#")[0].split()[1:] for line in README.splitlines() if "run.npz" in line]
    assert ["identify", "run.npz"] in lines
    words = next(words for words in lines if words[0] == "run")
    assert words[:2] == ["run", "pose_path"]
    drives = words[words.index("--drives") + 1]
    log = pose_path.run(pose_path.Config(drives=drives, time_step=0.02))
    friction = [one for one in twin.identify(log.robot, log).values if one.symbol[:2] in ("Fv", "Fc")]
    assert len(friction) == 12
    for one in friction:
        assert abs(one.value - one.before) < 1e-6 * one.before, one.symbol
