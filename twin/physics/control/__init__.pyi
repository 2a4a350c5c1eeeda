from . import supervision as supervision
from .control_law import Model as Model
from .control_law import compiled_law as compiled_law
from .control_law import is_compiled as is_compiled
from .rollout import Rollouts as Rollouts
from .signals import RunningSensors as RunningSensors
