"""`python -m cylbo` is the command line."""

from cylbo.cli import app

app()
