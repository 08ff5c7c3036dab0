"""Errors with their text pinned."""

import re

import pytest

from accel.base.errors import AccelError


def refused(kind: type[AccelError], message: str) -> pytest.RaisesExc[AccelError]:
    """Expect an error of ``kind`` whose text is exactly ``message``."""
    return pytest.raises(kind, match=f"^{re.escape(message)}$")
