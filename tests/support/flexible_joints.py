"""Two-mass joints: the joint that Norrlöf identified, and a joint with every kind of damping."""

from twin.dynamics.flexible_joint import FlexibleJoint

JM, JA, FM, K, GEAR = 5.9e-4, 5.2e-2, 1.3e-2, 677.2, 118.461539  # Norrlöf 1999, Table 3.1
R = 1 / GEAR
IDENTIFIED = FlexibleJoint.reported(JM, JA, K, R, FM)
DAMPED = FlexibleJoint(Jm=0.7, Ja=2.3, k=31.0, r=-0.4, fm=0.2, fa=0.5, d=1.1)
