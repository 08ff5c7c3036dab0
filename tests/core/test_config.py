"""Configurations: the named ones, JSON files of both kinds, overrides, and the messages of refused ones."""

import json
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.base.errors import ConfigError
from accel.base.records import replace
from accel.core.config import NAMED, SPECS, Config, from_dict, from_vta, load_config, parse_quantity
from tests.expect import refused
from tests.strategies import machines, timings

STOCK = {
    "TARGET": "sim",
    "HW_VER": "0.0.2",
    "LOG_INP_WIDTH": 3,
    "LOG_WGT_WIDTH": 3,
    "LOG_ACC_WIDTH": 5,
    "LOG_BATCH": 0,
    "LOG_BLOCK": 4,
    "LOG_UOP_BUFF_SIZE": 15,
    "LOG_INP_BUFF_SIZE": 15,
    "LOG_WGT_BUFF_SIZE": 18,
    "LOG_ACC_BUFF_SIZE": 17,
}
"""VTA's own ``vta_config.json``."""


# --- named configurations ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "block", "depths", "bus_bits"),
    [
        ("vta", "1x16x16", (8192, 2048, 1024, 2048), 64),
        ("gemm8x8", "8x8", (4096, 1024, 1024, 512), 128),
        ("tiny", "1x4x8", (256, 128, 128, 128), 64),
        ("ecp5", "1x8x8", (2048, 1024, 512, 1024), 64),
    ],
)
def test_named_configurations(name: str, block: str, depths: tuple[int, ...], bus_bits: int) -> None:
    config = load_config(name)
    assert config.name == name
    assert config.block_name == block
    assert (config.uop_depth, config.inp_depth, config.wgt_depth, config.acc_depth) == depths
    assert config.bus_bits == bus_bits
    assert config.read_latency == 64


def test_sizes_that_follow_from_the_stock_configuration() -> None:
    vta = NAMED["vta"]
    assert (vta.uop_bytes, vta.inp_bytes, vta.wgt_bytes, vta.acc_bytes) == (
        1 << 15,
        1 << 15,
        1 << 18,
        1 << 17,
    )
    elements = (vta.inp_element_bytes, vta.wgt_element_bytes, vta.acc_element_bytes, vta.out_element_bytes)
    assert elements == (16, 256, 64, 16)
    bits = (vta.uop_address_bits, vta.inp_address_bits, vta.wgt_address_bits, vta.acc_address_bits)
    assert bits == (13, 11, 10, 11)
    assert (vta.macs_per_cycle, vta.bus_bytes, vta.token_limit) == (256, 8, 255)
    assert (vta.outstanding, vta.token_bits, vta.mem_base, vta.mem_size) == (32, 8, 0, 256 << 20)
    assert str(vta) == "vta (1x16x16, 64-bit bus)"


def test_every_field_is_documented_and_its_default_is_legal() -> None:
    for name, spec in SPECS.items():
        assert spec.doc
        assert spec.unit
        assert spec.low <= getattr(Config(), name) <= spec.high


def test_programs_depend_on_the_geometry_only() -> None:
    geometry = {name for name, spec in SPECS.items() if spec.kind == "geometry"}
    sizes = {"batch", "block_in", "block_out", "uop_bytes", "inp_bytes", "wgt_bytes", "acc_bytes"}
    assert geometry == sizes | {"post", "par_bytes", "res_bytes", "inp_banks"} | {
        "tab_bytes",
        "res_mul",
        "wgt_zero",
    }


def test_configurations_are_values() -> None:
    assert replace(NAMED["tiny"]) == NAMED["tiny"]
    assert hash(replace(NAMED["tiny"])) == hash(NAMED["tiny"])
    with pytest.raises(FrozenInstanceError):
        NAMED["tiny"].batch = 2  # type: ignore[misc]


# --- files ---------------------------------------------------------------------------------------


def test_the_stock_file_is_the_stock_configuration(tmp_path: Path) -> None:
    path = tmp_path / "vta_config.json"
    path.write_text(json.dumps(STOCK))
    assert load_config(path) == replace(NAMED["vta"], name="vta_config")
    assert load_config(str(path)) == load_config(path)


def test_missing_keys_are_stock_and_target_and_version_are_ignored() -> None:
    assert from_vta({}) == Config()
    assert from_vta({"TARGET": "pynq", "HW_VER": 7}) == Config()
    assert from_vta({"LOG_BATCH": 1}) == Config(batch=2)
    assert from_vta({"LOG_ACC_BUFF_SIZE": 16}) == Config(acc_bytes=1 << 16)


