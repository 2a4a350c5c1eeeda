"""Which joint joins which links: the chain of the DH table, and the joints listed beside it."""

from decimal import Decimal
from itertools import pairwise
from typing import Any, NamedTuple

from urdf.schema import FactsError

CLOSED = Decimal("1e-12")  # how far the two points of a loop may lie apart, in [m]: rounding only


class Joint(NamedTuple):
    """A joint of the tree, between two links named by their keys in `[link.*]`."""

    name: str
    parent: str
    child: str


def chain(facts: dict[str, Any]) -> list[str]:
    """The links that the DH table moves, base first."""
    return ["base", *(str(i + 1) for i in range(len(facts["joints"]["names"])))]


def all_joints(facts: dict[str, Any]) -> list[Joint]:
    """Every joint of the tree, those that motors drive first, in the pendant's order."""
    listed, links = facts.get("joint", {}), chain(facts)
    plain = {name: (links[i], links[i + 1]) for i, name in enumerate(facts["joints"]["names"])}
    ends = {**plain, **{name: (values["parent"], values["child"]) for name, values in listed.items()}}
    return [Joint(name, *ends[name]) for name in ends]


def tree(facts: dict[str, Any]) -> tuple[list[Joint], list[Joint]]:
    """The joints of the chain from the base to the flange, and all others, parents before children."""
    links = chain(facts)
    by_child = {joint.child: joint for joint in all_joints(facts)}

    def depth(link: str) -> int:
        return 0 if link == "base" else 1 + depth(by_child[link].parent)

    others = sorted((link for link in by_child if link not in links), key=depth)
    return [by_child[link] for link in links[1:]], [by_child[link] for link in others]


def check_tree(facts: dict[str, Any]) -> None:
    """Raise `FactsError` unless the joints make one tree of all links, with the DH table's chain in it."""
    if "joint_tool" in (*facts["joints"]["names"], *facts.get("joint", {})):
        raise FactsError("joint_tool is the fixed joint of the flange: expected another name")
    for name, values in facts.get("joint", {}).items():
        check_joint(name, values, facts)
    links = chain(facts)
    if not set(links) <= set(facts["link"]):
        expected, got = (", ".join(f"link.{name}" for name in names) for names in (links, facts["link"]))
        raise FactsError(f"expected the tables {expected}, got {got}")
    by_child: dict[str, Joint] = {}
    for joint in all_joints(facts):
        if joint.child in by_child:
            raise FactsError(
                f"link.{joint.child} is the child of two joints, {by_child[joint.child].name} "
                f"and {joint.name}: expected one"
            )
        by_child[joint.child] = joint
    for link in facts["link"]:
        if link != "base" and link not in by_child:
            raise FactsError(f"link.{link} is the child of no joint: expected a [joint.<name>] that moves it")
    for link in facts["link"]:
        path = [link]
        while path[-1] != "base":
            parent = by_child[path[-1]].parent
            if parent in path:
                circle = ", ".join(f"link.{name}" for name in path[path.index(parent) :])
                raise FactsError(f"{circle} hang on each other: expected a way from each link to the base")
            path.append(parent)
    for before, link in pairwise(links):
        parent = by_child[link].parent
        if parent != before:
            raise FactsError(
                f"joint.{by_child[link].name}: link.{link} hangs on link.{parent}, expected link.{before}, "
                "the link before it in the DH table"
            )


def check_joint(name: str, values: dict[str, Any], facts: dict[str, Any]) -> None:
    """Raise `FactsError` unless a table [joint.<name>] joins two links about a base axis."""
    for key in ("parent", "child"):
        if values[key] not in facts["link"]:
            raise FactsError(
                f"joint.{name}.{key}: there is no link {values[key]!r}, known are {', '.join(facts['link'])}"
            )
    if values["child"] == "base":
        raise FactsError(f"joint.{name}.child: no joint moves the base, expected another link")
    if sorted(abs(x) for x in values["axis"]) != [0, 0, 1]:
        axis = ", ".join(str(x) for x in values["axis"])
        raise FactsError(f"joint.{name}.axis: expected a base axis such as [0, -1, 0], got [{axis}]")
    driven = name in facts["joints"]["names"]
    for key in ("q", "range_deg"):
        if driven and key in values:
            raise FactsError(f"joint.{name}.{key}: a motor drives this joint; {key} is for passive ones")
        if not driven and key not in values:
            raise FactsError(
                f"table [joint.{name}] lacks the key {key!r}, which a joint that is not in joints.names needs"
            )
    if not driven and not values["range_deg"][0] < values["range_deg"][1]:
        low, high = values["range_deg"]
        raise FactsError(f"joint.{name}.range_deg: expected lowest < highest, got {low} and {high}")


def check_loops(facts: dict[str, Any]) -> None:
    """Raise `FactsError` unless each loop joins two links, in points that coincide at the zero pose."""
    for name, loop in facts.get("loop", {}).items():
        if len(set(loop["links"])) != 2 or len(loop["links"]) != 2:
            raise FactsError(
                f"loop.{name}.links: expected two different links, got {', '.join(loop['links'])}"
            )
        for link in loop["links"]:
            if link not in facts["link"]:
                raise FactsError(
                    f"loop.{name}.links: there is no link {link!r}, known are {', '.join(facts['link'])}"
                )
        first, second = loop["links"]
        a, b = ([Decimal(x) for x in point] for point in loop["at"])
        distance = sum(((y - x) ** 2 for x, y in zip(a, b, strict=True)), Decimal(0)).sqrt()
        if not distance <= CLOSED:
            raise FactsError(
                f"loop.{name} is not closed at the zero pose: the point of link.{first} is "
                f"{float(distance):.6g} m away from that of link.{second}"
            )
