"""Languages and protocols of ABB's controllers: RAPID, EGM, a virtual controller, Robot Web Services."""

from importlib.util import find_spec

import lazy_loader

from twin.base.errors import TwinError

for _package in ("lark", "google.protobuf", "websockets"):
    try:
        _found = find_spec(_package)  # without an import, which takes time
    except ImportError:  # there is no package `google` at all
        _found = None
    if _found is None:
        raise TwinError(
            f"ABB's programs and protocols need more packages, {_package} is missing: "
            "pip install 'irb-twin[abb]'"
        )

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
