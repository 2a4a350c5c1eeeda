from . import cell as cell
from . import learning as learning
from . import sweeps as sweeps
from . import views as views
