"""Direct multi-step forecasts: a network of its own that looks from the last label to the next H rows.

::

    panel -> rows as they look before they come (`rows`) -> linear part for each step (`direct`)
          -> what that leaves, by the network's heads (`forecaster`) -> bands (`varnn.model.intervals`)

A one-step prediction of row t may use the inputs of row t. A forecast may not, but for inputs that are
known in the future (a calendar, a plan, somebody else's forecast): so the network is trained on rows that
show the other inputs as they were one row ago. Its own row's error feeds the memory, as ever; heads on
the same hidden layer, trained with it, say what the H - 1 rows after it will be. No step is fed with the
forecasts of others: the linear part follows the direct strategy, the network that of multiple outputs [1]_.

References
----------
.. [1] S. Ben Taieb, G. Bontempi, A. F. Atiya and A. Sorjamaa, "A review and comparison of strategies for
   multi-step ahead time series forecasting", Expert Systems with Applications 39, 2012.
"""

from varnn.model.forecast.direct import DirectPart
from varnn.model.forecast.forecast import Forecast
from varnn.model.forecast.forecaster import Forecaster

__all__ = ["DirectPart", "Forecast", "Forecaster"]
