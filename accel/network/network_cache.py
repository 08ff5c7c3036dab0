"""Compiled networks in the cache on disk."""

from __future__ import annotations

import hashlib
import inspect
import json
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from accel.base.errors import ProgramError
from accel.base.result_cache import cache_key, result_cache
from accel.graph.graph import Graph
from accel.graph.graph_serialization import graph_to_data
from accel.network.network import Network
from accel.network.network_file import network_bytes, network_from_bytes
from accel.network.network_program import NetworkProgram

if TYPE_CHECKING:
    from accel.compiler.target.machine import Machine

NETWORK_KIND = "network"
_DEFAULTS = {name: one.default for name, one in inspect.signature(Network.build).parameters.items()}


def build_or_read(network: Network, on: Machine, **options: Any) -> NetworkProgram:
    """Compile a network, or read it from the cache if it has been compiled before.

    A network that was read is that of its file: its parts have no lowered layers. The seconds of compilation
    are those of this call.

    Args:
        options: those of :meth:`~accel.network.network.Network.build`.

    Raises:
        AccelError: as :meth:`~accel.network.network.Network.build`.
    """
    cache = result_cache()
    if cache is None:
        return network.build(on, **options)
    begin = time.perf_counter()
    key = network_key(network, on, **options)
    content = cache.read(NETWORK_KIND, key)
    if content is not None:
        try:
            program = network_from_bytes(content)
            return replace(program, compile_seconds=time.perf_counter() - begin)
        except ProgramError:  # of another process that the key does not distinguish: compile
            pass
    program = network.build(on, **options)
    cache.write(NETWORK_KIND, key, network_bytes(program))
    return program


def network_key(network: Network, on: Machine, **options: Any) -> str:
    """Return the key of a compiled network in the cache.

    Args:
        options: those of :meth:`~accel.network.network.Network.build`.
    """
    others = {name: value for name, value in options.items() if value != _DEFAULTS[name]}
    return cache_key(
        graph_digest(network.graph),
        json.dumps(on.config.to_dict(), sort_keys=True),
        json.dumps(others, sort_keys=True),
    )


def graph_digest(graph: Graph) -> bytes:
    """Return a digest of a graph and its constants."""
    digest = hashlib.sha256(json.dumps(graph_to_data(graph)).encode())
    for name, values in graph.constants.items():
        digest.update(f"{name} {values.dtype.str} {values.shape}".encode())
        digest.update(values.tobytes())
    return digest.digest()
