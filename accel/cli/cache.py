from accel.base.result_cache import MAX_BYTES, OFF, VARIABLE, result_cache
from accel.cli.stdout import write
from accel.cli.terminal_output import FiguresTable, print_json, show
from accel.run.result import SCHEMA_VERSION


def cache(clear: bool, as_json: bool) -> int:
    found = result_cache()
    entries = [] if found is None else found.entries()
    kinds = {kind: [one for one in entries if one.kind == kind] for kind in sorted({e.kind for e in entries})}
    deleted = found.clear() if clear and found is not None else 0
    figures = {
        "folder": None if found is None else str(found.folder),
        "max_bytes": MAX_BYTES if found is None else found.max_bytes,
        "kinds": {
            kind: {"entries": len(members), "bytes": sum(one.nbytes for one in members)}
            for kind, members in kinds.items()
        },
        "deleted": deleted,
    }
    if as_json:
        print_json({"schema_version": SCHEMA_VERSION, **figures})
        return 0
    if found is None:
        write(f"the cache is off ({VARIABLE}={OFF} or --no-cache)\n")
        return 0
    rows = [("folder", str(found.folder)), ("limit", f"{found.max_bytes:,} bytes")]
    rows += [
        (kind, f"{len(members):,} of {sum(one.nbytes for one in members):,} bytes")
        for kind, members in kinds.items()
    ]
    if clear:
        rows.append(("deleted", f"{deleted:,} entries"))
    show(FiguresTable(rows))
    return 0
