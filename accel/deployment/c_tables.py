"""The tables of a package as C."""

import math
from collections.abc import Iterable, Mapping, Sequence

from accel.base.unique_names import Names
from accel.core.registers import REGISTERS
from accel.deployment.binary_files import Content
from accel.deployment.c_identifiers import identifier
from accel.deployment.deployment_steps import (
    Binary,
    ChannelLookup,
    Deployment,
    Fill,
    HostArray,
    Lookup,
    Means,
    Move,
    Pack,
    Prepare,
    Run,
    Scaled,
    Show,
    Softmax,
    Unpack,
    bits_of,
)
from accel.deployment.package_manifest import identity
from accel.graph.graph_tensor import Array, Quantization
from accel.image.tensor_view import View

_DTYPES = {
    "int8": ("ACCEL_INT8", "int8_t"),
    "uint8": ("ACCEL_UINT8", "uint8_t"),
    "int32": ("ACCEL_INT32", "int32_t"),
    "float32": ("ACCEL_FLOAT32", "float"),
}
_WIDTH = 100


def header(deployment: Deployment, content: Content, *, embedded: bool, example: bool) -> str:
    """Return the C header."""
    name, upper = deployment.name, deployment.name.upper()
    lines = [
        f"/* The package {name} for {_comment(deployment.config.label)}; written by `accel package`. */",
        f"#ifndef {upper}_H",
        f"#define {upper}_H",
        "",
        '#include "accel_network.h"',
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
        "/* What it needs: memory of the accelerator from accel_device.base on, and the host's own. */",
        f"#define {upper}_MEMORY_BYTES {deployment.memory_bytes:#x}u",
        f"#define {upper}_WORKSPACE_BYTES {deployment.workspace_bytes}u",
        "",
        "/* Cycles of all its streams, by the simulator: with the memory of the machine above. */",
        f"#define {upper}_CYCLES {sum(stream.cycles for stream in deployment.streams)}u",
        "",
        "/* Files, in accel_network_load's order. */",
        *_enumeration(
            [
                (
                    f"{upper}_FILE_{identifier(file.removesuffix('.bin')).upper()}",
                    f"{file}: {len(data):,} bytes",
                )
                for file, data in content.files.items()
            ],
            f"{upper}_FILES",
        ),
        "",
        "/* Inputs and outputs, in accel_network_run's order; arrays in row-major order. */",
        *_tensor_lines(upper, "INPUT", deployment.inputs),
        *_tensor_lines(upper, "OUTPUT", deployment.outputs),
        "",
        f"extern const accel_network {name}_network;",
    ]
    if embedded:
        lines += ["", f"/* The files' content, in {name}_data.c. */"]
        lines.append(f"extern const void *const {name}_files[{upper}_FILES];")
    if example:
        lines += ["", f"/* Inputs, and the outputs that they give, in {name}_example.c. */"]
        lines += [
            f"extern const void *const {name}_example_{role}s[{upper}_{role.upper()}S];"
            for role in ("input", "output")
        ]
    lines += ["", "#ifdef __cplusplus", "}", "#endif", "", "#endif"]
    return "\n".join(lines) + "\n"


def _tensor_lines(upper: str, role: str, tensors: Sequence[HostArray]) -> Iterable[str]:
    names = Names()
    rows, sizes = [], []
    for one in tensors:
        called = f"{upper}_{role}_{names.fresh(identifier(one.name).upper())}"
        shape = ", ".join(map(str, one.shape))
        rows.append((called, f"{one.name!r}: {_DTYPES[one.dtype][1]}[{shape}]{_scale_comment(one)}"))
        sizes.append(f"#define {called}_VALUES {one.size}u")
    return [*_enumeration(rows, f"{upper}_{role}S"), *sizes]


def _scale_comment(one: HostArray) -> str:
    found = one.quantization
    if found is None:
        return ""
    if not found.is_per_tensor:
        return f", with {len(found.scale)} scales along axis {found.axis}"
    zero = found.zero[0]
    return f", (value {'+' if zero < 0 else '-'} {abs(zero)}) * {found.scale[0]:.9g}"


def _enumeration(rows: Sequence[tuple[str, str]], count: str) -> list[str]:
    return [
        "enum {",
        *(f"    {name}, /* {_comment(text)} */" for name, text in rows),
        f"    {count}",
        "};",
    ]


def source(deployment: Deployment, content: Content) -> str:
    return _Source(deployment, content).text()


def data_source(deployment: Deployment, content: Content) -> str:
    name = deployment.name
    lines = [
        f"/* The binary files of the package {name}; written by `accel package`. */",
        f'#include "{name}.h"',
    ]
    for number, data in enumerate(content.files.values()):
        lines += ["", *_wrapped(f"static const uint8_t file{number}[{len(data)}]", map(str, data))]
    files = ", ".join(f"file{number}" for number in range(len(content.files)))
    lines += ["", f"const void *const {name}_files[{name.upper()}_FILES] = {{{files}}};"]
    return "\n".join(lines) + "\n"


