"""Control laws that are not ours: how they are named, made, called, and what is said when they are wrong."""

import sys

import numpy as np
import pytest

import controllers
from controllers.plugin_controllers import MyController
from scenarios.shell.command_line import main
from tests.support.refusals import refused
from tests.support.tasks import executed
from twin.base.errors import PluginError, UnknownNameError
from twin.physics.control.control_law import ControlLaw
from twin.physics.trajectories.sampling import Reference, State

LAWS = '''
"""Laws of somebody's."""
import numpy as np
import controllers
from twin.physics.control.control_law import ControlLaw

def plain(state, reference, *, Kp=100.0):
    """A spring at every joint."""
    return Kp * (reference.q - state.q)

def spring(state, reference, parameters, memory, model):
    return parameters[0] * (reference.q - state.q)

def factory(robot, Kp=7.0):
    return ControlLaw(robot, spring, (Kp,))

class Usual:
    def __init__(self, robot, *, bandwidth=20.0, period=1e-3):
        self.robot, self.bandwidth, self.period = robot, bandwidth, period
    def __call__(self, state, reference):
        return np.full(self.robot.n, self.bandwidth + self.period)

class Counts:
    """Remembers, and has no reset."""
    def __init__(self):
        self.calls = 0
    def __call__(self, state, reference):
        self.calls += 1
        return np.full(6, float(self.calls))

class Inherits(controllers.law("pd")):
    pass

class Greedy:
    def __init__(self, *args, **settings):
        self.args, self.settings = args, settings
    def __call__(self, state, reference):
        return np.zeros(6)

class Needs:
    def __init__(self, robot, boundary):
        pass

class Refuses:
    def __init__(self, robot, boundary=0.0):
        raise ValueError("expected a boundary above 0")

class Breaks:
    def __init__(self, robot):
        self.gone.gone()

def adds(state, reference, parameters, memory, model):
    return np.zeros(6) + np.zeros(3)

def compiled_wrong(robot):
    return ControlLaw(robot, adds)

class NoLaw:
    def __init__(self, robot):
        pass

class Inner:
    class Deep(Counts):
        pass

def compiled_form(state, reference, parameters, memory, model):
    return np.zeros(6)

def short(state, reference):
    return np.zeros(3)

def fails(state, reference):
    return [][0]

number = 3
'''
ONES = Reference(np.ones(6), np.zeros(6), np.zeros(6))
REST = State(0.25, np.zeros(6), np.zeros(6))


@pytest.fixture
def laws(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "laws.py").write_text(LAWS, encoding="utf-8")
    monkeypatch.delitem(sys.modules, "laws", raising=False)  # of a page of the docs that ran before
    return lambda name: f"./laws.py:{name}"


def test_a_plain_function_is_a_law(laws, irb140):
    law = controllers.make(laws("plain"), irb140)
    assert law.name == "plain"
    np.testing.assert_array_equal(law(REST, ONES), np.full(6, 100.0))
    assert controllers.make(laws("plain"), irb140, Kp=3.0)(REST, ONES).tolist() == [3.0] * 6
    assert controllers.settings(laws("plain")) == ("Kp",)
    assert controllers.title(laws("plain")) == "A spring at every joint."


def test_a_factory_may_make_a_law_that_rollouts_compile(laws, irb140):
    law = controllers.make(laws("factory"), irb140, Kp=9.0)
    assert isinstance(law, ControlLaw)
    assert law.name == "factory"
    np.testing.assert_array_equal(law(REST, ONES), np.full(6, 9.0))


def test_a_class_gets_the_keywords_that_it_has(laws, irb140):
    law = controllers.make(laws("Usual"), irb140, bandwidth=12.0, period=0.5)
    np.testing.assert_array_equal(law(REST, ONES), np.full(6, 12.5))
    assert controllers.settings(laws("Usual")) == ("bandwidth", "period")
    greedy = controllers.make(laws("Greedy"), irb140, depth=3)
    assert isinstance(greedy, MyController)
    assert greedy._law.args == (irb140,)
    assert greedy._law.settings == {"bandwidth": 20.0, "period": 1e-3, "depth": 3}


def test_controller_without_reset_is_made_again(laws, irb140):
    """It may be in a module of the current folder, and its name within another name."""
    law = controllers.make("laws:Inner.Deep", irb140)
    assert [law(REST, ONES)[0] for _ in range(2)] == [1.0, 2.0]
    law.reset()
    assert law(REST, ONES)[0] == 1.0


def test_subclass_of_a_builtin_controller_has_another_name(laws, irb140):
    law = controllers.make(laws("Inherits"), irb140, Kp=1.0)
    assert law.name == "Inherits"
    assert controllers.settings(laws("Inherits")) == ("bandwidth", "period", "Kp", "Kd")
    assert controllers.make("pd", irb140).name == "pd"


