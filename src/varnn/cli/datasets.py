"""varnn datasets list | fetch | verify."""

import json
from typing import Annotated, Any

import typer

from varnn.cli._options import Json
from varnn.cli.voice import spoken

app = typer.Typer(help="The data sets of the paper: what is here, what is not.", no_args_is_help=True)


@app.command("list")
@spoken
def list_(as_json: Json = False) -> None:
    """Show the data sets, their size in the paper, their terms, and where they are."""
    from rich.table import Column, Table

    from varnn import datasets
    from varnn.cli.terminal import console

    known: list[dict[str, Any]] = []
    for name in datasets.names():
        if name != "synthetic":
            source, place = datasets.published(name), datasets.find(name)
            where = None if place is None else str(place)
            size = {"rows": source.rows, "inputs": source.inputs}
            known.append({"name": name, **size, "licence": source.licence, "where": where})
    if as_json:
        typer.echo(json.dumps(known, indent=1))
        return
    table = Table("name", "rows", "inputs", "licence", Column("where", overflow="fold"), box=None)
    for one in known:
        where = one["where"] or f"not found: varnn datasets fetch {one['name']}"
        table.add_row(one["name"], f"{one['rows']:,}", str(one["inputs"]), one["licence"], where)
    table.add_row("synthetic", "any", "any", "-", "computed when loaded, nothing to fetch")
    console().print(table)


@app.command()
@spoken
def fetch(
    name: Annotated[str, typer.Argument(help="appliances, bidmc or beijing")], as_json: Json = False
) -> None:
    """Download a data set into the user's cache folder, unless it is on this machine already."""
    from varnn import datasets
    from varnn.datasets import store

    source = datasets.published(name)
    place = datasets.find(name)
    fetched = place is None
    if place is None:
        place = store.fetch(source).place
    if as_json:
        facts = {"name": name, "where": str(place), "fetched": fetched}
        typer.echo(json.dumps(facts | {"licence": source.licence, "cite": source.citation}, indent=1))
    elif fetched:
        typer.echo(f"{name}: fetched and checked, in {place}")
        typer.echo(f"Licence: {source.licence}. Cite: {source.citation}")
    else:
        typer.echo(f"{name}: already here, in {place}")


@app.command()
@spoken
def verify(
    name: Annotated[str | None, typer.Argument(help="One data set; all that are here by default.")] = None,
    as_json: Json = False,
) -> None:
    """Compute the SHA-256 of every file again and compare it with the published one."""
    from varnn import datasets
    from varnn.datasets import store

    chosen = [name] if name is not None else [one for one in datasets.names() if one != "synthetic"]
    verified: list[dict[str, Any]] = []
    for one in chosen:
        source = datasets.published(one)
        if name is None and datasets.find(one) is None:
            verified.append({"name": one, "where": None, "files": 0})
            said = f"{one}: not on this machine"
        else:
            members = store.obtain(source, download=False)
            count = members.verify()
            verified.append({"name": one, "where": str(members.place), "files": count})
            said = f"{one}: every file is as published ({count} checked), in {members.place}"
        if not as_json:  # at once: a large one takes a while
            typer.echo(said)
    if as_json:
        typer.echo(json.dumps(verified, indent=1))
