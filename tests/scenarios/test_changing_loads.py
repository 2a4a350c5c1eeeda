"""A scenario whose payload changes refuses another payload."""

import pytest

import twin
from scenarios import TrackingScenario


class Carry(TrackingScenario):
    """Hold still, and get a payload after 0.05 s."""

    def motion(self, robot):
        return twin.hold([0.0] * robot.n, 0.1)

    def loads(self, robot):
        return {0.0: None, 0.05: twin.Payload(2.0, (0, 0, 0.06))}


def test_payload_of_the_setup_is_refused_where_the_payload_changes():
    with pytest.raises(ValueError, match="expected no payload: Carry"):
        Carry().run(Carry.setup(payload="3"))
    assert Carry().run().log.payloads.loads[:, 0].tolist() == [0.0, 2.0]