def test_block_in_and_out_win_over_block() -> None:
    assert from_vta({"LOG_BLOCK": 3}) == Config(block_in=8, block_out=8)
    assert from_vta({"LOG_BLOCK_IN": 2}) == Config(block_in=4)
    for keys in ({"LOG_BLOCK": 3, "LOG_BLOCK_OUT": 5}, {"LOG_BLOCK_OUT": 5, "LOG_BLOCK": 3}):
        assert from_vta(keys) == Config(block_in=8, block_out=32)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"LOG_BLOK": 4}, "'LOG_BLOK' is not a VTA configuration key; did you mean 'LOG_BLOCK'?"),
        ({"LOG_BLOCK": "4"}, "LOG_BLOCK is '4'; it must be an integer logarithm in 0..40"),
        ({"LOG_BLOCK": True}, "LOG_BLOCK is true; it must be an integer logarithm in 0..40"),
        ({"LOG_BLOCK": -1}, "LOG_BLOCK is -1; it must be an integer logarithm in 0..40"),
        (
            {"LOG_BLOCK": 40},
            "block_in is 1099511627776 in configuration 'custom'; it must be in 1..256 elements",
        ),
        ({"LOG_BATCH": 41}, "LOG_BATCH is 41; it must be an integer logarithm in 0..40"),
        *(
            (
                {key: wrong},
                f"{key} is {wrong}; operands and results are int8 and sums int32 here, so it must be {right}",
            )
            for key, wrong, right in [
                ("LOG_INP_WIDTH", 4, 3),
                ("LOG_WGT_WIDTH", 2, 3),
                ("LOG_ACC_WIDTH", 6, 5),
                ("LOG_OUT_WIDTH", 5, 3),
            ]
        ),
        (
            {"LOG_OUT_BUFF_SIZE": 14},
            "LOG_OUT_BUFF_SIZE is 14; out holds as many elements as acc, so it must be 15",
        ),
    ],
)
def test_invalid_vta_files_are_refused(data: dict[str, Any], message: str) -> None:
    with refused(ConfigError, message):
        from_vta(data)


def test_a_fitting_out_size_is_accepted() -> None:
    assert from_vta({"LOG_OUT_BUFF_SIZE": 15, "LOG_OUT_WIDTH": 3}) == Config()


@given(machines.flatmap(timings))
def test_plain_data_reads_back(config: Config) -> None:
    assert from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_a_file_of_our_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text('{"batch": 4, "acc_bytes": "32KiB", "serial": true}')
    assert load_config(path) == Config(name="mine", batch=4, acc_bytes=32 << 10, serial=1)
    path.write_text('{"name": "yours"}')
    assert load_config(path) == Config(name="yours")
    with refused(ConfigError, "'bach' is not a configuration field; did you mean 'batch'?"):
        from_dict({"bach": 4})


