from . import egm as egm
from . import rapid as rapid
