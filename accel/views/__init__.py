"""Show a run: timelines, traces, reports, and comparisons of two runs.

result = program.run()
Timeline(result).save("gemm.html")
Trace(result).save("gemm.json")
"""

from accel.views.run_comparison import Comparison
from accel.views.run_pictures import Report, Timeline, Trace
from accel.views.saved_run import SavedRun

__all__ = ["Comparison", "Report", "SavedRun", "Timeline", "Trace"]
