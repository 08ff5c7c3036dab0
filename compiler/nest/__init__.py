"""Loop nests: from a schedule to calls of intrinsics."""
