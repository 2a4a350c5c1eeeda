"""A module of version 0.2 is refused with the page that shows the new form."""

import pytest

from scenarios import TrackingScenario, option
from scenarios.running import registry
from twin.errors import PluginError, WrongUse

OLD = """
from scenarios import base

class Config(base.Config):
    pass
"""


@pytest.mark.parametrize(
    "text",
    [OLD, "from scenarios.base import Metric, option", "import scenarios.base", "class Config:\n    pass"],
)
def test_module_of_the_old_form_is_refused_with_its_guide(text, tmp_path):
    file = tmp_path / "nod.py"
    file.write_text(text)
    with pytest.raises(WrongUse, match=r"version 0\.2.*docs/guides/own_scenario\.md$"):
        registry.find(str(file))


def test_another_failed_import_is_reported_as_it_is(tmp_path):
    file = tmp_path / "nod.py"
    file.write_text("from scenarios import basement")
    with pytest.raises(PluginError, match="basement"):
        registry.find(str(file))


def test_choices_in_the_place_of_version_0_2_are_refused():
    with pytest.raises(PluginError, match=r"Nod\.side.*choices=\('left', 'right'\)"):

        class Nod(TrackingScenario):
            """Nod."""

            side: str = option("left", "where the arm starts", ("left", "right"))
