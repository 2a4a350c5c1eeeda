"""Recordings made ready for identification: cured where possible, with findings where not."""

from collections.abc import Sequence
from dataclasses import replace

from twin.base.errors import IdentificationError
from twin.data.identification.filters import chosen_cutoff
from twin.data.identification.measurements import Filtering, Measurements, filtered_measurements
from twin.data.logs.recordings.even_time import parts_between_gaps, with_even_times
from twin.data.logs.recordings.faults import (
    frozen_torques,
    jumps,
    lost_rows,
    unwrapped,
    without_held,
    without_spikes,
)
from twin.data.logs.recordings.finding import Finding
from twin.data.logs.recordings.torque_recording import TorqueRecording
from twin.physics.robot.robot import Robot


def cured_parts(recording: TorqueRecording, robot: Robot) -> tuple[list[TorqueRecording], list[Finding]]:
    """Return the parts of a recording, with even times, and without wraps and spikes of the positions.

    Args:
        recording: recording as it is.
        robot: robot of the joints.

    Returns:
        The parts between gaps, and findings of all parts.
    """
    parts, findings = parts_between_gaps(recording)
    findings = [*recording.findings, *findings]
    revolute = [kind != "prismatic" for kind in robot.joint_kinds]
    cured = []
    for part in parts:
        q, wraps = unwrapped(part.q, revolute)
        jumped = jumps(part.t, q)
        q, spikes = without_spikes(q)
        q, held = without_held(q)
        findings += [*wraps, *jumped, *spikes, *held, *frozen_torques(q, part.tau)]
        part, times = with_even_times(replace(part, q=q))
        findings += times if times else lost_rows(part.t, part.q)
        cured.append(part)
    return cured, merged(findings)


def merged(findings: Sequence[Finding]) -> list[Finding]:
    """Return one finding of each name: the first that stops, or the first, and how many more there are."""
    result = []
    for name in dict.fromkeys(one.name for one in findings):
        alike = [one for one in findings if one.name == name]
        worst = next((one for one in alike if one.stops), alike[0])
        joints = tuple(sorted({joint for one in alike for joint in one.joints}))
        more = f"; and alike in {len(alike) - 1} more parts" if len(alike) > 1 else ""
        result.append(worst._replace(joints=joints, text=worst.text + more))
    return result


def measured_parts(
    recording: TorqueRecording, robot: Robot, filtering: Filtering | None
) -> list[Measurements]:
    """Return the filtered measurements of the parts of a recording, with the findings in the first.

    Raises:
        IdentificationError: no part is long enough for the filter, or a setting is out of range.
    """
    parts, findings = cured_parts(recording, robot)
    filtering = filtering or Filtering()
    if len(parts) > 1 and filtering.cutoff is None:
        longest = max(len(part.t) for part in parts)  # one part with a fault would ask for a high cut-off
        cutoffs = [chosen_cutoff(part.q, part.period) for part in parts if 2 * len(part.t) > longest]
        filtering = replace(filtering, cutoff=filtering.factor * min(cutoffs))
    result, fault = [], None
    for part in parts:
        try:
            result.append(filtered_measurements(part, filtering))
        except IdentificationError as error:
            fault = error
    if not result:
        assert fault is not None
        raise fault
    findings += [finding for one in result for finding in one.findings]
    result = [replace(one, findings=()) for one in result]
    result[0] = replace(result[0], findings=tuple(merged(findings)))
    return result
