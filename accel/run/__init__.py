"""Programs as users handle them: built, run on every backend, compared."""
