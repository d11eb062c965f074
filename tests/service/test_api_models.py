"""Models, streams and challengers over HTTP."""

from pathlib import Path
from typing import Any

import pytest

from tests.service.serving import LABELS, Served, served, whole_rows, x
from varnn import Panel, VARNNRegressor, load
from varnn.service.client import Client, ServiceRefused
from varnn.service.live_stream import StreamSettings


def refused(call: Any, *given: Any) -> int:
    """Do what is refused, and give the status."""
    with pytest.raises(ServiceRefused) as error:
        call(*given)
    return error.value.status


def own_predictions(path: Path, rows: range) -> list[float]:
    """Predict rows by a stream of a model's own, each before its label."""
    live, found = load(path).stream(), []
    for row in rows:
        found.append(live.predict(x(row)))
        live.observe(LABELS[row])
    return found


def test_models_are_uploaded_listed_and_deleted(house: Served, models: Path) -> None:
    client = house.client
    told = client.add_model("rival", models / "rival.varnn")
    assert (told["inputs"], told["target"], told["intervals"], told["used_by"]) == (
        ["heat", "wind"],
        "load",
        True,
        [],
    )
    assert told["bytes"] == (models / "rival.varnn").stat().st_size
    assert told["fingerprint"] == load(models / "rival.varnn").fitted_.fingerprint
    assert client.add_model("rival", models / "rival.varnn") == told  # again is no matter
    by_name = {one["name"]: one for one in client.models()}
    assert by_name == {"rival": told, "house": by_name["house"]}
    assert by_name["house"]["used_by"] == [{"stream": "house", "role": "champion"}]
    assert refused(client.add_model, "house", models / "rival.varnn") == 409
    assert refused(client.drop_model, "house") == 409
    assert refused(client.drop_model, "none") == 404
    client.drop_model("rival")
    assert [one["name"] for one in client.models()] == ["house"]


def test_files_that_are_no_models_are_refused(house: Served, models: Path, tmp_path: Path) -> None:
    whole = (models / "rival.varnn").read_bytes()
    for wrong in (b"", b"x", whole[:-1], whole[:100], b"\x80\x04K\x01.", whole[:500] + b"\0" + whole[501:]):
        (tmp_path / "wrong.varnn").write_bytes(wrong)
        assert refused(house.client.add_model, "wrong", tmp_path / "wrong.varnn") == 422
    assert [one["name"] for one in house.client.models()] == ["house"]
    assert [one.name for one in (house.service.folder / "models").iterdir()] == ["house.varnn"]


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../up", ".hidden", "a b", "ä", "n" * 65, "a/b", "-x", "a\0"]
)
def test_names_of_models_and_streams_are_plain(house: Served, models: Path, name: str) -> None:
    assert refused(house.client.add_model, name, models / "rival.varnn") in (404, 405, 422)
    assert refused(house.client.add_stream, name, "house") == 422
    assert sorted(one.name for one in house.service.folder.rglob("*.varnn")) == ["house.varnn"]
    assert [one.name for one in (house.service.folder / "streams").glob("*.state")] == ["house.state"]


def test_streams_are_begun_and_listed(house: Served, models: Path) -> None:
    client = house.client
    assert client.stream == "house"
    client.add_model("rival", models / "rival.varnn")
    told = client.add_stream("second", "rival")
    assert told == {
        "name": "second",
        "champion": "rival",
        "challengers": [],
        "series": 0,
        "rows": 0,
        "level": 0.9,
        "inputs": ["heat", "wind"],
        "target": "load",
        "needs_time": False,
        "late": 24,
    }
    with pytest.raises(ValueError, match="stream= must name one"), Client(house.url) as unsure:
        _ = unsure.stream
    with Client(house.url, stream="second") as second:
        answers = second.step(whole_rows(5, series="a"))
    assert [one["prediction"] for one in answers] == own_predictions(models / "rival.varnn", range(5))
    assert [(one["name"], one["series"], one["rows"]) for one in client.streams()] == [
        ("house", 0, 0),
        ("second", 1, 5),
    ]
    assert refused(client.add_stream, "second", "rival") == 409
    assert refused(client.add_stream, "third", "none") == 404
    for body in (
        b"[]",
        b"{}",
        b"null",
        b'[{"name": "a", "champion": "house"}]',
        b"[null, null]",
        b'{"name": 1, "champion": []}',
    ):
        assert refused(client.request, "POST", "/v1/streams", body) == 422
    assert refused(client.request, "POST", "/v1/streams", b"{") == 400


