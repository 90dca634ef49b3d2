"""What `make` gives the processes that it starts."""

import os
import shutil
import subprocess

import pytest
from conftest import ROOT


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_bytecode_is_stored_even_where_the_environment_turns_it_off():
    command = ["make", "--no-print-directory", "--eval=told:;@env", "told"]
    told = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}, capture_output=True, text=True, check=True
    )
    names = {line.partition("=")[0] for line in told.stdout.splitlines()}
    assert "PATH" in names and "PYTHONDONTWRITEBYTECODE" not in names
