"""Training and prediction on Dask clusters, and on Parquet files that workers read.

`TreeCRF` and `LinearCRF` are the ordinary estimators, whose `fit` also takes a Dask DataFrame or
the paths of Parquet files. Install the packages that it needs:
``pip install 'hedgerow[dask]'``.
"""

from hedgerow.comm import WorkerError
from hedgerow.dask.estimators import LinearCRF, TreeCRF

__all__ = ["LinearCRF", "TreeCRF", "WorkerError"]
