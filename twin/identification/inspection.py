"""Recordings made ready for identification: cured where possible, with findings where not."""

from dataclasses import replace

from twin.errors import IdentificationError
from twin.identification.measurements import Filtering, Measurements, chosen_cutoff, filtered_measurements
from twin.logs.recordings.even_time import even_parts
from twin.logs.recordings.faults import frozen_torques, lost_rows, unwrapped, without_held, without_spikes
from twin.logs.recordings.finding import Finding
from twin.logs.recordings.torque_recording import TorqueRecording
from twin.robot.robot import Robot


def cured_parts(recording: TorqueRecording, robot: Robot) -> tuple[list[TorqueRecording], list[Finding]]:
    """Return the parts of a recording, with even times, and without wraps and spikes of the positions.

    Args:
        recording: recording as it is.
        robot: robot of the joints.

    Returns:
        The parts between gaps, and findings of all parts.
    """
    q, wraps = unwrapped(recording.q, [kind != "prismatic" for kind in robot.joint_kinds])
    q, spikes = without_spikes(q)
    q, held = without_held(q)
    held += frozen_torques(q, recording.tau)
    parts, times = even_parts(replace(recording, q=q))
    lost = [] if any(one.name == "uneven" for one in times) else [
        finding for part in parts for finding in lost_rows(part.t, part.q)
    ]  # fmt: skip
    return parts, [*recording.findings, *wraps, *spikes, *times, *held, *lost[:1]]


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
        longest = max(parts, key=lambda part: len(part.t))
        filtering = replace(filtering, cutoff=chosen_cutoff(longest.q, longest.period))
    result, fault = [], None
    for part in parts:
        try:
            result.append(filtered_measurements(part, filtering))
        except IdentificationError as error:
            fault = error
    if not result:
        assert fault is not None
        raise fault
    result[0] = replace(result[0], findings=tuple(findings))
    return result
