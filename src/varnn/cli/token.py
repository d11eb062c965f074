"""varnn token make | link | list | revoke."""

import json
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from varnn.cli._options import Json
from varnn.cli.voice import spoken

if TYPE_CHECKING:
    from varnn.service.tokens import Token, Tokens

app = typer.Typer(help="Tokens of those who may call a service (varnn serve).", no_args_is_help=True)

_Name = Annotated[str, typer.Argument(metavar="NAME", help="What to call it: who or what will hold it.")]
_Days = Annotated[
    float | None, typer.Option("--days", help="Days it is good for; without it, until it is revoked.")
]
_Data = Annotated[Path | None, typer.Option("--data", help="Folder of the service; its file is tokens.json.")]
_File = Annotated[Path | None, typer.Option("--token-file", help="File of tokens in another place.")]


@app.command()
@spoken
def make(
    name: _Name,
    scope: Annotated[
        str,
        typer.Option(
            "--scope", help="read; write, which also sends rows; or admin, which also changes models."
        ),
    ],
    days: _Days = None,
    data: _Data = None,
    token_file: _File = None,
    as_json: Json = False,
) -> None:
    """Make a token and print it, once: only its hash is kept.

    The first token closes the service to all who have none, at once where it runs.
    """
    tokens = _tokens(data, token_file, may_make=True)
    _print_made(tokens, tokens.make(name, scope, days), as_json)


@app.command()
@spoken
def link(
    name: _Name,
    url: Annotated[
        str, typer.Option("--url", help="Where the service is seen, as https://house.example.org.")
    ],
    days: _Days = None,
    data: _Data = None,
    token_file: _File = None,
    as_json: Json = False,
) -> None:
    """Make a token that only reads, and print a link that opens the dashboard with it."""
    from varnn.errors import ConfigError

    if not re.fullmatch(r"https?://[^\s/?#@]+/?", url):
        raise ConfigError(f"--url must be as http://host:8000, without a path; got {url!r}.")
    tokens = _tokens(data, token_file, may_make=True)
    text = tokens.make(name, "read", days)
    _print_made(tokens, text, as_json, f"{url.rstrip('/')}/?link={text}")


@app.command("list")
@spoken
def list_(data: _Data = None, token_file: _File = None, as_json: Json = False) -> None:
    """Show all tokens: what they allow and until when, but not the tokens themselves."""
    from rich.table import Table

    from varnn.cli.terminal import console

    tokens, now = _tokens(data, token_file).list(), time.time()
    if as_json:
        typer.echo(json.dumps([_facts(one) | {"status": one.status(now)} for one in tokens], indent=1))
        return
    table = Table("id", "name", "scope", "made", "expires", "status", box=None)
    for one in tokens:
        facts = _facts(one)
        times = (facts["made"], facts["expires"] or "never")
        table.add_row(one.id, one.name, one.scope, *times, one.status(now))
    console().print(table)


@app.command()
@spoken
def revoke(
    token: Annotated[str, typer.Argument(metavar="NAME_OR_ID", help="The token's name, or its id.")],
    data: _Data = None,
    token_file: _File = None,
    as_json: Json = False,
) -> None:
    """Make a token useless, at once where the service runs; sessions begun with it end."""
    one = _tokens(data, token_file).revoke(token)
    typer.echo(json.dumps(_facts(one), indent=1) if as_json else f"{one.name} ({one.id}) is revoked.")


def _tokens(data: Path | None, token_file: Path | None, *, may_make: bool = False) -> "Tokens":
    """Open the file that two options name; only who makes a token may begin a file."""
    from varnn.errors import ConfigError, OutputError
    from varnn.service.tokens import Tokens

    if data is not None and token_file is None:
        path = data / "tokens.json"
    elif token_file is not None and data is None:
        path = token_file
    else:
        raise ConfigError(
            "say where the tokens are, by either --data (the service's folder) or --token-file."
        )
    if may_make and data is not None:
        try:
            data.mkdir(
                exist_ok=True
            )  # a service that others may reach needs its tokens before its first start
        except OSError as error:
            raise OutputError(
                f"{str(data)!r} cannot be made: {error.strerror}. Name another folder."
            ) from None
    elif not may_make and not path.exists():
        raise ConfigError(f"there is no file of tokens {str(path)!r}. Make one by: varnn token make")
    return Tokens(path)


def _print_made(tokens: "Tokens", text: str, as_json: bool, address: str | None = None) -> None:
    from varnn.cli.terminal import console

    one = tokens.find(text)
    facts = {} if one is None else _facts(one)
    if as_json:
        found = {"token": text, **facts, "file": str(tokens.path)}
        typer.echo(json.dumps(found if address is None else found | {"link": address}, indent=1))
        return
    typer.echo(text if address is None else address)
    console(stderr=True).print(
        f"kept as a hash in {tokens.path}; this is the only time it is shown.", markup=False
    )


def _facts(one: "Token") -> dict[str, Any]:
    """What may be told of a token: all but the hash of its secret."""
    from varnn.service.tokens import utc

    times = {"made": one.made, "expires": one.expires, "revoked": one.revoked}
    told = {name: None if at is None else utc(at) for name, at in times.items()}
    return {"id": one.id, "name": one.name, "scope": one.scope, **told}
