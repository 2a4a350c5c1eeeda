"""Aliaga 2019: the cost of the Lagrange method with matrices of 4x4, whose torques are

    tau_i = sum_j sum_k tr(U_jk J_j U_ji^T) qdd_k + sum_j sum_k sum_m tr(U_jkm J_j U_ji^T) qd_k qd_m
            - sum_j m_j g^T U_ji r_j

for j from i to n, and k and m from 1 to j.  U_jk and U_jkm are the derivatives of 0A_j by q_k, and by q_k and
q_m; J_j is the pseudo-inertia of link j in its frame, and r_j its centre of mass.

Sources: J. Uicker, "On the dynamic analysis of spatial linkages using 4x4 matrices", dissertation (1965), on
the method; J. Hollerbach, IEEE Trans. on Systems, Man, and Cybernetics 10 (1980), on its order n^4.
"""

import numpy as np

import twin
from tests.published.items import Finding, Item, computes, largest, rng
from twin.data.identification.physical import pseudo_inertias
from twin.physics.multibody.tree import inertial_parameters
from twin.physics.robot.dh_tables import LinkBody
from twin.physics.robot.evaluation import uncompiled
from twin.physics.robot.robot import DH, GRAVITY, dh_transforms

LINKS = 8
TURN = np.zeros((4, 4))
TURN[0, 1], TURN[1, 0] = -1.0, 1.0


class Counted:
    """Products of 4x4 matrices that count their multiplications."""

    def __init__(self) -> None:
        self.multiplications = 0

    def product(self, *matrices: np.ndarray) -> np.ndarray:
        """Multiply matrices from left to right."""
        result, *others = matrices
        for one in others:
            result = result @ one
            self.multiplications += 64
        return result

    def trace(self, A: np.ndarray, B: np.ndarray) -> float:
        """Return the trace of `A B^T`."""
        self.multiplications += 16
        return float(np.sum(A * B))


def lagrange(dh: DH, bodies: list[LinkBody], q, qd, qdd) -> tuple[np.ndarray, int]:
    """Return the torques (n,) of revolute joints, and the number of multiplications of 4x4 matrices."""
    n, on = len(q), Counted()
    A = dh_transforms(dh, q + dh.theta0)
    T = {(i, i): np.eye(4) for i in range(n + 1)}  # from frame i to frame j
    for i in range(n):
        for j in range(i, n):
            T[i, j + 1] = on.product(T[i, j], A[j])
    tau = np.zeros(n)
    for j in range(1, n + 1):
        mass, com, tensor = (np.asarray(value) for value in bodies[j - 1])
        J = pseudo_inertias(inertial_parameters(float(mass), com, tensor))
        first = [on.product(T[0, k], TURN, T[k, j]) for k in range(j)]
        second = [
            [
                on.product(T[0, min(k, m)], TURN, T[min(k, m), max(k, m)], TURN, T[max(k, m), j])
                for m in range(j)
            ]
            for k in range(j)
        ]
        for i in range(j):
            right = on.product(first[i], J)
            tau[i] += mass * GRAVITY * (first[i] @ np.append(com, 1.0))[2]
            for k in range(j):
                tau[i] += on.trace(first[k], right) * qdd[k]
                for m in range(j):
                    tau[i] += on.trace(second[k][m], right) * qd[k] * qd[m]
    return tau, on.multiplications


@computes("T-On4")
def operations_of_the_lagrange_method(item: Item) -> Finding:
    """Compare the torques with inverse dynamics; take the differences of the multiplications by length."""
    generator, errors, counts = rng(), [], []
    for n in range(1, LINKS + 1):
        dh = DH(np.zeros(n), *(generator.normal(size=(3, n)) * [[0.3], [0.3], [2.0]]))
        points = 0.1 * generator.normal(size=(n, 5, 3))
        squares = np.einsum("bpi,bpj->bij", points, points)
        tensors = np.trace(squares, axis1=1, axis2=2)[:, None, None] * np.eye(3) - squares
        bodies = [LinkBody(5.0, 0.2 * generator.normal(size=3), tensor) for tensor in tensors]
        q, qd, qdd = generator.uniform(-3, 3, (3, n))
        tau, count = lagrange(dh, bodies, q, qd, qdd)
        right = twin.inverse_dynamics(uncompiled(twin.dh_robot("chain", dh, bodies=bodies)), q, qd, qdd)
        errors.append(largest(tau - right) / largest(right))
        counts.append(count)
    fourth = np.diff(np.array(counts, dtype=float), 4)
    return Finding(fourth[0], largest(*errors, np.diff(fourth), 1.0 if fourth[0] <= 0 else 0.0))
