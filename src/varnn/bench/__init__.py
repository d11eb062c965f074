"""Speed, measured: contenders take turns in one run, and only their ratios are claims.

``train``, ``score``, ``stream`` and ``growth`` each give tables of figures (``record``); ``targets``
says what the figures should reach, and ``page`` turns the saved tables into a page.
"""
