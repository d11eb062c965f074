"""varnn datasets list | fetch | verify."""

from typing import Annotated

import typer

app = typer.Typer(help="The data sets of the paper: what is here, what is not.", no_args_is_help=True)


@app.command("list")
def list_() -> None:
    """Show the data sets, their size in the paper, their terms, and where they are."""
    from rich.console import Console
    from rich.table import Column, Table

    from varnn import datasets

    table = Table("name", "rows", "inputs", "licence", Column("where", overflow="fold"), box=None)
    for name in datasets.names():
        if name == "synthetic":
            table.add_row(name, "any", "any", "-", "computed when loaded, nothing to fetch")
            continue
        source, place = datasets.published(name), datasets.find(name)
        where = "not found: varnn datasets fetch " + name if place is None else str(place)
        table.add_row(name, f"{source.rows:,}", str(source.inputs), source.licence, where)
    Console().print(table)


@app.command()
def fetch(name: Annotated[str, typer.Argument(help="appliances, bidmc or beijing")]) -> None:
    """Download a data set into the user's cache folder, unless it is on this machine already."""
    from varnn import datasets
    from varnn.datasets import store

    source = datasets.published(name)
    place = datasets.find(name)
    if place is not None:
        typer.echo(f"{name}: already here, in {place}")
        return
    members = store.fetch(source)
    typer.echo(f"{name}: fetched and checked, in {members.place}")
    typer.echo(f"Licence: {source.licence}. Cite: {source.citation}")


@app.command()
def verify(
    name: Annotated[str | None, typer.Argument(help="One data set; all that are here by default.")] = None,
) -> None:
    """Compute the SHA-256 of every file again and compare it with the published one."""
    from varnn import datasets
    from varnn.datasets import store

    chosen = [name] if name is not None else [one for one in datasets.names() if one != "synthetic"]
    for one in chosen:
        source = datasets.published(one)
        if name is None and datasets.find(one) is None:
            typer.echo(f"{one}: not on this machine")
            continue
        members = store.obtain(source, download=False)
        typer.echo(f"{one}: every file is as published ({members.verify()} checked), in {members.place}")
