from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.docs.samples import blocks
from tests.packaging.workspace import ROOT


def test_the_store_of_the_guide_is_conformant(tmp_path: Path) -> None:
    """What the guide for backend authors shows is a store and a provider that the suite passes."""
    samples = [
        block.text
        for block in blocks(ROOT / "docs" / "writing-a-backend.md")
        if block.language == "python"
    ]
    definitions = [text for text in samples if "await history" not in text]
    module = tmp_path / "test_guide.py"
    module.write_text("from historykit import Message\n" + "\n".join(definitions), "utf-8")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(module)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-3000:]
    assert run.stdout.count("\n  CONFORMANT (") == 2, run.stdout[-3000:]
