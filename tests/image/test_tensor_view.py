"""Arrangement of tensors by the host: indices, fill values, and refused views."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import accel
from accel.base.errors import ProgramError
from accel.image.image import Image
from accel.image.image_tensor import read_tensor
from accel.image.tensor_view import View
from tests.image.test_image import rewritten

WINDOWS = View(shape=(5,), before=(1,), sizes=(5, 3), coefficients=((1, 1),), fill=-9)


def test_windows_with_fills() -> None:
    found = WINDOWS.gather(np.arange(5, dtype=np.int8), (5, 3))
    assert found.tolist() == [[-9, 0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, -9]]
    np.testing.assert_array_equal(WINDOWS.scatter(found), np.arange(5))
    assert WINDOWS.extents == (7,)
    assert WINDOWS.fills
    assert not WINDOWS.is_one_to_one


def test_backwards() -> None:
    view = View(shape=(3,), before=(-2,), sizes=(4,), coefficients=((-1,),))
    found = view.gather(np.array([5, 6, 7], np.int8), (2, 2))
    assert found.tolist() == [[7, 6], [5, 0]]
    assert view.is_one_to_one
    assert view.scatter(found).tolist() == [5, 6, 7]


def test_plain_data() -> None:
    assert View.from_dict(WINDOWS.to_dict()) == WINDOWS


DAMAGED: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "no sizes": (lambda view: view.pop("sizes"), "a view has no 'sizes'"),
    "text": (lambda view: view.update(shape="5"), "a list of integers is needed"),
    "rows of text": (lambda view: view.update(coefficients=[["a"]]), "a list of integers is needed"),
    "no rows": (lambda view: view.update(coefficients=7), "lists are needed"),
    "other rows": (lambda view: view.update(coefficients=[[1]]), "other coefficients"),
    "no size": (lambda view: view.update(sizes=[5, 0]), "a size below one"),
    "huge": (lambda view: view.update(before=[1 << 50]), "a number beyond"),
    "many": (lambda view: view.update(sizes=[1] * 17, coefficients=[[1] * 17]), "at most 16"),
    "true": (lambda view: view.update(fill=True), "a list of integers is needed"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_what_is_no_view_is_refused(case: str) -> None:
    change, message = DAMAGED[case]
    data = WINDOWS.to_dict()
    change(data)
    with pytest.raises(ProgramError, match=message):
        View.from_dict(data)


@pytest.fixture(scope="module")
def program() -> accel.Program:
    return accel.build(accel.conv2d(1, 16, 2, 2, 16, 1, shift=4), "gemm8x8", mapping="pixels")


def first(manifest: Any, role: str) -> Any:
    """The view of the first tensor with a role."""
    return next(one["view"] for one in manifest["tensors"] if one["role"] == role)


FILES: dict[str, tuple[Callable[[Any], object], str]] = {
    "older": (lambda m: m.update(version=1), "one with views has version 3"),
    "fill": (lambda m: first(m, "input").update(fill=200), "fills with 200; that does not fit int8"),
    "values": (lambda m: first(m, "input").update(sizes=[1] * 8), "has 1 values; the program's tensor has"),
    "reach": (lambda m: first(m, "input").update(before=[0, 0, 1 << 33, 0]), "the DRAM window has"),
    "twice": (
        lambda m: first(m, "output").update(coefficients=[[0] * 8] * 4),
        "stands in DRAM more than once",
    ),
    "no view": (lambda m: m["tensors"][0].update(view=3), "it must be an object"),
}


@pytest.mark.parametrize("case", FILES)
def test_files_with_damaged_views(case: str, program: accel.Program, tmp_path: Any) -> None:
    change, message = FILES[case]
    program.save(tmp_path / "a.accel")
    rewritten(tmp_path / "a.accel", tmp_path / "b.accel", lambda manifest: change(manifest) and None)
    with pytest.raises(ProgramError, match=message):
        Image.load(tmp_path / "b.accel")


def test_a_mapping_that_is_another_expression(program: accel.Program, tmp_path: Any) -> None:
    """The expression of a file must match its tensors on both sides of the views."""
    program.save(tmp_path / "a.accel")
    other = program.source.mapped.to_data() if program.source and program.source.mapped else {}
    other["expression"] = dict(program.source.expression or {}) if program.source else {}

    def change(manifest: Any) -> None:
        manifest["source"]["mapped"] = other

    rewritten(tmp_path / "a.accel", tmp_path / "b.accel", change)
    with pytest.raises(ProgramError, match="the tensor expression is damaged"):
        accel.Program.load(tmp_path / "b.accel").schedule()


def test_tensors_without_a_view_are_written_as_before() -> None:
    program = accel.build(accel.gemm(16, 16, 16, shift=4), "vta")
    assert all("view" not in one.to_dict() for one in program.tensors)
    assert all(read_tensor(one.to_dict()) == one for one in program.tensors)
