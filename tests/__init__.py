"""The suite: as many processes as there are processors, so numpy's matrix products have one thread each."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is imported
