"""Robot Web Services of a virtual controller for tests, whose cycles run fast while a program runs."""

import threading
import time

from tests.support.virtual_cell import VirtualCell, tasks_of_folder
from twin.abb.controller.controller import rehearse
from twin.abb.rapid.signals import Signals
from twin.abb.rws.cabinet import Cabinet
from twin.abb.rws.server import RobotWebServices

USER = "Default User", "robotics"

PROGRAM = """MODULE M
CONST jointtarget a:=[[0,0,0,0,30,0],[9E9,9E9,9E9,9E9,9E9,9E9]];
CONST jointtarget b:=[[5,0,0,0,30,0],[9E9,9E9,9E9,9E9,9E9,9E9]];
PERS num count:=0; PERS bool ready:=TRUE; PERS string note:="x"; VAR num hidden:=3; LOCAL PERS num own:=1;
PERS num list{3}:=[1,2,3]; PERS num table{2,2}:=[[1,2],[3,4]]; PERS dnum wide:=4;
PERS robtarget p:=[[500,0,700],[0.5,0.5,0.5,0.5],[0,0,0,0],[9E9,9E9,9E9,9E9,9E9,9E9]];
PERS jointtarget jt:=[[5,0,0,0,30,0],[9E9,9E9,9E9,9E9,9E9,9E9]];
PERS jointtarget jts{1}:=[[[5,0,0,0,30,0],[9E9,9E9,9E9,9E9,9E9,9E9]]];
TASK PERS tooldata tGripper:=[TRUE,[[0,0,100],[1,0,0,0]],[1,[0,0,1],[1,0,0,0],0,0,0]];
TASK PERS wobjdata wobjTableN:=[FALSE,TRUE,"",[[400,0,0],[1,0,0,0]],[[0,0,0],[1,0,0,0]]];
PERS zonedata zone:=[FALSE,10,15,15,1.5,15,1.5]; PERS speeddata speed:=[100,500,5000,1000];
PROC main()
  ready := FALSE;
  MoveAbsJ b, v1000, fine, tool0;
  Incr count;
  SetDO do1, 1;
  MoveAbsJ a, v1000, fine, tool0;
  ready := TRUE;
ENDPROC
ENDMODULE
"""


def signals():
    """Return the signals of the cell."""
    return Signals({}, declared={"do1": "DO", "di1": "DI", "ao1": "AO", "DoGrip": "DO"})


class WebServices:
    """Virtual controller with its services, and a thread that runs its cycles.

    Args:
        robot: its arm.
        folder: empty folder for modules and files.
        modules: texts of modules by the names of their tasks.
        version: version of the services.
        strict, tls, port: of the services; port 0 is a free one.
        given: further arguments of the controller; `settings` of its tasks in place of modules.
    """

    def __init__(self, robot, folder, modules=None, version=1, strict=False, tls=None, port=0, **given):
        modules_folder, self.home = folder / "modules", folder / "home"
        modules_folder.mkdir()
        self.home.mkdir()
        for name, text in (modules or {"T_ROB1": PROGRAM}).items():
            (modules_folder / f"{name}.mod").write_text(text)
        settings = given.pop("settings", None) or tasks_of_folder(modules_folder)
        given = {"signals": signals(), "home": self.home, **given}
        self.cell = VirtualCell(robot, settings, starts=False, **given)
        self.controller = self.cell.controller
        rehearse(robot, self.controller.arm.q, self.controller.limits)  # compiles, as a session does
        for _ in range(2):
            self.controller.cycle()
        self.services = RobotWebServices(
            Cabinet(self.controller, self.home, version, strict), ("127.0.0.1", port), tls
        )
        self.url, self.port = self.services.url, self.services.port
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        while not self._closing.is_set():
            self.controller.cycle()
            time.sleep(1e-3 if self.controller.execution.executing or not self.controller.rests else 1e-2)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.services.close()
        self._closing.set()
        self._thread.join()
        self.cell.__exit__()


def wait_until(holds, seconds=10.0):
    """Wait until a condition holds, and return its value."""
    end = time.monotonic() + seconds
    while not (value := holds()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(1e-3)
    return value
