"""What happened in a run, to look at: traces, timelines, reports.

result = program.run()
Timeline(result).save("gemm.html")
Trace(result).save("gemm.json")
"""

from accel.views.pictures import Report, Timeline, Trace

__all__ = ["Report", "Timeline", "Trace"]
