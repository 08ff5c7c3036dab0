"""The machine as the compiler sees it: memory scopes, intrinsics and their emitters."""
