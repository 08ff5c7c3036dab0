"""The machine as the compiler sees it."""
