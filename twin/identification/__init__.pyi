from .bias_check import check_bias as check_bias
from .drives.elastic_joint import identify_elastic_joint as identify_elastic_joint
from .drives.friction_law import fit_friction as fit_friction
from .drives.friction_law import friction_curve as friction_curve
from .measurements import Filtering as Filtering
from .measurements import filtered_measurements as filtered_measurements
from .measurements import measurements_of_log as measurements_of_log