def example_source(deployment: Deployment, arrays: Mapping[str, Array]) -> str:
    name = deployment.name
    lines = [f"/* A run of the package {name}; written by `accel package`. */", f'#include "{name}.h"']
    for role, tensors in (("input", deployment.inputs), ("output", deployment.outputs)):
        for number, one in enumerate(tensors):
            values = arrays[one.name].reshape(-1).tolist()
            texts = map(_float if one.dtype == "float32" else str, values)
            kind = _DTYPES[one.dtype][1]
            lines += ["", *_wrapped(f"static const {kind} {role}{number}[{one.size}]", texts)]
        places = ", ".join(f"{role}{number}" for number in range(len(tensors))) or "NULL"
        size = f"{name.upper()}_{role.upper()}S"
        lines += ["", f"const void *const {name}_example_{role}s[{size}] = {{{places}}};"]
    return "\n".join(lines) + "\n"


class _Source:
    """Collects tables, equal ones once."""

    def __init__(self, deployment: Deployment, content: Content) -> None:
        self._deployment = deployment
        self._content = content
        self._lines: list[str] = []
        self._known: dict[tuple[str, str], str] = {}

    def text(self) -> str:
        deployment, content = self._deployment, self._content
        name = deployment.name
        identities = [
            f"{{{REGISTERS[one].offset:#05x}, {value}u}}"
            for one, value in identity(deployment.config).items()
        ]
        arrays = [f"{{ACCEL_{one.place.upper()}, {one.at}}}" for one in deployment.arrays]
        segments = [
            f"{{{one.offset:#x}, {one.file}, {one.file_offset}, {len(one.content)}, {one.crc:#010x}u}}"
            for one in content.segments
        ]
        steps = [
            f"{{ACCEL_STEP_{step.detail.kind.upper()}, {step.source or 0}, {step.other or 0}, "
            f"{step.target or 0}, "
            f"&{self._detail(step.detail)}}}"
            for step in deployment.steps
        ]
        tables = {
            "identities": ("accel_identity", identities),
            "inputs": ("accel_tensor", list(map(self._tensor, deployment.inputs))),
            "outputs": ("accel_tensor", list(map(self._tensor, deployment.outputs))),
            "file_bytes": ("size_t", [str(len(data)) for data in content.files.values()]),
            "segments": ("accel_segment", segments),
            "arrays": ("accel_array", arrays),
            "steps": ("accel_step", steps),
        }
        places = {key: self._table(kind, rows, key) for key, (kind, rows) in tables.items()}

        def both(key: str) -> str:
            return f"{places[key]}, {len(tables[key][1])}"

        return "\n".join(
            [
                f"/* Tables of the package {name}; written by `accel package`. */",
                f'#include "{name}.h"',
                "",
                *self._lines,
                "",
                f"const accel_network {name}_network = {{",
                f"    {_string(name)}, {deployment.memory_bytes:#x}u, {deployment.workspace_bytes}, "
                f"{both('identities')},",
                f"    {both('inputs')}, {both('outputs')},",
                f"    {both('file_bytes')}, {both('segments')},",
                f"    {places['arrays']}, {both('steps')}",
                "};",
                "",
            ]
        )

    def _table(self, kind: str, rows: Iterable[str], name: str | None = None) -> str:
        values = list(rows)
        if not values:
            return "NULL"
        key = kind, ", ".join(values)
        if name is not None or key not in self._known:
            called = name or f"table{len(self._known)}"
            self._lines += _wrapped(f"static const {kind} {called}[{len(values)}]", values)
            if name is not None:
                return called
            self._known[key] = called
        return self._known[key]

    def _struct(self, kind: str, values: Iterable[object]) -> str:
        key = kind, ", ".join(map(str, values))
        if key not in self._known:
            self._known[key] = f"table{len(self._known)}"
            self._lines.append(f"static const {kind} {self._known[key]} = {{{key[1]}}};")
        return self._known[key]

    def _tensor(self, one: HostArray) -> str:
        found = one.quantization
        single = found is not None and found.is_per_tensor
        scale, zero = (found.scale[0], found.zero[0]) if found is not None and single else (0.0, 0)
        shape = self._table("uint32_t", map(str, one.shape))
        values = [_string(one.name), _DTYPES[one.dtype][0], _float(scale), zero, len(one.shape), shape]
        return f"{{{', '.join(map(str, values))}, {one.nbytes}}}"

    def _detail(self, detail: object) -> str:
        match detail:
            case Pack() | Unpack():
                tensor, layout = detail.tensor, detail.tensor.layout
                offset = self._deployment.streams[detail.stream].offset + tensor.offset
                coefficients = [str(one) for row in layout.coefficients for one in row]
                values: list[object] = [f"{offset:#x}", _DTYPES[tensor.dtype][0]]
                values += [len(layout.shape), len(layout.packed)]
                values += [self._table("uint32_t", map(str, one)) for one in (layout.shape, layout.packed)]
                values += [self._table("uint32_t", coefficients), self._view(tensor.dtype, tensor.view)]
                return self._struct("accel_layout", values)
            case Show():
                return self._view(detail.dtype, detail.view).removeprefix("&")
            case Run():
                stream = self._deployment.streams[detail.stream]
                entry = stream.offset + stream.image.code_offset
                values = [f"{stream.offset:#x}", f"{stream.window_bytes:#x}", f"{entry:#x}"]
                return self._struct("accel_stream", [*values, f"{len(stream.image.instructions)}u"])
            case Scaled():
                return self._struct("accel_scales", self._scaled(detail, detail.quantization))
            case Move():
                strides = [
                    self._table("int32_t", map(str, one))
                    for one in (detail.source_strides, detail.target_strides)
                ]
                sizes = self._table("uint32_t", map(str, detail.sizes))
                values = [detail.value_bytes, len(detail.sizes), sizes, *strides]
                return self._struct("accel_move", [*values, detail.source_start, detail.target_start])
            case Fill():
                kind = f"uint{8 * detail.value_bytes}_t"
                bits = bits_of(detail.values, detail.value_bytes)
                table = self._table(kind, (f"{one}u" for one in bits))
                return self._struct("accel_fill", [table, len(detail.values), detail.nbytes])
            case Lookup():
                table = self._table("uint8_t", map(str, detail.table))
                return self._struct("accel_lookup", [table, detail.size])
            case ChannelLookup():
                table = self._table("uint8_t", map(str, detail.tables))
                return self._struct(
                    "accel_channel_lookup", [table, detail.outer, detail.channels, detail.inner]
                )
            case Softmax():
                return self._struct("accel_softmax", [detail.outer, detail.count, detail.inner])
            case Binary():
                tables = [
                    self._table("uint32_t", map(str, one))
                    for one in (detail.sizes, detail.source_strides, detail.other_strides)
                ]
                values = [f"ACCEL_{detail.operation.upper()}", _DTYPES[detail.dtype][0], len(detail.sizes)]
                return self._struct(
                    "accel_binary", [*values, *tables, *detail.zeros, *map(_float, detail.factors)]
                )
            case Means():
                windows = detail.windows
                tables = [
                    self._table("uint32_t", map(str, one))
                    for one in (
                        detail.sizes,
                        detail.outputs,
                        windows.kernel,
                        windows.strides,
                        windows.dilations,
                        windows.begin,
                    )
                ]
                values = [_DTYPES[detail.dtype][0], detail.planes, windows.rank, int(detail.count_padding)]
                scales = [_float(detail.source[0]), _float(detail.target[0])]
                return self._struct(
                    "accel_means", [*values, *tables, *scales, detail.source[1], detail.target[1]]
                )
            case Prepare():
                numbers = [*detail.accepted, *detail.bounds, detail.offset]
                return self._struct("accel_prepare", [detail.size, *(f"INT64_C({one})" for one in numbers)])
        raise AssertionError(detail)

    def _view(self, dtype: str, view: View | None) -> str:
        if view is None:
            return "NULL"
        coefficients = [str(one) for row in view.coefficients for one in row]
        values: list[object] = [_DTYPES[dtype][0], len(view.shape), len(view.sizes)]
        values += [self._table("uint32_t", map(str, one)) for one in (view.shape, view.sizes)]
        values += [self._table("int64_t", one) for one in (map(str, view.before), coefficients)]
        return "&" + self._struct("accel_view", [*values, view.fill])

    def _scaled(self, detail: Scaled, quantization: Quantization) -> list[object]:
        return [
            _DTYPES[detail.dtype][0],
            math.prod(detail.shape),
            detail.inner,
            len(quantization.scale),
            self._table("float", map(_float, quantization.scale)),
            self._table("int32_t", map(str, quantization.zero)),
        ]


def _wrapped(declaration: str, values: Iterable[str]) -> list[str]:
    lines = [f"{declaration} = {{"]
    line = "   "
    for value in values:
        if len(line) + len(value) + 2 > _WIDTH and line.strip():
            lines.append(line)
            line = "   "
        line += f" {value},"
    return [*lines, line, "};"]


def _float(value: float) -> str:
    """Format a float32 that C reads back exactly."""
    if math.isnan(value):
        return "(0.0f / 0.0f)"
    return f"{value.hex()}f" if math.isfinite(value) else f"({'-' if value < 0 else ''}1.0f / 0.0f)"


def _string(text: str) -> str:
    plain = (
        chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}"
        for byte in text.encode(errors="backslashreplace")
    )
    return f'"{"".join(plain)}"'


def _comment(text: str) -> str:
    plain = "".join(one if " " <= one <= "~" and one not in "\\?" else "_" for one in text)
    return plain.replace("*/", "* /").replace("/*", "/ *")
