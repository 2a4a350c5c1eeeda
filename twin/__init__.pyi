from .control.analytic_plant import (
    AnalyticPlant as AnalyticPlant,
)
from .control.closed_loop import (
    run_closed_loop as run_closed_loop,
)
from .control.control_law import (
    ControlLaw as ControlLaw,
)
from .control.rollout import (
    run_rollouts as run_rollouts,
)
from .control.running_sensors import (
    RunningSensors as RunningSensors,
)
from .drives.drives import (
    Drives as Drives,
)
from .drives.sensors import (
    Sensors as Sensors,
)
from .dynamics.constrained import (
    constrained_forward_dynamics as constrained_forward_dynamics,
)
from .dynamics.constrained import (
    surface_constraint as surface_constraint,
)
from .dynamics.drive_torques import (
    drive_inverse_dynamics as drive_inverse_dynamics,
)
from .dynamics.drive_torques import (
    friction_torque as friction_torque,
)
from .dynamics.drive_torques import (
    reflected_inertia as reflected_inertia,
)
from .dynamics.dynamic_parameters import (
    dynamic_parameters as dynamic_parameters,
)
from .dynamics.dynamic_parameters import (
    with_dynamic_parameters as with_dynamic_parameters,
)
from .dynamics.equation_of_motion import (
    coriolis_matrix as coriolis_matrix,
)
from .dynamics.equation_of_motion import (
    energy as energy,
)
from .dynamics.equation_of_motion import (
    forward_dynamics as forward_dynamics,
)
from .dynamics.equation_of_motion import (
    gravity_torque as gravity_torque,
)
from .dynamics.equation_of_motion import (
    inverse_dynamics as inverse_dynamics,
)
from .dynamics.equation_of_motion import (
    mass_matrix as mass_matrix,
)
from .dynamics.flexible_joint_motion import (
    simulate_flexible_joint as simulate_flexible_joint,
)
from .dynamics.operational_space import (
    operational_space as operational_space,
)
from .dynamics.regressor import (
    dynamics_regressor as dynamics_regressor,
)
from .engine.simulation import (
    Simulation as Simulation,
)
from .identification.drives.elastic_joint import (
    identify_elastic_joint as identify_elastic_joint,
)
from .identification.drives.friction_curve import (
    friction_curve as friction_curve,
)
from .identification.drives.friction_law import (
    fit_friction as fit_friction,
)
from .identification.identify import (
    Identification as Identification,
)
from .identification.identify import (
    identify as identify,
)
from .identification.measurements import (
    Filtering as Filtering,
)
from .identification.measurements import (
    Measurements as Measurements,
)
from .identification.measurements import (
    filtered_measurements as filtered_measurements,
)
from .identification.measurements import (
    measurements_of_log as measurements_of_log,
)
from .kinematics.differential import (
    analytic_jacobian as analytic_jacobian,
)
from .kinematics.differential import (
    analytic_jacobian_dot as analytic_jacobian_dot,
)
from .kinematics.differential import (
    analytic_jacobian_inverse as analytic_jacobian_inverse,
)
from .kinematics.differential import (
    inverse_acceleration as inverse_acceleration,
)
from .kinematics.differential import (
    inverse_velocity as inverse_velocity,
)
from .kinematics.forward import (
    dh_angles as dh_angles,
)
from .kinematics.forward import (
    forward_kinematics as forward_kinematics,
)
from .kinematics.forward import (
    jacobian as jacobian,
)
from .kinematics.forward import (
    jacobian_dot as jacobian_dot,
)
from .kinematics.forward import (
    joint_angles as joint_angles,
)
from .kinematics.forward import (
    pose_jacobian as pose_jacobian,
)
from .kinematics.inverse import (
    inverse_kinematics as inverse_kinematics,
)
from .kinematics.inverse_stages import (
    main_axis_angles as main_axis_angles,
)
from .kinematics.inverse_stages import (
    wrist_axis_angles as wrist_axis_angles,
)
from .kinematics.manipulability import (
    force_ellipsoid as force_ellipsoid,
)
from .kinematics.manipulability import (
    manipulability_measure as manipulability_measure,
)
from .kinematics.manipulability import (
    singular_configuration as singular_configuration,
)
from .kinematics.manipulability import (
    velocity_ellipsoid as velocity_ellipsoid,
)
from .kinematics.numerical_inverse import (
    numerical_inverse_kinematics as numerical_inverse_kinematics,
)
from .kinematics.pose_coordinates import (
    tool_coordinates as tool_coordinates,
)
from .kinematics.statics import (
    cross_matrix as cross_matrix,
)
from .kinematics.statics import (
    mobility as mobility,
)
from .kinematics.statics import (
    twist_transform as twist_transform,
)
from .kinematics.statics import (
    wrench_torque as wrench_torque,
)
from .kinematics.statics import (
    wrench_transform as wrench_transform,
)
from .loading.announced_robots import (
    announced_robots as announced_robots,
)
from .loading.dh_tables import (
    LinkBody as LinkBody,
)
from .loading.dh_tables import (
    dh_robot as dh_robot,
)
from .loading.loading import (
    laboratory_names as laboratory_names,
)
from .loading.loading import (
    load as load,
)
from .loading.loading import (
    robot_names as robot_names,
)
from .loading.model_check import (
    check_model as check_model,
)
from .logs.log import (
    Log as Log,
)
from .recordings.reading import (
    read_recording as read_recording,
)
from .recordings.recording import (
    joint_recording as joint_recording,
)
from .recordings.recording import (
    tool_recording as tool_recording,
)
from .recordings.recording import (
    write_recording as write_recording,
)
from .recordings.torque_recording import (
    TableForm as TableForm,
)
from .recordings.torque_recording import (
    TorqueRecording as TorqueRecording,
)
from .recordings.torque_recording import (
    read_torque_recording as read_torque_recording,
)
from .recordings.torque_recording import (
    torque_recording as torque_recording,
)
from .robot.dh_frames import (
    dh_poses as dh_poses,
)
from .robot.dh_frames import (
    dh_transforms as dh_transforms,
)
from .robot.robot import (
    DH as DH,
)
from .robot.robot import (
    Payload as Payload,
)
from .robot.robot import (
    Robot as Robot,
)
from .spatial.euler_angles import (
    axis_angle_from_matrix as axis_angle_from_matrix,
)
from .spatial.euler_angles import (
    euler_from_matrix as euler_from_matrix,
)
from .spatial.euler_angles import (
    euler_rate_inverse as euler_rate_inverse,
)
from .spatial.euler_angles import (
    euler_rate_matrix as euler_rate_matrix,
)
from .spatial.euler_angles import (
    matrix_from_axis_angle as matrix_from_axis_angle,
)
from .spatial.euler_angles import (
    matrix_from_euler as matrix_from_euler,
)
from .spatial.quaternions import (
    quaternion_conjugate as quaternion_conjugate,
)
from .spatial.quaternions import (
    quaternion_from_polar as quaternion_from_polar,
)
from .spatial.quaternions import (
    quaternion_inverse as quaternion_inverse,
)
from .spatial.quaternions import (
    quaternion_norm as quaternion_norm,
)
from .spatial.quaternions import (
    quaternion_polar as quaternion_polar,
)
from .spatial.quaternions import (
    rotated_vector as rotated_vector,
)
from .spatial.rotations import (
    matrix_from_quaternion as matrix_from_quaternion,
)
from .spatial.rotations import (
    pose_matrix as pose_matrix,
)
from .spatial.rotations import (
    pose_vector as pose_vector,
)
from .spatial.rotations import (
    quaternion_from_matrix as quaternion_from_matrix,
)
from .spatial.rotations import (
    quaternion_product as quaternion_product,
)
from .spatial.rotations import (
    quaternion_rate as quaternion_rate,
)
from .sweeps.sweep import (
    Sweep as Sweep,
)
from .sweeps.sweep import (
    sweep as sweep,
)
from .trajectories.joint_paths import (
    joint_path as joint_path,
)
from .trajectories.joint_trajectories import (
    hold as hold,
)
from .trajectories.joint_trajectories import (
    quintic as quintic,
)
from .trajectories.joint_trajectories import (
    sequence as sequence,
)
from .trajectories.joint_trajectories import (
    sines as sines,
)
from .trajectories.recorded_motion import (
    recorded_motion as recorded_motion,
)
from .trajectories.sampling import (
    recursion_consistent as recursion_consistent,
)
from .trajectories.sampling import (
    sample as sample,
)
from .version import (
    __version__ as __version__,
)
from .views.comparison import (
    compare as compare,
)
from .views.film import (
    film as film,
)