def test_models_that_cannot_be_served_are_refused(house: Served, tmp_path: Path) -> None:
    panel = Panel.from_arrays(
        [[float(n)] for n in range(80)] * 2, list(map(float, range(160))), series=["a"] * 80 + ["b"] * 80
    )
    VARNNRegressor(ensemble=1, epochs=1, hidden_size=4, peers=True).fit(panel).save(tmp_path / "linked.varnn")
    house.client.add_model("linked", tmp_path / "linked.varnn")
    assert refused(house.client.add_stream, "linked", "linked") == 422
    assert refused(house.client.add_challenger, "linked") == 409
    assert [one["name"] for one in house.client.streams()] == ["house"]


def test_a_challenger_goes_along_with_scores_side_by_side(house: Served, models: Path) -> None:
    client = house.client
    client.add_model("rival", models / "rival.varnn")
    client.add_model("narrow", models / "narrow.varnn")
    assert client.add_challenger("rival")["challengers"] == ["rival"]
    assert client.add_challenger("narrow")["challengers"] == ["rival", "narrow"]
    assert {one["name"]: one["used_by"] for one in client.models()}["rival"] == [
        {"stream": "house", "role": "challenger"}
    ]
    answers = client.step(whole_rows(60, series="a"))
    rival = own_predictions(models / "rival.varnn", range(60))
    assert [one["prediction"] for one in answers] == own_predictions(models / "house.varnn", range(60))
    found = client.history("a")
    assert found["challengers"]["rival"]["prediction"] == rival
    assert set(found["challengers"]) == {"rival", "narrow"}
    scores = client.scores()
    assert set(scores) == {"house", "rival", "narrow"}
    assert {one["rows"] for one in scores.values()} == {60}
    assert client.one("a")["scores"] == scores
    errors = [abs(y - said) for y, said in zip(LABELS[:60], rival, strict=True)]
    weights = [(1 - 1 / 500) ** (59 - row) for row in range(60)]
    mean = sum(w * e for w, e in zip(weights, errors, strict=True)) / sum(weights)
    assert scores["rival"]["mae"] == pytest.approx(mean)
    assert refused(client.drop_model, "rival") == 409
    assert refused(client.add_challenger, "rival") == 409
    assert refused(client.add_challenger, "house") == 409
    assert refused(client.add_challenger, "none") == 404
    assert refused(client.promote, "narrow") == 409  # it does not take wind
    assert client.drop_challenger("rival")["challengers"] == ["narrow"]
    assert set(client.history("a")["challengers"]) == {"narrow"}
    assert refused(client.drop_challenger, "rival") == 404
    assert refused(client.promote, "rival") == 404
    client.drop_model("rival")
    assert client.step(whole_rows(1, first=60, series="a"))[0]["row"] == 60


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("rows", [1, 20, 90])
def test_a_promoted_challenger_goes_on_as_its_own_stream(
    models: Path, tmp_path: Path, rows: int, restarted: bool
) -> None:
    """Bit for bit, also of series that are on disk alone at that moment."""
    settings = StreamSettings(in_memory=3)
    names = [f"s{number}" for number in range(7)]

    def said(client: Client, row: int) -> list[dict[str, Any]]:
        answers: list[dict[str, Any]] = client.step(
            [{"series": name, "x": x(row), "y": LABELS[row], "key": f"{row}"} for name in names]
        )
        return answers

    with served(tmp_path / "s", models / "house.varnn", settings=settings) as house:
        house.client.add_model("rival", models / "rival.varnn")
        house.client.add_challenger("rival")
        for row in range(rows):
            last = said(house.client, row)
        if not restarted:
            house.client.promote("rival")
    with served(tmp_path / "s", settings=settings) as house:
        client = house.client
        if restarted:
            client.promote("rival")
        assert said(client, rows - 1) == last  # sent again
        own = {
            name: own_predictions(models / f"{name}.varnn", range(rows + 40)) for name in ("house", "rival")
        }
        for row in range(rows, rows + 40):
            answers = said(client, row)
            assert [one["row"] for one in answers] == [row] * 7
            assert [one["seq"] for one in answers] == [row + 1] * 7
            assert [one["prediction"] for one in answers] == [own["rival"][row]] * 7
        for name in names:
            found = client.history(name)
            assert found["columns"]["prediction"] == own["house"][:rows] + own["rival"][rows:]
            assert found["challengers"]["house"]["prediction"][rows:] == own["house"][rows:]


