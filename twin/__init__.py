"""Digital twin of ABB arms: exact analytic models beside a physics engine.

The library has five wings, from the bottom up: `base` (errors, compilation, processes), `physics` (robots,
their dynamics and control, the engine), `data` (logs, identification), `studies` (sweeps, learning, cells,
views) and `abb` (RAPID, EGM, a virtual controller).

Every public name can be imported from here, and the rooms of the wings can, too: `twin.kinematics` is
`twin.physics.kinematics`.  A module is loaded when a name of it is first used, so that `import twin` is fast.
The names are declared in `__init__.pyi`, where type checkers find them, too.
"""

import lazy_loader

from twin.base.sibling_packages import import_urdf
from twin.base.wings import find_public_rooms

find_public_rooms()
import_urdf()
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
