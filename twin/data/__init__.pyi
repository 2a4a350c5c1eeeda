from . import identification as identification
from . import logs as logs
