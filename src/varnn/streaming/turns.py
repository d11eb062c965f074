"""What is due once in so many messages, for many series that go in step: not for all of them at once."""

_STEP = 97  # a prime: numbers that follow each other get turns that lie apart


def turn(number: int, every: int) -> int:
    """Messages after which something is due for the series of a number: half of ``every`` to all of it.

    Written for all at once, states of a thousand series would hold up everybody for seconds.

    Examples
    --------
    >>> [turn(number, 500) for number in (1, 2, 3, 4)]
    [500, 403, 306, 460]
    """
    return every - max(0, number - 1) * _STEP % (every // 2 + 1)
