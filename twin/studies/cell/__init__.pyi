from .cell import Closest as Closest
from .cell import Nearest as Nearest
from .clearance import Clearance as Clearance
from .clearance import least_distance as least_distance
from .reach import Envelope as Envelope
from .reach import PlaneMap as PlaneMap
from .reach import envelope as envelope
from .reach import plane_map as plane_map
