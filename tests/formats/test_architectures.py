"""Small architectures quantized by ONNX Runtime. `architectures_campaign.py` runs all of them."""

from __future__ import annotations

import numpy as np
import pytest

from accel.formats import compare_with_runtime
from tests.formats import architectures_campaign as campaign
from tests.formats.architectures import ARCHITECTURES
from tests.formats.quantizer import Setting

MACHINE = "vta-int8"


@pytest.mark.parametrize(
    ("name", "opset", "form", "data", "weights", "per_channel", "machine"),
    [
        ("squeezenet", 13, "QDQ", "QInt8", "QInt8", True, MACHINE),
        ("mobilenet_v2", 17, "QDQ", "QUInt8", "QInt8", True, None),
        ("efficientnet", 10, "QOperator", "QUInt8", "QUInt8", False, None),
        ("resnet_preact", 21, "QDQ", "QInt8", "QInt8", False, None),
        ("keywords", 11, "QOperator", "QInt8", "QInt8", True, MACHINE),
        ("gated_mixer", 20, "QDQ", "QUInt8", "QUInt8", False, None),
    ],
)
def test_an_architecture(
    name: str, opset: int, form: str, data: str, weights: str, per_channel: bool, machine: str | None
) -> None:
    setting = Setting(form=form, data=data, weights=weights, per_channel=per_channel)
    found = campaign.check(name, opset, setting, machine)
    assert found["compared"] == 1
    assert found["compiled and run"] == (machine is not None)


def test_a_difference_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = compare_with_runtime.evaluate_node

    def wrong(graph, node, operands):  # type: ignore[no-untyped-def]
        found = real(graph, node, operands)
        return np.flip(found) if node.operator.kind == "Conv" else found

    monkeypatch.setattr(compare_with_runtime, "evaluate_node", wrong)
    monkeypatch.setattr(
        campaign,
        "draw",
        lambda *_: [(13, Setting(form="QDQ", data="QInt8", weights="QInt8", per_channel=False))],
    )
    found, failures = campaign.campaign(["one_channel"], 1, 0)
    assert not found["compared"]
    (failure,) = failures
    assert failure in capsys.readouterr().err
    assert failure.startswith("one_channel, opset 13, QDQ, data QInt8, weights QInt8: MismatchError: tensor ")


def test_settings_are_drawn_again() -> None:
    drawn = {name: campaign.draw(name, 3, 7) for name in ARCHITECTURES}
    assert drawn == {name: campaign.draw(name, 3, 7) for name in ARCHITECTURES}
    assert len({str(one) for one in drawn.values()}) == len(drawn)
