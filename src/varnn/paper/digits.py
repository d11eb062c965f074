"""With how many digits our figures are printed: one rule for tables, and for when two figures are equal."""


def decimals(value: float) -> int:
    """Decimals of a figure: 5 as in the paper, and 6 where fewer than three digits would be left.

    Examples
    --------
    >>> decimals(0.00328), decimals(0.00015)
    (5, 6)
    """
    return 6 if value < 0.001 else 5


def printed(value: float) -> str:
    """Write a figure with the digits it is printed with.

    Examples
    --------
    >>> printed(0.0032812), printed(0.00014871)
    ('0.00328', '0.000149')
    """
    return f"{value:.{decimals(value)}f}"
