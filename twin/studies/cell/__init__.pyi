from .clearance import Clearance as Clearance
from .clearance import Nearest as Nearest
from .closest import Closest as Closest
from .closest import least_distance as least_distance
from .reach import Envelope as Envelope
from .reach import PlaneMap as PlaneMap
from .reach import envelope as envelope
from .reach import plane_map as plane_map
