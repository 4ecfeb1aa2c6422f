"""Training on Dask clusters, from Dask DataFrames or Parquet files, and prediction.

`TreeCRF` and `LinearCRF` are the ordinary estimators, whose `fit` also takes a Dask DataFrame or
the paths of Parquet files. Install the packages that they need:
``pip install 'hedgerow[dask]'``.
"""

from hedgerow.comm import WorkerError
from hedgerow.dask.estimators import LinearCRF, TreeCRF

__all__ = ["LinearCRF", "TreeCRF", "WorkerError"]
