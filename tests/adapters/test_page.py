"""The page of the adapters, run with the libraries that it is about; elsewhere its blocks are passed over."""

from pathlib import Path

import pytest

from tests.test_docs import ROOT, absent, blocks, run_python

PAGE = ROOT / "docs" / "how-to" / "adapters.md"


@pytest.mark.filterwarnings("ignore")  # those of the libraries
def test_the_blocks_run_whose_library_is_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = []
    for _, text in blocks(PAGE):
        if not absent(text):
            run_python(text, {}, PAGE.name)  # each block by itself
            done.append(text)
    assert len(done) >= 2  # river and the card need nothing that is not in the lock
