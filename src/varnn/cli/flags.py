"""Settings in the words of an error -> flags of the command: ``--interval``, not ``interval=``.

The library speaks of arguments, as those who call it from Python write them. Who typed a command wants to
read what to type.
"""

import inspect
import re
from collections.abc import Mapping
from functools import partial
from typing import Any, get_args

_VALUE = r"(?:'[^']*'|\"[^\"]*\"|\[[^\]]*\]|\([^)]*\)|[\w.+-]+)"


def flags_of(command: inspect.Signature) -> dict[str, str]:
    """Flags of a command by the names of their settings.

    Examples
    --------
    >>> import typer
    >>> from typing import Annotated
    >>> Model = Annotated[str, typer.Option("--model", "-m")]
    >>> def fit(max_rows: int = 5, model_path: Model = "") -> None: ...
    >>> flags_of(inspect.signature(fit))
    {'max_rows': '--max-rows', 'model_path': '--model'}
    """
    found = {}
    for name, one in command.parameters.items():
        option = next(
            (extra for extra in get_args(one.annotation)[1:] if hasattr(extra, "param_decls")), None
        )
        if option is not None and not hasattr(option, "count"):  # an argument, which has no flag
            continue
        # Beside a type, typer keeps what is written first as the default, which it is not.
        declared: list[Any] = [] if option is None else [option.default, *(option.param_decls or ())]
        long = next((one.split("/")[0] for one in declared if str(one).startswith("--")), None)
        found[name] = long or f"--{name.replace('_', '-')}"
    return found


def with_flags(message: str, flags: Mapping[str, str]) -> str:
    """Write settings that a command has as its flags; what it has none for stays.

    Examples
    --------
    >>> flags = {"horizon": "--horizon", "interval": "--interval", "max_rows": "--max-rows"}
    >>> with_flags("interval must be between 0 and 1; got 2.", flags)
    '--interval must be between 0 and 1; got 2.'
    >>> with_flags("Fit with horizon=24, or a longer `horizon`; see method='iterate'.", flags)
    "Fit with --horizon 24, or a longer --horizon; see method='iterate'."
    """
    for name, flag in flags.items():
        message = re.sub(rf"(?<![\w.(-]){name}=\.\.\.", flag, message)
        message = re.sub(rf"(?<![\w.(-]){name}=({_VALUE})", partial(_set, flag), message)
        message = re.sub(rf"`{name}`", flag, message)
        message = re.sub(rf"^{name}(?= must | cannot | is )", flag, message)
        message = message.replace(f"{flag} ({flag})", flag)  # some say both
    return message


def _set(flag: str, found: "re.Match[str]") -> str:
    value = found[1].strip("'\"").removesuffix(".")
    end = "." if found[1].endswith(".") and not found[1].startswith(("'", '"')) else ""
    if value in ("True", "False"):
        return f"{flag if value == 'True' else flag.replace('--', '--no-', 1)}{end}"
    return f"{flag} {value}{end}"
