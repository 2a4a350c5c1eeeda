"""Whole features, each against the plainest program that does the same with another library."""

import http.server
import threading
from collections.abc import Iterator
from itertools import combinations, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pinocchio as pin
import requests
from requests.auth import HTTPDigestAuth

import twin
from scenarios import JointTracking
from tests.bench.time_laws import toppra_motion
from tests.bench.timing import Meter, NotComparableError, Row, peer, same
from tests.support.peers import Pinocchio
from tests.support.web_services import USER, WebServices
from twin.physics.robot.robot import Robot
from twin.studies.cell.clearance import Clearance


def rows(robot: Robot, meter: Meter) -> Iterator[Row]:
    """Compare a check of a program, distances to a cell, an identification and a request."""
    yield from _rapid(robot, meter)
    yield from _distances(robot, meter)
    yield _identification(robot, meter)
    yield from _request(robot, meter)


def _rapid(robot: Robot, meter: Meter) -> Iterator[Row]:
    """Compare the check of a program with TOPP-RA on the joint angles of its path, ten a move.

    The check reads the program, finds the joint angles of its targets, rounds the corners and plans;
    TOPP-RA gets the angles.
    """
    moves = 20 if meter.is_short else 2000
    targets = np.cumsum(np.random.default_rng(0).uniform(-0.05, 0.05, (moves, robot.n)), axis=0)
    targets = robot.poses["test_1"] + 0.5 * np.sin(targets)
    text = twin.rapid.export(robot, targets)

    def check():
        program = twin.rapid.interpret(twin.rapid.parse(text), robot, moves=moves + 1)
        plan, fault = twin.rapid.check(program, robot)
        assert fault is None
        assert len(plan.moves) >= moves
        return plan

    if peer("toppra") is not None:
        path = np.concatenate([np.linspace(a, b, 10, endpoint=False) for a, b in pairwise(targets)])
        yield meter.compare(
            f"rapid check of {moves} moves, a move", "TOPP-RA on their joint angles", check,
            toppra_motion(robot, path), ours_per_call=moves, theirs_per_call=moves, goal=None,
        )  # fmt: skip


CELL = """
[objects.table]
box = [0.6, 0.8, 0.04]
at = [0.7, -0.2, 0.1]
[objects.left_post]
cylinder = 0.05
from = [0, 0.6, 0]
to = [0, 0.6, 1.5]
[objects.right_post]
cylinder = 0.05
from = [0, -0.6, 0]
to = [0, -0.6, 1.5]
"""


def _distances(robot: Robot, meter: Meter) -> Iterator[Row]:
    """Compare the least distance at each of many configurations with that of Pinocchio and coal."""
    with TemporaryDirectory() as folder:
        file = Path(folder, "cell.toml")
        file.write_text(CELL)
        clearance = Clearance(robot, twin.load_cell(file))
    model, geometry = Pinocchio(robot.urdf, robot.joint_names).model, pin.GeometryModel()
    for number, solid in enumerate(clearance.solids):
        joint = max(solid.body, -1) + 1  # the order of the joints is equal
        place = pin.SE3(solid.T)
        geometry.addGeometryObject(pin.GeometryObject(f"{number}", joint, place, solid.geometry))
    for i, j in combinations(range(len(clearance.solids)), 2):
        if (clearance.solids[i].name, clearance.solids[j].name) in clearance.pairs:
            geometry.addCollisionPair(pin.CollisionPair(i, j))
    data, distances = model.createData(), geometry.createData()
    q = np.random.default_rng(0).uniform(-0.8, 0.8, (20 if meter.is_short else 500, robot.n))

    def theirs():
        found = []
        for one in q:
            pin.computeDistances(model, data, geometry, distances, one)
            found.append(min(result.min_distance for result in distances.distanceResults))
        return found

    yield meter.compare(
        "distance to a cell, a configuration", f"pin.computeDistances, {len(geometry.collisionPairs)} pairs",
        lambda: [nearest.distance for nearest in clearance.nearest_each(q) if nearest], theirs,
        ours_per_call=len(q), theirs_per_call=len(q), calls=5, agree=lambda a, b: same(a, b, 1e-4), goal=None,
    )  # fmt: skip


def _identification(robot: Robot, meter: Meter) -> Row:
    """Compare an identification with weighted least squares on Pinocchio's regressor, in numpy.

    Ours has the deviations of the parameters, too, and tests the recording.
    """
    log = JointTracking(duration=4.0).run().log
    log_tau, qdd = log.tau[:-1], np.diff(log.qd, axis=0) / log.time_step  # exact, as the engine's steps are
    model = Pinocchio(robot.urdf, robot.joint_names).model
    data = model.createData()

    def theirs():
        samples = zip(log.q[:-1], log.qd[:-1], qdd, strict=True)
        Y = np.concatenate([pin.computeJointTorqueRegressor(model, data, *one).copy() for one in samples])
        tau, weights = log_tau.ravel(), np.ones(len(Y))
        for _ in range(2):  # joints by the deviation of their residuals
            pi, *_ = np.linalg.lstsq(Y * weights[:, None], tau * weights)
            residuals = (tau - Y @ pi).reshape(log_tau.shape)
            weights = np.tile(1.0 / (np.std(residuals, axis=0) + 1e-9), len(qdd))
        return (Y @ pi).reshape(log_tau.shape)

    return meter.compare(
        f"identification, {len(log.t)} samples", "least squares in numpy",
        lambda: twin.identify(robot, log), theirs, calls=5, goal=None,
        agree=lambda found, tau: same(found.predicted(found.measured[0])[2], tau, 1e-6),
    )  # fmt: skip


PATH = "/rw/panel/speedratio"


def _request(robot: Robot, meter: Meter) -> Iterator[Row]:
    """Compare a request of Robot Web Services with one for the same text from Python's plain HTTP server.

    Both have one connection, and one session with a login.
    """
    with (
        TemporaryDirectory() as folder,
        WebServices(robot, Path(folder)) as served,
        requests.Session() as session,
    ):
        answer = session.get(served.url + PATH, auth=HTTPDigestAuth(*USER))
        assert answer.status_code == 200, answer.text

        class Plain(http.server.BaseHTTPRequestHandler):
            protocol_version, disable_nagle_algorithm = "HTTP/1.1", True

            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer.content)))
                self.end_headers()
                self.wfile.write(answer.content)

            def log_message(self, *_):
                pass

        plain = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Plain)
        threading.Thread(target=plain.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{plain.server_port}/"

        def same_text(ours, theirs):
            if ours != theirs:
                raise NotComparableError(f"not comparable: {ours!r} beside {theirs!r}")

        yield meter.compare(
            "request of Robot Web Services", "the same text, Python's http.server",
            lambda: session.get(served.url + PATH).text, lambda: session.get(url).text, calls=300, goal=None,
            agree=same_text,
        )  # fmt: skip
        plain.shutdown()
        plain.server_close()
