"""Values that are cached for settings belong to the attributes they were computed from."""

import dataclasses

from scenarios.running import registry
from scenarios.sweeping.scenario_experiment import Memoized


def test_memoized_value_depends_only_on_settings_that_were_read():
    made = []

    def make(config):
        made.append(None)
        copied = dataclasses.replace(config, seed=1)
        return copied.duration if config.seed else (type(copied), vars(config)["duration"])

    config = registry.find("joint_tracking").Config()
    remembered = Memoized(make, 2)
    kind, duration = remembered(config)
    assert (kind, duration) == (type(config), config.duration)
    assert remembered(dataclasses.replace(config)) is remembered(config)
    assert len(made) == 1
    assert remembered(dataclasses.replace(config, seed=2, duration=7.0)) == 7.0
    assert len(made) == 2
    single = Memoized(lambda config: (config.plant_changes, config.period), 2)
    first = single(config)
    assert single(dataclasses.replace(config, seed=2, changes=(("model.mass", 1.1),))) is first
    assert single(dataclasses.replace(config, changes=(("mass", 1.1),))) is not first
    assert single(dataclasses.replace(config, time_step=0.01)) is not first
