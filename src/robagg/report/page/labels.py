"""How many samples of each label each client holds: no record says it, but the split and its seed do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from robagg.data import histogram
from robagg.data.agnews import CLASSES, read_texts
from robagg.splits import splits
from robagg.tasks.agnews import AGNews
from robagg.tasks.base import tasks
from robagg.training.seeds import generator

Place = tuple[str, str, int, int, int]


class LabelCounts:
    """The label counts of all splits that runs ask for, each made once; data sets are loaded where they are at hand."""

    def __init__(self, data: str | Path | None = None, *, wanted: bool = True) -> None:
        self.data, self.wanted = data, wanted
        self.tables: list[dict[str, Any]] = []
        """{"counts": (n, classes)} or {"missing": why there are none}."""
        self._places: dict[Place, int] = {}
        self._labels: dict[str, tuple[Tensor, int] | str] = {}

    def add(self, run: Mapping[str, Any]) -> int:
        """Where in `tables` the counts of this run's split stand."""
        place = (run["task"], run["split"], run["n"], run["f"], run["seed"])
        if place not in self._places:
            self._places[place] = len(self.tables)
            self.tables.append(self._count(*place))
        return self._places[place]

    def _count(self, task: str, split: str, n: int, f: int, seed: int) -> dict[str, Any]:
        if not self.wanted:
            return {"missing": "the labels were not counted when this page was made"}
        found = self._load(task)
        if isinstance(found, str):
            return {"missing": found}
        labels, classes = found
        try:
            shards = splits.parse(split).split(labels, n, f, generator=generator(seed, "split"))
        except ValueError as error:
            return {"missing": f"the split {split} cannot be made here: {error}"}
        return {"counts": histogram(labels, shards, classes).tolist()}

    def _load(self, text: str) -> tuple[Tensor, int] | str:
        if text not in self._labels:
            try:
                self._labels[text] = load_labels(text, self.data)
            # The errors' own words name folders of this machine.
            except FileNotFoundError:
                self._labels[text] = f"the data of {text} are not on the machine that made this page"
            except (ImportError, ValueError):
                self._labels[text] = (
                    f"the data of {text} could not be read on the machine that made this page; "
                    f'`robagg run --task "{text}"` says why'
                )
        return self._labels[text]


def load_labels(text: str, data: str | Path | None = None) -> tuple[Tensor, int]:
    """The training labels of a task and how many kinds there are.

    >>> labels, classes = load_labels("digits")
    >>> len(labels), classes
    (1438, 10)
    """
    task = tasks.parse(text)
    if isinstance(task, AGNews):  # its vectors take minutes to compute, and nobody asks for them here
        return read_texts(task.rows, data).train_y, len(CLASSES)
    dataset = task.load(data)
    return dataset.train_y, dataset.classes
