"""`tandem`: the one command, put together from its parts."""

from __future__ import annotations

import typer

from cli.ask import ask
from cli.calibrate import calibrate
from cli.cost import cost
from cli.decide import decide
from cli.demo import demo
from cli.drift import drift
from cli.evaluate import evaluate_app
from cli.example import example
from cli.keys import keys_app
from cli.ledger import ledger_app
from cli.models import models_app
from cli.policy import policy_app
from cli.replay import replay
from cli.report import report
from cli.sweep import sweep_app
from cli.train import train_app
from cli.trim import trim_app
from cli.up import up

app = typer.Typer(
    name="tandem",
    help="Answers each LLM request with the cheapest model that is good enough, in time.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
)
app.command()(up)
app.command()(ask)
app.command()(decide)
app.command()(demo)
app.command()(calibrate)
app.add_typer(sweep_app, name="sweep")
app.command()(replay)
app.command()(cost)
app.command()(report)
app.command()(drift)
app.command()(example)
app.add_typer(models_app, name="models")
app.add_typer(policy_app, name="policy")
app.add_typer(keys_app, name="keys")
app.add_typer(ledger_app, name="ledger")
app.add_typer(evaluate_app, name="evaluate")
app.add_typer(train_app, name="train")
app.add_typer(trim_app, name="trim")


def main() -> None:
    """Console script. Exit codes: 0 done, 1 failed, 2 bad input, 3 nothing listens, 4 too late."""
    app()


if __name__ == "__main__":
    main()
