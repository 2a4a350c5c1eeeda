"""Gains derived from the bandwidth omega and the robot's inertia.

Feedback without a model treats every joint as a constant inertia `Mbar = diag M(0)`, the diagonal of the mass
matrix at the zero pose, driven by a torque and disturbed by everything else (gravity, Coriolis torque, the
other joints, and the change of the inertia along the motion):

    Mbar_i qdd_i = tau_i - d_i

With `e = q_ref - q` the closed loop is linear in every joint, and the gains follow from the desired poles.  A
multiple real pole at `-omega` is the fastest choice that does not oscillate, and the same omega makes
different controllers comparable:

- PD, `tau = Kp e + Kd ed`:   Mbar s^2 + Kd s + Kp = Mbar (s + omega)^2, so
  `Kp = omega^2 Mbar`, `Kd = 2 omega Mbar`.
- PID, `tau = Kp e + Ki int(e) + Kd ed`:   Mbar s^3 + Kd s^2 + Kp s + Ki = Mbar (s + omega)^3, so
  `Kd = 3 omega Mbar`, `Kp = 3 omega^2 Mbar`, `Ki = omega^3 Mbar`.
- Computed torque contains M, so its closed loop is `s^2 + Kv s + Kp = (s + omega)^2` with the thesis'
  `Kp = omega^2`, `Kv = 2 omega` (Aliaga 2019, eq. (2.29)).
- Cascade, `tau = Kv (u + int(u) / Ti)` with the speed error `u = ed + kp e`.  Its speed loop alone is
  `Mbar s^2 + Kv s + Kv / Ti`, with a double pole at `-omega`: `Kv = 2 omega Mbar`, `Ti = 2 / omega`.
  The position loop around it is a quarter as fast, `kp = omega / 4`, to have little influence on it.
  Together

      Mbar s^3 + Kv s^2 + Kv (kp + 1/Ti) s + Kv kp / Ti
          = Mbar (s^3 + 2 omega s^2 + 3/2 omega^2 s + 1/4 omega^3),

  with poles at -0.228 omega and (-0.886 +- 0.557 i) omega.

Where the true inertia M differs from Mbar the poles move: the PD loop stays stable for every M > 0 (the
gains are a spring and a damper), the PID loop, by Routh's criterion, as long as `Kd Kp > M Ki`, that is for
`M < 9 Mbar`, and the cascade as long as `Kv (kp + 1/Ti) > M kp / Ti`, that is for `M < 12 Mbar`. (Its speed
loop alone is stable for every M > 0.)

Drives add their rotors: a motor accelerates the joint's inertia and, through the gear, the rotor's, which is
constant and, at ratios of a hundred, as large.  For a robot whose drives are not ideal,
`Mbar = diag M(0) + diag A`, with the reflected inertia `A = N^T J N` of the rotors.  Friction is a further
disturbance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twin.base.arrays import real_array

if TYPE_CHECKING:
    from twin.physics.robot.robot import Robot


class PDGains(NamedTuple):
    """Gains of PD: Kp (n,) in [N m/rad], Kd (n,) in [N m s/rad]."""

    Kp: NDArray
    Kd: NDArray


class AccelerationGains(NamedTuple):
    """Gains of computed torque: Kp (n,) in [1/s^2], Kv (n,) in [1/s]."""

    Kp: NDArray
    Kv: NDArray


class CascadeGains(NamedTuple):
    """Gains of the cascade: kp (n,) in [1/s], Kv (n,) in [N m s/rad], Ti (n,) in [s]."""

    kp: NDArray
    Kv: NDArray
    Ti: NDArray


class PIDGains(NamedTuple):
    """Gains of PID: Kp (n,) in [N m/rad], Ki (n,) in [N m/(rad s)], Kd (n,) in [N m s/rad]."""

    Kp: NDArray
    Ki: NDArray
    Kd: NDArray


class ObserverGains(NamedTuple):
    """Gains of the disturbance observer: Kp (n,) in [1/s^2], Kv (n,) in [1/s], K (n,) in [1/s]."""

    Kp: NDArray
    Kv: NDArray
    K: NDArray


class AdaptiveGains(NamedTuple):
    """Gains of adaptive control: L (n,) in [1/s], K (n,) in [N m s/rad], gain (n,) of the adaptation."""

    L: NDArray
    K: NDArray
    gain: NDArray


Gains = TypeVar("Gains", PDGains, PIDGains, CascadeGains, AccelerationGains, ObserverGains, AdaptiveGains)


def with_chosen(gains: Gains, **chosen: ArrayLike | None) -> Gains:
    """Return gains in which the given values replace the derived ones.

    Args:
        gains: derived gains.
        chosen: values by name, scalar or (n,); `None` for the derived value.

    Raises:
        ValueError: a value is neither one number nor n numbers.
    """
    n = len(gains[0])
    for name, value in chosen.items():
        if value is None:
            continue
        array = real_array(value, name)
        if array.shape not in ((), (n,)) or np.any(np.isnan(array)):
            raise ValueError(f"expected {name} to be one number, or one for each of {n} joints, got {value}")
        gains = gains._replace(**{name: np.broadcast_to(array, (n,))})
    return gains


def natural_frequencies(bandwidth: ArrayLike, n: int) -> NDArray:
    """Return the natural frequency of each joint.

    Args:
        bandwidth: scalar or (n,), in [rad/s].
        n: number of joints.

    Returns:
        omega: (n,) in [rad/s].

    Raises:
        ValueError: the shape is wrong, or a value is not positive and finite.

    Example:
        >>> from controllers.gains import natural_frequencies
        >>> natural_frequencies(20.0, 3).tolist()
        [20.0, 20.0, 20.0]
    """
    omega = real_array(bandwidth, "bandwidth")
    if omega.shape not in ((), (n,)):
        raise ValueError(f"expected bandwidth of shape () or ({n},), got {omega.shape}")
    if not np.all((omega > 0) & (omega < np.inf)):
        raise ValueError(f"expected a positive, finite bandwidth in rad/s, got {bandwidth}")
    return np.full(n, omega) if omega.ndim == 0 else omega.copy()


def diagonal_inertia(robot: Robot) -> NDArray:
    """Return Mbar (n,), in [kg m^2]: the inertia at each joint at the zero pose, the other joints locked.

    It is the diagonal of the mass matrix, with the rotors if the drives are not ideal.

    Example:
        >>> import twin
        >>> from controllers.gains import diagonal_inertia
        >>> diagonal_inertia(twin.load("two_link")).round(4).tolist()  # rods of 1 kg and 1 m: 8/3 and 1/3
        [2.6667, 0.3333]
    """
    from twin.physics.dynamics.equation_of_motion import mass_matrix  # slow to import: it compiles the model

    return np.diagonal(mass_matrix(robot, np.zeros(robot.n))).copy()


def pd_gains(robot: Robot, bandwidth: ArrayLike) -> PDGains:
    """Return Kp = omega^2 Mbar and Kd = 2 omega Mbar, for a double pole at -omega.

    Args:
        robot: the controller's model.
        bandwidth: omega, scalar or (n,), in [rad/s].

    Example:
        >>> import twin
        >>> from controllers.gains import pd_gains
        >>> gains = pd_gains(twin.load("two_link"), bandwidth=10.0)  # inertia of the second link: 1/3 kg m^2
        >>> round(float(gains.Kp[1]), 4), round(float(gains.Kd[1]), 4)
        (33.3333, 6.6667)
    """
    omega = natural_frequencies(bandwidth, robot.n)
    inertia = diagonal_inertia(robot)
    return PDGains(Kp=omega**2 * inertia, Kd=2 * omega * inertia)


def pid_gains(robot: Robot, bandwidth: ArrayLike) -> PIDGains:
    """Return Kp = 3 omega^2 Mbar, Ki = omega^3 Mbar and Kd = 3 omega Mbar, for a triple pole at -omega.

    Args:
        robot: the controller's model.
        bandwidth: omega, scalar or (n,), in [rad/s].

    Example:
        >>> import twin
        >>> from controllers.gains import pid_gains
        >>> gains = pid_gains(twin.load("irb140"), bandwidth=10.0)
        >>> (gains.Kp / gains.Kd).round(6).tolist()  # 3 omega^2 over 3 omega
        [10.0, 10.0, 10.0, 10.0, 10.0, 10.0]
    """
    omega = natural_frequencies(bandwidth, robot.n)
    inertia = diagonal_inertia(robot)
    return PIDGains(Kp=3 * omega**2 * inertia, Ki=omega**3 * inertia, Kd=3 * omega * inertia)


def cascade_gains(robot: Robot, bandwidth: ArrayLike) -> CascadeGains:
    """Return Kv = 2 omega Mbar and Ti = 2 / omega, for a double pole of the speed loop, and kp = omega / 4.

    Args:
        robot: the controller's model.
        bandwidth: omega, scalar or (n,), in [rad/s].

    Example:
        >>> import twin
        >>> from controllers.gains import cascade_gains
        >>> gains = cascade_gains(twin.load("irb140"), bandwidth=10.0)
        >>> gains.kp.tolist(), gains.Ti.tolist()
        ([2.5, 2.5, 2.5, 2.5, 2.5, 2.5], [0.2, 0.2, 0.2, 0.2, 0.2, 0.2])
    """
    omega = natural_frequencies(bandwidth, robot.n)
    return CascadeGains(kp=omega / 4, Kv=2 * omega * diagonal_inertia(robot), Ti=2 / omega)


def acceleration_gains(robot: Robot, bandwidth: ArrayLike) -> AccelerationGains:
    """Return Kp = omega^2 and Kv = 2 omega, for errors in acceleration units (Aliaga 2019, eq. (2.29)).

    Args:
        robot: the controller's model.
        bandwidth: omega, scalar or (n,), in [rad/s].
    """
    omega = natural_frequencies(bandwidth, robot.n)
    return AccelerationGains(Kp=omega**2, Kv=2 * omega)
