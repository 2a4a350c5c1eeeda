"""`irb-twin egm`: options, wrong use, and exit statuses."""

from types import SimpleNamespace

import pytest

from scenarios.cli.command_line import read
from scenarios.cli.egm.addresses import addresses, bind_address
from scenarios.cli.egm.serve import passed
from scenarios.cli.egm.serving import Served
from twin.egm import EgmResult, GuidanceSettings, Plan


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("0.0.0.0", "0.0.0.0", 0), ("10.0.0.1:7", "10.0.0.1", 7), ("::1", "::1", 0), ("::", "::", 0),
     ("[::1]:7", "::1", 7), ("[::1]", "::1", 0)],
)  # fmt: skip
def test_bind_address_may_lack_its_port(text, host, port):
    assert bind_address(text) == (host, port)


@pytest.mark.parametrize(
    ("runs", "completed", "faults", "passes"),
    [(None, 0, (), True), (2, 2, (), True), (2, 1, (), False), (None, 1, ("fault",), False)],
)
def test_session_passes_if_all_requested_runs_completed(runs, completed, faults, passes):
    """An interrupted run does not count as completed."""
    job = SimpleNamespace(plan=Plan(runs=runs), program=None)
    assert passed(job, Served(result=EgmResult(runs=2, completed=completed, faults=faults))) is passes


def given(*words):
    """Parse options of `egm serve`."""
    return read(["egm", "serve", *words])[0]


def test_every_guidance_setting_is_an_option():
    found = given("--mode", "pose", "--level", "0", "--lp-filter", "50", "--axes", "x,z", "--no-wait-cond")
    expected = GuidanceSettings(mode="pose", level=0, lp_filter=50.0, axes="x,z", no_wait_cond=True)
    assert found.guidance == expected
    assert given().guidance == GuidanceSettings()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("--robot a", "127.0.0.1:6510"),
        ("--robot a b c", "127.0.0.1:6510 127.0.0.1:6511 127.0.0.1:6512"),
        ("--robot a b c --to x:70 y:80", "x:70 y:80 y:81"),
        ("--robot a --to [::1]:6510", "[::1]:6510"),
    ],
)
def test_each_robot_gets_a_client_address(line, expected):
    found = given(*line.split())
    assert [str(address) for address in addresses(found.to, found.robot)] == expected.split()
