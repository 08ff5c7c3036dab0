"""The suite runs one process per processor, so numpy's matrix products have one thread each."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is imported