@pytest.mark.parametrize(
    ("content", "config"),
    [
        ("", Config(name="mine")),
        ('name = "yours"\nbatch = 4', Config(name="yours", batch=4)),
        (
            'acc_bytes = "32KiB"\nbus_bits = 0x80\nserial = true',
            Config(name="mine", acc_bytes=32768, bus_bits=128, serial=1),
        ),
        ("LOG_BLOCK = 3 # as VTA has it", Config(name="mine", block_in=8, block_out=8)),
    ],
)
def test_a_file_in_toml(content: str, config: Config, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(content)
    assert load_config(path) == config


def test_printed_configurations_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "printed.json"
    one, two = NAMED["tiny"].to_dict(), NAMED["ecp5"].override({"batch": 2}).to_dict()
    for data in (one, two):
        path.write_text(json.dumps({"schema_version": 1, "configs": [data]}))
        assert load_config(path).to_dict() == data
    message = "in 'configs'; one is needed, as 'accel configs vta --json' prints it"
    for configs, what in (
        ([one, two], "2 of them"),
        ([], "0 of them"),
        ([3], "1 of them"),
        (one, "an object"),
    ):
        path.write_text(json.dumps({"schema_version": 1, "configs": configs}))
        with refused(ConfigError, f"configuration {str(path)!r} has {what} {message}"):
            load_config(path)


@pytest.mark.parametrize("name", [3, None, ["a"], "two\nlines", "\ud800"])
def test_a_name_is_a_line_of_text(name: object) -> None:
    told = "null" if name is None else repr(name)
    with refused(ConfigError, f"name is {told}; it must be a line of text"):
        from_dict({"name": name})


def test_a_file_may_be_called_anything(tmp_path: Path) -> None:
    path = tmp_path / "a\udcff\n.json"
    path.write_text("{}")
    assert load_config(path).name == "a??"


INCOMPLETE = "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"
NOT_TEXT = "'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b" " * (1 << 20) + b"{}", "configuration '{path}' is larger than 1,048,576 bytes"),
        (b"[1]", "configuration '{path}' holds a list; a JSON object is needed"),
        (b"{", "configuration '{path}' is not JSON: " + INCOMPLETE),
        (b"\xff", "configuration '{path}' is not JSON: " + NOT_TEXT),
        (None, "configuration '{path}' cannot be read: No such file or directory"),
    ],
)
def test_files_that_cannot_be_read(content: bytes | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    if content is not None:
        path.write_bytes(content)
    with refused(ConfigError, message.replace("{path}", str(path))):
        load_config(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"batch = ", "configuration '{path}' is not TOML: Invalid value (at end of document)"),
        (b"\xff", "configuration '{path}' is not TOML: " + NOT_TEXT),
        (b"batch = 1.5", "batch is 1.5; it must be an integer, as 64, 0x40 or 64KiB"),
        (b"[machine]\nbatch = 1", "'machine' is not a configuration field; did you mean 'batch'?"),
    ],
)
def test_toml_that_cannot_be_read(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as raised:
        load_config(path)
    assert str(raised.value).startswith(message.replace("{path}", str(path)).partition("; did")[0])


def test_unknown_names() -> None:
    with refused(
        ConfigError,
        "'gem8x8' is not a configuration; did you mean 'gemm8x8'?; the path of a TOML or JSON file works too",
    ):
        load_config("gem8x8")
    with refused(
        ConfigError,
        "'xyz' is not a configuration; valid are ecp5, ecp5-int8, ecp5-npu, gemm8x8, gemm8x8-int8, "
        "gemm8x8-npu, tiny, tiny-int8, tiny-npu, vta, vta-int8, vta-npu; the path of a TOML or JSON "
        "file works too",
    ):
        load_config("xyz")


# --- overrides -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("64", 64),
        ("0x40", 64),
        ("64KiB", 1 << 16),
        ("64 kib", 1 << 16),
        ("2M", 2 << 20),
        ("1GiB", 1 << 30),
        ("-3", -3),
        ("true", 1),
        ("False", 0),
        (True, 1),
        (7, 7),
    ],
)
def test_quantities(text: str | int, value: int) -> None:
    assert parse_quantity("field", text) == value


@pytest.mark.parametrize("text", ["", "KiB", "1.5", "64KB", "six", "0xg", "1e3"])
def test_invalid_quantities_are_refused(text: str) -> None:
    with refused(ConfigError, f"acc_bytes is {text!r}; it must be an integer, as 64, 0x40 or 64KiB"):
        NAMED["vta"].override({"acc_bytes": text})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"batch": true}', "batch is true; it must be an integer, as 64, 0x40 or 64KiB"),
        ('{"batch": "true"}', "batch is 'true'; it must be an integer, as 64, 0x40 or 64KiB"),
        ('{"batch": null}', "batch is null; it must be an integer, as 64, 0x40 or 64KiB"),
        ("null", "configuration {} holds null; a JSON object is needed"),
        ("[1]", "configuration {} holds a list; a JSON object is needed"),
    ],
)
def test_errors_quote_json_values(content: str, message: str, tmp_path: Path) -> None:
    """JSON values are quoted as JSON spells them, and only flags accept true and false."""
    path = tmp_path / "c.json"
    path.write_text(content)
    with refused(ConfigError, message.format(repr(str(path)))):
        load_config(path)
    assert from_dict({"serial": True, "post": "true"}) == Config(name="custom", serial=1, post=1)


def test_overrides_replace_fields_of_both_kinds() -> None:
    found = NAMED["vta"].override({"acc_bytes": "64KiB", "read_latency": 20, "serial": "true"})
    assert found == replace(NAMED["vta"], acc_bytes=1 << 16, read_latency=20, serial=1)


# --- labels of machines --------------------------------------------------------------------------


