"""Ports that a component has for each of several units."""

from typing import Any

from amaranth.lib import wiring

from accel.core.isa import Unit


def port_of(component: wiring.Component, unit: Unit) -> Any:
    """The one for a unit: its name is the unit's."""
    return getattr(component, unit.label)
