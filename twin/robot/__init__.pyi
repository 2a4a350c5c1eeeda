from .loading.dh_tables import LinkBody as LinkBody
from .loading.loading import laboratory_names as laboratory_names
from .robot import DH as DH
from .robot import dh_poses as dh_poses
from .robot import dh_transforms as dh_transforms
