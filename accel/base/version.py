"""The version, by semantic versioning."""

__version__ = "0.1.0"