def test_object_that_is_no_controller_is_rejected(laws, irb140):
    def make(name):
        return lambda: controllers.make(laws(name), irb140)

    refused(
        (make("nix"), r"'./laws.py:nix': there is no 'nix' in it; it defines plain, spring, fa"),
        (make("number"), "controller './laws.py:number' is 3, expected a class, a factory or a function"),
        (make("Needs"), r"'./laws.py:Needs' needs a value of 'boundary': use --set boundary=..."),
        (make("Breaks"), r"'./laws.py:Breaks' cannot be made: .*laws.py, line 50: AttributeError"),
        (make("NoLaw"), "made <user_file.*, expected a callable"),
        (
            make("compiled_form"),
            r"expected a law .* got a function of state, reference, parameters, memory, m",
        ),
        error=PluginError,
    )


def test_settings_that_a_law_does_not_have_or_refuses(laws, irb140):
    with pytest.raises(PluginError, match=r"controller './laws.py:plain' has no setting 'Kd': it has Kp"):
        controllers.make(laws("plain"), irb140, Kd=1.0)
    with pytest.raises(PluginError, match="'pd' has no setting 'Ki': it has bandwidth, period, Kp, Kd"):
        controllers.make("pd", irb140, Ki=1.0)
    with pytest.raises(ValueError, match=r"^expected a boundary above 0$"):
        controllers.make(laws("Refuses"), irb140)


def test_a_name_of_nothing(laws):
    for name, told in (
        ("./gone.py:Law", "no such controller file: './gone.py'"),
        ("./laws.py", "add the class or function of the file, as ./laws.py:Law"),
        ("lqr", "unknown controller 'lqr': known are pd, .*, or that of a file or a module, ./my.py:Law"),
    ):
        with pytest.raises(UnknownNameError, match=told):
            controllers.require_known(name)


@pytest.mark.parametrize("text", ["import nothing_of_the_kind", "def (", "raise SystemExit(0)"])
def test_a_file_that_does_not_load(tmp_path, irb140, text):
    (tmp_path / "law.py").write_text(text, encoding="utf-8")
    with pytest.raises(PluginError, match=r"cannot load controller '.*law.py:Law': "):
        controllers.make(f"{tmp_path}/law.py:Law", irb140)


def test_changed_file_is_loaded_again(tmp_path, irb140):
    file = tmp_path / "law.py"
    for value in ("1.5", "2.5", "20.25"):  # of one length, within one second
        file.write_text(f"def law(state, reference):\n    return {value}\n", encoding="utf-8")
        assert controllers.make(f"{file}:law", irb140)(REST, ONES) == float(value)


def test_labels_stay_apart():
    names = ["pd", "./a.py:Law", "./b/b.py:Law", "./c/b.py:Law", "./c.py:Other"]
    labels = controllers.labels(names)
    assert len(set(labels.values())) == len(names)
    assert labels["pd"] == "pd"
    assert labels["./a.py:Law"] == "a.Law"
    assert labels["./c.py:Other"] == "Other"


def held(controller, duration=0.01, **settings):
    """Return the run of a scenario that holds a pose."""
    return executed(controller=controller, duration=duration, **settings)


def test_a_run_under_a_law_that_is_wrong(laws, capfd):
    for law, is_refused, told in (
        ("short", False, "controller 'short' returned tau of shape (3,) at t = 0 s, expected 6 real numbers"),
        ("fails", False, "laws.py, line 73: IndexError: list index out of range"),
        ("nix", False, "there is no 'nix' in it"),
        ("compiled_wrong", False, "laws.py, line 53: ValueError: operands could not be broadcast together"),
    ):
        run = held(laws(law))
        assert told in run.error
        assert run.refused is is_refused
    assert main(["run", "gravity_hold", "--duration", "0.01", "--controller", laws("fails")]) == 1
    assert "laws.py, line 73: IndexError" in " ".join("".join(capfd.readouterr()).split())


def test_nothing_is_claimed_of_a_law_that_is_not_known(laws):
    gains = (("Kp", (900.0, 900.0, 900.0, 9.0, 9.0, 9.0)),)
    for controller, settings, known in (
        (laws("Inherits"), (), False),
        ("pd", gains, False),
        ("pd", (), True),
    ):
        names = [metric.name for metric in held(controller, law_settings=settings).metrics]
        assert ("last error - predicted one" in names) is known


def test_a_law_that_switches_is_no_fault_of_the_twin(tmp_path):
    """Rounding decides when it switches, so engine and model part; step by step they agree."""
    law = (
        "import numpy as np\ndef jumps(state, reference):\n"
        "    e = reference.q - state.q + 0.05 * (reference.qd - state.qd)\n"
        "    return np.array([60, 150, 60, 0.3, 0.05, 0.001]) * np.sign(e)\n"
    )
    (tmp_path / "jumps.py").write_text(law, encoding="utf-8")
    metrics = {metric.name: metric for metric in held(f"{tmp_path}/jumps.py:jumps", 0.3).metrics}
    assert metrics["engine - model, whole run"].limit is None
    assert metrics["engine - model, one step"].outcome == "passes"
