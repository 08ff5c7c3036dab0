"""Ports for each of several units."""

from typing import Any

from amaranth.lib import wiring

from accel.core.isa import Unit


def port_of(component: wiring.Component, unit: Unit) -> Any:
    return getattr(component, unit.label)
