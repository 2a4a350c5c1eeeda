"""Digital twin of ABB arms: exact analytic models beside a physics engine.

Every public name can be imported from here.  Its module is loaded when the name is first used, so that
`import twin` is fast.  The names are declared in `__init__.pyi`, where type checkers find them, too.
"""

import lazy_loader

from twin.base.sibling_packages import import_urdf

import_urdf()
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
