"""Executes docs/notebook.ipynb in place; its cells are edited there. Needs nbclient, ipykernel and matplotlib.

python docs/scripts/notebook.py
"""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbclient import NotebookClient

PAGE = Path(__file__).parents[1] / "notebook.ipynb"


def main() -> None:
    book = nbformat.read(PAGE, as_version=4)
    NotebookClient(book, timeout=600, kernel_name="python3").execute()
    for cell in book.cells:
        cell.metadata.pop("execution", None)  # the time of day is not news
    book.metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(book, PAGE)
    print(PAGE)


if __name__ == "__main__":
    main()
