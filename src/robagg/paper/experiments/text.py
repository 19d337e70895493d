"""The text task: AG News with a linear head, n=20, f=6, rho=0.5; the paper states neither its data nor its model."""

from functools import partial

from robagg.data.agnews import find_rows
from robagg.paper.axes import RULES, vary
from robagg.paper.experiment import Experiment, Panel

# Without an attack all clients are honest, and the rules assume the same f as under it.
_ROWS = vary("rule", {"Mean": "mean(f=6)", **{label: f"{row['rule']}(f=6)" for label, row in RULES.items()}})
_COLUMNS = {"no attack": {"attack": "none", "f": 0}, "IPM": {"attack": "ipm", "f": 6}}
_TASKS = {"AG News, TF-IDF": "agnews", "AG News, MiniLM": "agnews-minilm"}


def refuse_rows(rows: str, root: str | None) -> str:
    """Why a panel with these training rows is not run: the published rows come first where they are."""
    there = find_rows(root)
    if rows in there and rows != there[0]:
        return f"the {there[0]} training rows are there and are taken"
    return "" if rows in there else f"the {rows} training rows are not there; `robagg data get agnews` downloads them"


NLP = Experiment(
    name="nlp",
    title="AG News, f=6, rho=0.5: accuracy with and without IPM",
    kind="table",
    task="agnews",
    panels=tuple(
        Panel(
            f"{label}, {rows} rows",
            _ROWS,
            _COLUMNS,
            {"task": f"{task}(rows={rows!r})", "rho": 0.5},
            partial(refuse_rows, rows),
        )
        for label, task in _TASKS.items()
        for rows in ("official", "subset20k")
    ),
    columns="",
    seeds=3,
    notes=(
        "Without an attack all 20 clients are honest, and the rules still assume that 6 may be Byzantine.",
        "The paper states neither the data nor the model of its text task; these are ours.",
        "official: the 120,000 published training rows; subset20k: 20,000 of them, 5,000 a class, chosen by others.",
    ),
)
