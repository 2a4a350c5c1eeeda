"""Values of RAPID: types, records and arrays, and the data that every controller predefines.

Numbers are kept as they are written; the results of arithmetic on `num` are rounded to single precision, and
comparisons round both sides, so that `0.1 + 0.2 = 0.3` holds as on a controller.
"""

from __future__ import annotations

import copy
import math
import struct
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from twin.base.errors import RapidError

SUFFIXES = ".mod", ".sys", ".prg", ".modx", ".sysx"
"""Suffixes of module files."""

_SINGLE = struct.Struct("f")


class Double(float):
    """Number of the type `dnum`, which arithmetic does not round to single precision."""


def rounded(value: float, *operands: Any) -> float:
    """Return the result of an operation: in single precision unless an operand is a `dnum`."""
    if any(isinstance(operand, Double) for operand in operands):
        return Double(value)
    try:
        return _SINGLE.unpack(_SINGLE.pack(value))[0]
    except OverflowError:
        raise RapidError(f"{value:g} is beyond the range of num, 3.4e38") from None


class Record:
    """Value of a record: its type's name, and the values of its components in order."""

    __slots__ = ("type", "values")

    def __init__(self, type: str, values: list[Any]) -> None:
        self.type = type
        self.values = values

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and self.type == other.type and self.values == other.values

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, name: str) -> Any:
        """Return the component of a predefined record by its name."""
        return self.values[COMPONENTS[self.type].index(name)]

    def changed(self, **components: Any) -> Record:
        """Return a predefined record with other values of these components."""
        names = COMPONENTS[self.type]
        return Record(self.type, [components.get(*pair) for pair in zip(names, self.values, strict=True)])

    def numbers(self) -> list[float]:
        """Return all numbers of the record in order, those of its components included."""
        return [
            number
            for value in self.values
            for number in (value.numbers() if isinstance(value, Record) else [value])
        ]

    def __repr__(self) -> str:
        return f"{self.type} {text_of(self)}"


def one_letter_beside(name: str, known: Iterable[str]) -> str:
    """Return the known name that differs from a name by one letter, "" if there is none.

    Names that differ by a digit, or as `di_x` and `do_x` do, are two names on purpose.
    """
    for one in known:
        longer, shorter = (one, name) if len(one) > len(name) else (name, one)
        if len(longer) - len(shorter) > 1 or len(shorter) < 3 or one == name:
            continue
        k = next((k for k, char in enumerate(shorter) if longer[k] != char), len(shorter))
        is_swapped = len(longer) == len(shorter)
        if longer[k + 1 :] != shorter[k + is_swapped :]:
            continue
        letters = {longer[k], *shorter[k : k + is_swapped]}
        if not any(char.isdigit() for char in letters) and not (letters == {"i", "o"} and k <= 1):
            return one
    return ""


def _split(text: str) -> list[str]:
    return text.split()


def copied(value: Any) -> Any:
    """Return a value that can be changed without changing the original."""
    if isinstance(value, Record):
        return Record(value.type, [copied(one) for one in value.values])
    if isinstance(value, list):
        return [copied(one) for one in value]
    return copy.copy(value)


PRINTED = 6
"""Significant digits of a num that a program prints: 1.234567 is "1.23457"."""


