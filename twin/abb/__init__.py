"""What ABB's controllers speak: RAPID, EGM, a virtual controller, Robot Web Services."""

import lazy_loader

from twin.base.errors import TwinError

try:
    import lark as lark
    import websockets as websockets
    from google import protobuf as protobuf
except ImportError as error:
    raise TwinError(
        f"ABB's programs and protocols need more packages ({error}): pip install 'irb-twin[abb]'"
    ) from error

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