def test_a_machine_that_was_changed_says_so() -> None:
    vta = NAMED["vta"]
    assert [config.label for config in NAMED.values()] == list(NAMED)
    changed = vta.override({"read_latency": 100})
    assert (changed.name, changed.label) == ("vta", "vta with read_latency=100")
    assert str(changed) == "vta with read_latency=100 (1x16x16, 64-bit bus)"
    assert changed.override({"batch": 2}).label == "vta with batch=2, read_latency=100"
    assert changed.override({"read_latency": 64}).label == "vta"
    many = changed.override({"batch": 2, "outstanding": 3, "load_queue": 4, "serial": 1})
    assert many.label == "vta with batch=2, read_latency=100, outstanding=3 and 2 more"
    assert from_dict(many.to_dict()).label == many.label
    assert vta.variant({"read_latency": 100}) == changed


def test_a_changed_machine_is_labelled_with_its_changes() -> None:
    mine = Config(name="mine", read_latency=100)
    assert mine.label == "mine"
    found = mine.variant({"read_latency": 50, "batch": 2})
    assert found == Config(name="mine with batch=2, read_latency=50", batch=2, read_latency=50)
    assert found.label == found.name
    assert mine.variant({"read_latency": 100}) == mine
    assert mine.override({"batch": 2}).name == "mine"


def test_unknown_fields_name_the_nearest() -> None:
    with refused(ConfigError, "'read_latncy' is not a configuration field; did you mean 'read_latency'?"):
        NAMED["vta"].override({"read_latncy": 1})
    with pytest.raises(ConfigError, match=r"^'name' is not a configuration field"):
        NAMED["vta"].override({"name": 1})


def test_geometry_is_refused_where_only_timing_may_be_set() -> None:
    assert NAMED["vta"].override({"bus_bits": 128}, kinds=("timing",)).bus_bits == 128
    with refused(
        ConfigError,
        "'batch' is a geometry field, bound when the program was compiled; "
        "only timing fields can be set here",
    ):
        NAMED["vta"].override({"batch": 2}, kinds=("timing",))


def test_timing_moves_to_another_geometry() -> None:
    timing = NAMED["gemm8x8"].override({"read_latency": 9})
    found = timing.with_geometry_of(NAMED["tiny"])
    for name, spec in SPECS.items():
        assert getattr(found, name) == getattr(NAMED["tiny"] if spec.kind == "geometry" else timing, name)


# --- bad values ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"batch": 3}, "batch is 3 in configuration 'custom'; it must be a power of two"),
        ({"batch": 512}, "batch is 512 in configuration 'custom'; it must be in 1..256 elements"),
        ({"batch": True}, "batch is True in configuration 'custom'; it must be an integer"),
        ({"read_latency": 0}, "read_latency is 0 in configuration 'custom'; it must be in 2..65535 cycles"),
        ({"bus_bits": 1024}, "bus_bits is 1024 in configuration 'custom'; it must be in 64..512 bits"),
        ({"serial": 2}, "serial is 2 in configuration 'custom'; it must be in 0..1 flag"),
        (
            {"acc_bytes": 64},
            "acc_bytes is 64 in configuration 'custom'; two elements of 64 bytes are the least",
        ),
        ({"uop_bytes": 4}, "uop_bytes is 4 in configuration 'custom'; two elements of 4 bytes are the least"),
        ({"mem_base": 100}, "mem_base is 100; it must be a multiple of 4096"),
        (
            {"mem_base": (1 << 40) - 4096, "mem_size": 4097},
            "mem_base + mem_size is 1099511627777; DRAM addresses have 40 bits",
        ),
        ({"fetch_chunk": 128}, "fetch_chunk is 128; fetch_buffer holds only 64 instructions"),
    ],
)
def test_values_that_do_not_hold_together(values: dict[str, Any], message: str) -> None:
    with refused(ConfigError, message):
        Config(**values)


@given(st.data())
def test_every_field_refuses_values_outside_its_declared_range(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(SPECS)))
    spec = SPECS[name]
    value: Any = data.draw(st.sampled_from([spec.low - 1, spec.high + 1]))
    with pytest.raises(ConfigError, match=rf"^{name} is {value} in configuration 'custom'; it must be in "):
        Config(**{name: value})


