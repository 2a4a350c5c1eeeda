"""A digital twin of ABB arms: exact analytic models beside a physics engine.

Every public name can be imported from here; its module is loaded when the name is first used, so that
`import twin` costs nothing.  The names stand in `__init__.pyi`, where type checkers look for them, too.
"""

import lazy_loader

from twin.sibling_packages import import_urdf

import_urdf()
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
