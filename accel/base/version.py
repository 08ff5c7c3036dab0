"""The version of the package; its public API follows semantic versioning."""

__version__ = "0.1.0"
