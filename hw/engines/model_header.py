"""``model.h``: accessors of the native harness."""

from collections.abc import Callable

from amaranth.hdl import Shape
from amaranth.lib.wiring import Flow

from accel.core.config import Config
from accel.core.scratchpad_specs import scratchpads_of
from accel.hw.core import simulation_ports
from accel.hw.datapath.scratchpads import words_of

TOP = "accel_sim"
_SCALAR_BITS = 64


def ports(config: Config) -> dict[str, tuple[bool, int]]:
    """Return each port's direction, True for inputs, and width."""
    found = {"rst": (True, 1)}
    for name, member in simulation_ports(config).items():
        found[name] = (member.flow is Flow.In, Shape.cast(member.shape).width)
    return found


def model_header(config: Config, *, head: str, body: str, access: Callable[[str], str]) -> str:
    """Return the header's text.

    Args:
        head: text before ``struct Model``: includes, and ``get``, ``set``, ``copy_out`` and ``copy_in`` for
            the engine's values.
        body: further members of the struct.
    """
    lines = ["#pragma once", "#include <cstdint>", "#include <cstring>", head]
    lines.append(f"constexpr unsigned BUS_BYTES = {config.bus_bytes};")
    pads = enumerate(scratchpads_of(config).values())
    uses = (f"USE({number}, {pad}, {words_of(pad, config)[1]})" for number, pad in pads)
    lines.append(f"#define SCRATCHPADS(USE) {' '.join(uses)}")
    lines += ["", "struct Model {", body]
    for name, (is_input, width) in ports(config).items():
        place = access(name)
        data = name.endswith("data") and not name.startswith("s_axi")
        if data and is_input:
            lines.append(
                f"    void {name}(const uint8_t *bytes) {{ copy_in({place}, bytes, {width // 8}); }}"
            )
        elif data:
            lines.append(f"    void {name}(uint8_t *bytes) {{ copy_out({place}, bytes, {width // 8}); }}")
        elif is_input:
            lines.append(f"    void {name}(uint64_t value) {{ set({place}, value); }}")
            lines.append(f"    uint64_t in_{name}() {{ return get({place}); }}")
        else:
            assert width <= _SCALAR_BITS
            lines.append(f"    uint64_t {name}() {{ return get({place}); }}")
    return "\n".join([*lines, "};", ""])