@pytest.mark.parametrize("name", ["vta", "gemm8x8", "ecp5", "tiny"])
def test_every_named_machine_has_an_int8_variant(name: str) -> None:
    first, second = NAMED[name], NAMED[f"{name}-int8"]
    special: dict[str, dict[str, int]] = {
        "tiny": {
            "block_out": 4,
            "wgt_bytes": 2 << 10,
            "acc_bytes": 2 << 10,
            "post_stages": 2,
            "par_bytes": 512,
            "res_bytes": 64,
        },
        "ecp5": {"post_lanes": 2},
    }
    other = special.get(name, {})
    assert second == replace(first, name=second.name, post=1, **other)
    assert (first.post, second.post) == (0, 1)
    assert "post" not in first.to_dict()
    assert second.to_dict()["post"] == 1
    assert from_dict(second.to_dict()) == second


def test_fields_of_post_1_are_refused_with_post_0() -> None:
    with refused(ConfigError, "post_stages is 3 in configuration 'vta'; only machines with post=1 have it"):
        NAMED["vta"].override({"post_stages": 3})
    changed = NAMED["vta-int8"].override({"post_stages": 3})
    assert changed.to_dict()["post_stages"] == 3
    assert "post_stages" not in NAMED["vta"].to_dict()
    assert changed.with_geometry_of(NAMED["gemm8x8"]).fields == NAMED["gemm8x8"].fields
    assert changed.with_geometry_of(NAMED["gemm8x8-int8"]).post_stages == 3


def test_post_lanes_fit_a_beat_and_an_out_element() -> None:
    lanes = {name: config.lanes for name, config in NAMED.items() if config.post}
    expected = {"vta": 8, "gemm8x8": 16, "tiny": 4, "ecp5": 2}
    assert lanes == {f"{name}-{kind}": count for kind in ("int8", "npu") for name, count in expected.items()}
    vta = NAMED["vta-int8"]
    assert vta.override({"bus_bits": 128}).lanes == 16
    assert vta.override({"bus_bits": 512}).lanes == 16
    assert vta.override({"post_lanes": 4, "bus_bits": 512}).lanes == 4
    assert vta.hardware == vta.override({"post_lanes": 8}).hardware
    with refused(ConfigError, "post_lanes is 16 in configuration 'vta-int8'; a beat has 8 values"):
        vta.override({"post_lanes": 16})
    with refused(ConfigError, "post_lanes is 8 in configuration 'tiny-int8'; an out element has 4 values"):
        NAMED["tiny-int8"].override({"post_lanes": 8})


def test_banks_of_inp_are_four_where_blocks_are_square() -> None:
    banks = {name: config.tap_banks for name, config in NAMED.items() if config.post}
    assert len(banks) == 8
    assert set(banks.values()) == {4}
    vta = NAMED["vta-int8"]
    assert vta.override({"block_out": 32}).tap_banks == 1
    assert vta.override({"block_in": 2, "block_out": 2}).tap_banks == 2
    assert vta.hardware == vta.override({"inp_banks": 4}).hardware
    assert (NAMED["vta"].tap_banks, NAMED["vta"].depthwise, vta.depthwise) == (1, False, True)
    with refused(
        ConfigError,
        "inp_banks is 2 in configuration 'vta-int8 with block_out=32'; only machines with equal block_in and "
        "block_out have depthwise MACs, and more banks than 1",
    ):
        replace(vta, name="vta-int8 with block_out=32", block_out=32, inp_banks=2)
    with refused(ConfigError, "inp_banks is 8 in configuration 'tiny-int8'; inp has 4 elements"):
        NAMED["tiny-int8"].override({"inp_bytes": 16, "inp_banks": 8})


def test_par_and_res_hold_two_elements_at_least_and_par_no_more_than_its_index_reaches() -> None:
    tiny = NAMED["tiny-int8"]
    assert (tiny.par_depth, tiny.res_depth, tiny.par_element_bytes, tiny.res_element_bytes) == (16, 16, 32, 4)
    assert tiny.override({"par_bytes": "512KiB"}).par_depth == 1 << 14
    with refused(
        ConfigError,
        "par_bytes is 1048576 in configuration 'tiny-int8'; an index into par has 14 bits, "
        "so 524288 are the most",
    ):
        tiny.override({"par_bytes": "1MiB"})
    with refused(
        ConfigError,
        "res_bytes is 4 in configuration 'tiny-int8'; two elements of 4 bytes are the least",
    ):
        tiny.override({"res_bytes": 4})
