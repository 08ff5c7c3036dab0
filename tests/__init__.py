"""The suite runs one process per processor, so numpy's matrix products and LightGBM have one thread each."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is imported
os.environ.setdefault("OMP_NUM_THREADS", "1")