def test_promotion_keeps_history_keys_and_whose_scores_are_whose(house: Served, models: Path) -> None:
    client = house.client
    client.add_model("rival", models / "rival.varnn")
    client.add_challenger("rival")
    rows = whole_rows(80, series="a")
    for number, one in enumerate(rows):
        one["key"] = f"k{number}"
    answers = client.step(rows)
    before, scores = client.history("a")["columns"], client.scores()
    assert scores["rival"]["rmse"] != scores["house"]["rmse"]
    told = client.promote("rival")
    assert (told["champion"], told["challengers"]) == ("rival", ["house"])
    assert client.history("a")["columns"] == before
    assert client.step(rows) == answers
    assert client.scores() == scores
    client.promote("house")
    assert client.scores() == scores
    client.step(whole_rows(20, first=80, series="a"))
    assert {one["rows"] for one in client.scores().values()} == {100}
    prediction = client.predict({"series": "a", "x": x(100)})["prediction"]
    assert prediction == own_predictions(models / "house.varnn", range(101))[-1]  # there and back


def test_a_series_that_the_promoted_one_never_joined_keeps_its_numbers(house: Served, models: Path) -> None:
    client = house.client
    client.step(whole_rows(10, series="old"))
    client.add_model("rival", models / "rival.varnn")
    client.add_challenger("rival")
    client.step(whole_rows(10, series="new"))
    client.promote("rival")
    assert client.history("old")["columns"]["row"] == list(range(10))
    answer = client.step({"series": "old", "x": x(3), "y": 1.0})
    assert (answer["row"], answer["seq"]) == (10, 11)
    assert answer["prediction"] == own_predictions(models / "rival.varnn", range(3, 4))[0]
    assert client.history("old")["columns"]["row"] == list(range(11))


def test_a_row_that_waits_for_its_label_outlives_a_promotion(house: Served, models: Path) -> None:
    client = house.client
    client.add_model("rival", models / "rival.varnn")
    client.add_challenger("rival")
    client.step(
        [*whole_rows(5, series="a"), {"series": "a", "x": x(5), "key": "five"}, {"series": "a", "x": x(6)}]
    )
    client.promote("rival")
    assert client.one("a")["waiting"] == [5]
    assert client.observe({"series": "a", "y": LABELS[5], "for": "five"})["row"] == 5
    client.observe({"series": "a", "y": LABELS[6]})
    expected = own_predictions(models / "rival.varnn", range(8))[-1]
    assert client.predict({"series": "a", "x": x(7)})["prediction"] == expected


def test_a_stream_has_so_many_challengers_at_most(house: Served, models: Path) -> None:
    for number in range(6):
        house.client.add_model(f"m{number}", models / "rival.varnn")
    for number in range(5):
        house.client.add_challenger(f"m{number}")
    assert refused(house.client.add_challenger, "m5") == 409
    assert house.client.streams()[0]["challengers"] == [f"m{number}" for number in range(5)]
