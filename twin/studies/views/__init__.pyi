from .browser import Replay as Replay
from .browser import View as View
from .comparison import Comparison as Comparison
from .film import Film as Film
from .plots import Plot as Plot
