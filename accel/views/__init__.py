"""What happened in a run, to look at: traces, timelines, reports.

result = program.run()
Timeline(result).save("gemm.html")
Trace(result).save("gemm.json")
"""

from accel.views.comparison import Comparison
from accel.views.pictures import Report, Timeline, Trace
from accel.views.saved import SavedRun

__all__ = ["Comparison", "Report", "SavedRun", "Timeline", "Trace"]