def text_of(value: Any, digits: int = 7) -> str:
    """Return a value as RAPID writes it, with so many digits of a num."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        return f"{value:.{15 if isinstance(value, Double) else digits}g}".replace("e", "E")
    if isinstance(value, str):
        return '"' + value.replace('"', '""') + '"'
    if isinstance(value, (Record, list)):
        items = value.values if isinstance(value, Record) else value
        return "[" + ",".join(text_of(one, digits) for one in items) + "]"
    return "-"


NUM, BOOL, STRING, DNUM = "num", "bool", "string", "dnum"
KINDS = {NUM: float, DNUM: float, BOOL: bool, STRING: str}

RECORDS: dict[str, tuple[tuple[str, str], ...]] = {
    record: tuple((name, type_) for type_, name in map(str.split, components.split(", ")))
    for record, components in {
        "pos": "num x, num y, num z",
        "orient": "num q1, num q2, num q3, num q4",
        "pose": "pos trans, orient rot",
        "confdata": "num cf1, num cf4, num cf6, num cfx",
        "robjoint": "num rax_1, num rax_2, num rax_3, num rax_4, num rax_5, num rax_6",
        "extjoint": "num eax_a, num eax_b, num eax_c, num eax_d, num eax_e, num eax_f",
        "robtarget": "pos trans, orient rot, confdata robconf, extjoint extax",
        "jointtarget": "robjoint robax, extjoint extax",
        "speeddata": "num v_tcp, num v_ori, num v_leax, num v_reax",
        "zonedata": "bool finep, num pzone_tcp, num pzone_ori, num pzone_eax, num zone_ori, num zone_leax, "
        "num zone_reax",
        "loaddata": "num mass, pos cog, orient aom, num ix, num iy, num iz",
        "tooldata": "bool robhold, pose tframe, loaddata tload",
        "wobjdata": "bool robhold, bool ufprog, string ufmec, pose uframe, pose oframe",
        "progdisp": "pose pdisp, extjoint eoffs",
        "tasks": "string taskname",
        "egm_minmax": "num min, num max",
        "listitem": "string image, string text",
        "rmqheader": "string datatype, num ndim, num dim1, num dim2, num dim3",
    }.items()
}
"""Components of the predefined records, as pairs of name and type."""

COMPONENTS = {type_: tuple(name for name, _ in components) for type_, components in RECORDS.items()}
"""Names of the components of the predefined records."""

_NUMBERS = _split(
    "byte errnum intnum socketstatus egmstate egmframetype egmstopmode errdomain errtype btnres icondata "
    "buttondata opnum dionum handler stoppoint tsp_status visiondata tooltype robtype symnum triggmode "
    "signalorigin speedlim_type progdisp_mode"
)
ALIASES = {**dict.fromkeys(_NUMBERS, NUM), "errstr": STRING, "switch": BOOL}
"""Types that are another type by a second name."""

OPAQUE = frozenset(
    _split(
        "clock iodev socketdev rawbytes rmqslot rmqmessage egmident syncident triggdata "
        "trapdata mecunit signaldi signaldo signalai signalao signalgi signalgo wzstationary wztemporary "
        "shapedata corrdescr taskid motsetdata restartdata datapos stoppointdata uishownum "
        "triggios triggiosdnum triggstrgo paridnum loadidnum errnum_list dir testsignal cammdev cameradev "
        "camerastatus identno sensor pathrecid speedprog mpc_inst arcdata seamdata welddata weavedata "
        "trackdata gundata spotdata simdata forcedata tooldata_list inposdata stopdata followdata egm_id "
        "wzstate aiotrigg aliasdata egmjointdata rotation intdata event_type veldata accdata singdata"
    )
)
"""Types whose values mean nothing without a controller."""

SIGNAL_TYPES = frozenset(_split("signaldi signaldo signalai signalao signalgi signalgo"))
"""Types of signals."""


class Types:
    """Types of a program: the predefined ones, and the records and aliases of its modules."""

    def __init__(self) -> None:
        self.records = dict(RECORDS)
        self.aliases = dict(ALIASES)
        self.unknown: list[str] = []  # of options of the controller: their data are opaque

    def resolved(self, name: str) -> str:
        """Return the name of a type in lower case, with aliases resolved.

        Raises:
            RapidError: there is no such type.
        """
        name = name.lower()
        while name in self.aliases:
            name = self.aliases[name]
        if name not in KINDS and name not in self.records and name not in OPAQUE:
            if beside := one_letter_beside(name, [*KINDS, *self.records, *self.aliases]):
                raise RapidError(f"there is no type {name}, did you mean {beside!r}?", "name")
            if name not in self.unknown:
                self.unknown.append(name)
        return name

    def component(self, record: Any, name: str) -> tuple[int, str]:
        """Return the index and the type of a record's component."""
        if isinstance(record, Record):
            for index, (one, type_) in enumerate(self.records[record.type]):
                if one == name.lower():
                    return index, self.resolved(type_)
            known = ", ".join(one for one, _ in self.records[record.type])
            raise RapidError(f"{record.type} has no component {name}, it has {known}", "name")
        got = text_of(record)
        if got == "-":
            got = "data of an unknown type: add the module that declares it"
        raise RapidError(f"expected a record before .{name}, got {got}", "type")

    def initial(self, type_: str, sizes: Sequence[int] = ()) -> Any:
        """Return the value of a data object that is declared without one."""
        if sizes:
            return [self.initial(type_, sizes[1:]) for _ in range(sizes[0])]
        if type_ in self.records:
            return Record(type_, [self.initial(self.resolved(one)) for _, one in self.records[type_]])
        return {NUM: 0.0, DNUM: Double(0.0), BOOL: False, STRING: ""}.get(type_)

    def converted(self, value: Any, type_: str, dimensions: int = 0) -> Any:
        """Return a value as one of a type; nested lists are aggregates.

        Args:
            value: value, or nested lists of values.
            type_: name of the type, resolved.
            dimensions: number of dimensions of an array.

        Raises:
            RapidError: the value does not have this type.
        """
        if dimensions:
            if not isinstance(value, list):
                raise RapidError(f"expected an array of {type_}, got {text_of(value)}", "type")
            return [self.converted(one, type_, dimensions - 1) for one in value]
        if type_ in self.records:
            if isinstance(value, Record) and value.type == type_:
                return value
            components = self.records[type_]
            if isinstance(value, list) and len(value) == len(components):
                pairs = zip(value, components, strict=True)
                return Record(type_, [self.converted(one, self.resolved(of), 0) for one, (_, of) in pairs])
            names = ", ".join(name for name, _ in components)
            raise RapidError(f"expected {type_} [{names}], got {text_of(value)}", "type")
        kind = KINDS.get(type_)
        if kind is float and isinstance(value, (int, float)) and not isinstance(value, bool):
            return Double(value) if type_ == DNUM else float(value)
        if kind is None or isinstance(value, kind):
            return value
        raise RapidError(f"expected {type_}, got {text_of(value)}", "type")


