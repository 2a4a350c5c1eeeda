"""Trigonometry and principal axes in 50-digit decimal arithmetic.

A URDF that is committed must rebuild to the same bytes on every machine, but the last bits of an
eigenvalue or an arc tangent differ between processors, LAPACKs and C libraries. Decimal arithmetic is
specified digit by digit, so computed here and rounded to a double once, a number is the same everywhere
(and the nearest double to the true value).

Vectors are lists of 3 and matrices lists of 3 rows of `Decimal`.
"""

from collections.abc import Sequence
from decimal import Context, Decimal, localcontext

DIGITS = 50
Vector = list[Decimal]
Matrix = list[list[Decimal]]

PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494")


def arc_tangent(y: Decimal, x: Decimal) -> Decimal:
    """Return the angle of the point (x, y) from the x axis, in (-pi, pi], in [rad]; 0 at the origin."""
    if y == 0:
        return PI if x < 0 else Decimal(0)
    if x < 0:
        return arc_tangent(-y, -x) + (PI if y > 0 else -PI)
    if abs(y) > x:
        steep = PI / 2 - arc_tangent(x, abs(y))
        return steep if y > 0 else -steep
    t = y / x
    halvings = 4
    for _ in range(halvings):  # atan t = 2 atan(t / (1 + sqrt(1 + t^2))), until the series is short
        t = t / (1 + (1 + t * t).sqrt())
    total, power, k = Decimal(0), t, 0
    while abs(power) > Decimal(10) ** -(DIGITS + 5):
        total += power / (2 * k + 1)
        power, k = -power * t * t, k + 1
    return total * 2**halvings


def radians(degrees: Decimal) -> Decimal:
    """Convert an angle from degrees to radians."""
    return degrees * PI / 180


def matmul(A: Matrix, B: Matrix) -> Matrix:
    """Return the product of two (3, 3) matrices."""
    return [[sum((A[i][k] * B[k][j] for k in range(3)), Decimal(0)) for j in range(3)] for i in range(3)]


def rotate(R: Matrix, v: Sequence[Decimal]) -> Vector:
    """Return the product of a (3, 3) matrix and a (3,) vector."""
    return [sum((R[i][k] * v[k] for k in range(3)), Decimal(0)) for i in range(3)]


def roll_pitch_yaw(R: Matrix) -> Vector:
    """Return the URDF angles of a rotation, `R = Rz(yaw) Ry(pitch) Rx(roll)`.

    Args:
        R: (3, 3) rotation matrix.

    Returns:
        (3,) roll, pitch, yaw in [rad], the pitch in [-pi/2, pi/2]; at a pitch of +-pi/2, where only a sum or
        a difference of roll and yaw is defined, the roll is 0.
    """
    cos_pitch = (R[0][0] ** 2 + R[1][0] ** 2).sqrt()
    pitch = arc_tangent(-R[2][0], cos_pitch)
    if cos_pitch == 0:
        return [Decimal(0), pitch, arc_tangent(-R[0][1], R[1][1])]
    return [arc_tangent(R[2][1], R[2][2]), pitch, arc_tangent(R[1][0], R[0][0])]


def principal_axes(inertia: Matrix) -> tuple[Vector, Matrix]:
    """Return principal moments and axes of an inertia tensor, by Jacobi's rotations.

    Every rotation is by at most 45 degrees, and a diagonal tensor remains unchanged.  Therefore the
    axes stay in the order of the frame's axes and right-handed, with no sign left to choose.

    Args:
        inertia: (3, 3) symmetric tensor, in [kg m^2].

    Returns:
        (3,) moments in [kg m^2] and (3, 3) rotation R with the axes as columns,
        `inertia = R diag(moments) R^T`.
    """
    A = [list(row) for row in inertia]
    R = [[Decimal(int(i == j)) for j in range(3)] for i in range(3)]
    smallest = sum((abs(A[i][i]) for i in range(3)), Decimal(0)) * Decimal(10) ** -(DIGITS - 8)
    for _ in range(30):  # converges quadratically: six sweeps or so give 50 digits
        if max(abs(A[0][1]), abs(A[0][2]), abs(A[1][2])) <= smallest:
            break
        for i, j in ((0, 1), (0, 2), (1, 2)):
            if A[i][j] == 0:
                continue
            ratio = (A[j][j] - A[i][i]) / (2 * A[i][j])
            t = (1 if ratio >= 0 else -1) / (abs(ratio) + (1 + ratio * ratio).sqrt())
            c = 1 / (1 + t * t).sqrt()
            G = [[Decimal(int(k == m)) for m in range(3)] for k in range(3)]
            G[i][i], G[i][j], G[j][i], G[j][j] = c, t * c, -t * c, c
            A = matmul([list(row) for row in zip(*G, strict=True)], matmul(A, G))
            R = matmul(R, G)
    return [A[i][i] for i in range(3)], R


def precisely():
    """Return a context manager inside which `Decimal` works with `DIGITS` digits."""
    return localcontext(Context(prec=DIGITS))
