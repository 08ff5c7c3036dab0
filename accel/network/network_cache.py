"""Compiled networks in the cache on disk."""

from __future__ import annotations

import hashlib
import inspect
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accel.base.errors import ProgramError
from accel.base.records import as_dict, replace
from accel.base.result_cache import NETWORK_KIND, cache_key, result_cache
from accel.graph.graph import Graph
from accel.graph.graph_serialization import graph_to_data
from accel.network.network import Network
from accel.network.network_file import network_bytes, network_from_bytes
from accel.network.network_program import NetworkProgram
from accel.rewriting.search_result import SearchLimits

if TYPE_CHECKING:
    from accel.compiler.target.machine import Machine

_DEFAULTS = {name: one.default for name, one in inspect.signature(Network.build).parameters.items()}


def build_or_read(
    network: Network, on: Machine, *, rules: Path | None = None, jobs: int = 1, **options: Any
) -> NetworkProgram:
    """Compile a network, or read it from the cache.

    A network from the cache has no lowered layers. The seconds of compilation are those of this call. The key
    contains the content of the files of rules and records.

    Args:
        rules: a file whose code is executed unless the compiled network is in the cache.
        jobs: as in :meth:`accel.Network.build`. The key does not contain it.

    Raises:
        AccelError: as :meth:`accel.Network.build`, and :func:`~accel.rewriting.rules_file.load_rules`.
        OSError: a file cannot be read.
    """

    def build() -> NetworkProgram:
        if rules is None:
            return network.build(on, jobs=jobs, **options)
        from accel.rewriting.rules_file import load_rules  # reading a network needs no rules

        return network.build(on, rules=load_rules(rules), jobs=jobs, **options)

    cache = result_cache()
    if cache is None:
        return build()
    begin = time.perf_counter()
    key = network_key(network, on, rules=rules, **options)
    content = cache.read(NETWORK_KIND, key)
    if content is not None:
        try:
            program = network_from_bytes(content)
            return replace(program, compile_seconds=time.perf_counter() - begin)
        except ProgramError:  # written by a process that the key does not distinguish: compile
            pass
    program = build()
    cache.write(NETWORK_KIND, key, network_bytes(program))
    return program


def network_key(network: Network, on: Machine, *, rules: Path | None = None, **options: Any) -> str:
    given = {**options, "rules": rules or ()}
    others = {name: value for name, value in given.items() if value != _DEFAULTS[name]}
    return cache_key(
        graph_digest(network.graph),
        json.dumps(on.config.to_dict(), sort_keys=True),
        json.dumps(others, sort_keys=True, default=_content),
    )


def _content(option: Path | SearchLimits) -> Any:
    if isinstance(option, Path):
        return hashlib.sha256(option.read_bytes()).hexdigest()
    return as_dict(option)


def graph_digest(graph: Graph) -> bytes:
    digest = hashlib.sha256(json.dumps(graph_to_data(graph)).encode())
    for name, values in graph.constants.items():
        digest.update(f"{name} {values.dtype.str} {values.shape}".encode())
        digest.update(values.tobytes())
    return digest.digest()