class Predefined(NamedTuple):
    """Predefined data: the name of its type, and its value."""

    type: str
    value: Any


def _predefined() -> dict[str, Predefined]:
    """Return the predefined data by their names in lower case."""
    identity = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]]
    load = [0.001, [0.0, 0.0, 0.001], [1.0, 0.0, 0.0, 0.0], 0.0, 0.0, 0.0]
    data: dict[str, tuple[str, Any]] = {
        "tool0": ("tooldata", [True, identity, load]),
        "wobj0": ("wobjdata", [False, True, "", identity, identity]),
        "load0": ("loaddata", load),
        "vmax": ("speeddata", [7000.0, 500.0, 5000.0, 1000.0]),
        "fine": ("zonedata", [True, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
        "z0": ("zonedata", [False, 0.3, 0.3, 0.3, 0.03, 0.3, 0.03]),
        "pi": (NUM, math.pi),
        "stempty": (STRING, ""),
        "diskhome": (STRING, "HOME:"),
        "eof": (NUM, -1.0),
        "eof_num": (NUM, 9.998e36),
        "eof_bin": (NUM, -1.0),
        **{name: (NUM, float(value)) for name, value in NUMBERS.items()},
        **{name: (STRING, text) for name, text in CHARACTERS.items()},
    }
    for speed in (5, 10, 20, 30, 40, 50, 60, 80, *range(100, 201, 50), 300, 400, 500, 600, 800, 1000, 1500,
                  2000, 2500, *range(3000, 7001, 1000)):  # fmt: skip
        data[f"v{speed}"] = "speeddata", [float(speed), 500.0, 5000.0, 1000.0]
    for zone, outer, turn in ((1, 1, 0.1), (5, 8, 0.8), (10, 15, 1.5), (15, 23, 2.3), (20, 30, 3.0),
                              (30, 45, 4.5), (40, 60, 6.0), (50, 75, 7.5), (60, 90, 9.0), (80, 120, 12.0),
                              (100, 150, 15.0), (150, 225, 23.0), (200, 300, 30.0)):  # fmt: skip
        data[f"z{zone}"] = "zonedata", [False, *map(float, (zone, outer, outer, turn, outer, turn))]
    data["wait_max"] = NUM, math.inf
    for number, name in enumerate(STATES):
        data[name] = NUM, float(number)
    types = Types()
    return {name: Predefined(type_, types.converted(value, type_)) for name, (type_, value) in data.items()}


NUMBERS = {
    "btnnone": -1, "btnok": 0, "btnabrtrtryign": 1, "btnokcancel": 2, "btnretrycancel": 3, "btnyesno": 4,
    "btnyesnocancel": 5, "resunkwn": 0, "resok": 1, "resabort": 2, "resretry": 3, "resignore": 4,
    "rescancel": 5, "resyes": 6, "resno": 7, "iconnone": 0, "iconinfo": 1, "iconwarning": 2, "iconerror": 3,
    "edge": 2, "op_undef": 0, "op_auto": 1, "op_man_prog": 2, "op_man_test": 3, "run_undef": 0,
    "run_cont_cycle": 1, "run_instr_fwd": 2, "run_instr_bwd": 3, "run_sim": 4, "run_step_move": 5,
    "aio_above_high": 1, "aio_below_high": 2, "aio_above_low": 3, "aio_below_low": 4, "aio_between": 5,
    "aio_outside": 6, "aio_always": 7, "opc_read_write": 0, "usint": 1,
    "uint": 2, "udint": 4, "ulint": 8, "sint": -1, "int": -2, "dint": -4,
    "lint": -8, "lt": 1, "lteq": 2, "eq": 3, "noteq": 4, "gteq": 5, "gt": 6, "opadd": 1, "opsub": 2,
    "common_err": 0, "op_state": 1, "system_err": 2, "hardware_err": 3, "program_err": 4, "motion_err": 5,
    "io_com_err": 7, "user_def_err": 8, "process_err": 11, "cfg_err": 12, "type_all": 0, "type_state": 1,
    "type_warn": 2, "type_err": 3, "opmult": 3, "opdiv": 4, "opmod": 5,
}  # fmt: skip
"""Constants whose numbers programs use, by their names."""

CHARACTERS = {
    "str_digit": "0123456789",
    "str_upper": "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    + "".join(chr(code) for code in range(0xC0, 0xDF) if code != 0xD7),
    "str_lower": "abcdefghijklmnopqrstuvwxyz"
    + "".join(chr(code) for code in range(0xE0, 0xFF) if code != 0xF7),
    "str_white": " \t\n\r\f\v",
}
"""Sets of characters by their names."""

STATES = _split(
    "socket_created socket_connected socket_bound socket_listening socket_closed "
    "egm_state_disconnected egm_state_connected egm_state_running egm_frame_base egm_frame_tool "
    "egm_frame_wobj egm_frame_world egm_frame_joint egm_stop_hold egm_stop_ramp_down err_udpuc_comm "
    "err_sock_timeout err_sock_closed err_wait_maxtime err_robconf err_outside_reach err_coll_stop "
    "err_pathdist err_tp_maxtime err_fileopen err_refunkprc err_divzero err_arrindex err_strtoolng "
    "err_sig_cond err_gripload err_rmq_timeout err_rmq_noentry err_filesize err_inoisok err_ioenable "
    "err_alrdcnt err_lowsign err_highsign hex1 float4 ascii "
    "err_whlsearch err_roblimit err_norununit err_cfg_notfnd err_argvalerr err_illdim err_ranybin_eof "
    "err_excrtymax all_err long_jmp_all_err"
)
"""Names of states and errors, to which a program compares; their numbers mean nothing here."""

PREDEFINED = _predefined()
"""Predefined data by their names in lower case."""
