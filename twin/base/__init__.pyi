from . import errors as errors
from . import plugins as plugins
