"""The text task: AG News with a linear head, n=20, f=6, rho=0.5; the paper states neither its data nor its model."""

from functools import partial

from robagg.data.agnews import find_rows
from robagg.paper.axes import RULES, tell_f, vary
from robagg.paper.experiment import Experiment, Panel

F = 6
# Without an attack nobody lies, and the rules are told the same f as under it.
ROWS = vary("rule", {label: tell_f(row["rule"], F) for label, row in {"Mean": {"rule": "mean"}, **RULES}.items()})
COLUMNS = {"no attack": {"attack": "none", "f": 0}, "IPM": {"attack": "ipm", "f": F}}
TASKS = {"AG News, TF-IDF": "agnews", "AG News, MiniLM": "agnews-minilm"}


def refuse_rows(rows: str, root: str | None) -> str:
    """Why a panel with these training rows is not run: the published rows come first where they are."""
    there = find_rows(root)
    if rows in there and rows != there[0]:
        return f"the {there[0]} training rows are there and are taken"
    return "" if rows in there else f"the {rows} training rows are not there; `robagg data get agnews` downloads them"


EXPERIMENT = Experiment(
    name="nlp",
    title="AG News, f=6, rho=0.5: accuracy with and without IPM",
    kind="table",
    task="agnews",
    panels=tuple(
        Panel(
            f"{label}, {rows} rows",
            ROWS,
            COLUMNS,
            {"task": f"{task}(rows={rows!r})", "rho": 0.5},
            partial(refuse_rows, rows),
        )
        for label, task in TASKS.items()
        for rows in ("official", "subset20k")
    ),
    columns="",
    seeds=3,
    notes=(
        "Without an attack all 20 clients are honest, and the rules still assume that 6 may lie.",
        "The paper states neither the data nor the model of its text task; these are ours.",
        "official: the 120,000 published training rows; subset20k: 20,000 of them, 5,000 a class, chosen by others.",
    ),
)
