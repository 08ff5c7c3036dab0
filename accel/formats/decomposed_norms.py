"""Layer normalizations that exporters wrote as single operators.

For example ``d = x - mean(x)``, ``d / sqrt(mean(d ** 2) + 1e-5) * scale + shift``. They stay in float32,
because the host computes them anyway.
"""

from typing import Any

from accel.formats.editable_model import EditableModel


def normalization_nodes(model: Any) -> list[str]:
    """Return the names of their nodes, and name unnamed ones."""
    work = EditableModel(model)
    found: list[Any] = []
    for division in work.of_kind("Div"):
        inner = _normalization(work, division)
        if inner:
            found += [*inner, division, *_affine(work, division.output[0])]
    for node in found:
        node.name = node.name or work.fresh(node.output[0])
    return list(dict.fromkeys(node.name for node in found))


def _normalization(work: EditableModel, division: Any) -> list[Any]:
    difference = work.producer(division.input[0], "Sub")
    root = work.producer(division.input[1], "Sqrt")
    if difference is None or root is None:
        return []
    total = work.producer(root.input[0], "Add")
    operands = [work.producer(name, "ReduceMean") for name in total.input] if total is not None else []
    mean = work.producer(difference.input[1], "ReduceMean")
    variance = next((one for one in operands if one is not None), None)
    if mean is None or variance is None or mean.input[0] != difference.input[0]:
        return []
    square = work.producer(variance.input[0], "Pow", "Mul")
    if square is None or square.input[0] != difference.output[0]:
        return []
    return [mean, difference, square, variance, total, root]


def _affine(work: EditableModel, name: str) -> list[Any]:
    """Return the following product and sum with constants, if any."""
    found: list[Any] = []
    for kind in ("Mul", "Add"):
        node = work.reader(name)
        if node is None or node.op_type != kind:
            break
        others = [one for one in node.input if one != name]
        if len(others) != 1 or work.constant(others[0]) is None:
            break
        found.append(node)
        name = node.output[0]
    return found
