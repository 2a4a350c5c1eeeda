from .cell import Cell as Cell
from .cell import load_cell as load_cell
from .clearance import Clearance as Clearance
from .clearance import Nearest as Nearest
from .closest import Closest as Closest
from .closest import least_distance as least_distance
