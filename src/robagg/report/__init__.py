"""Results as tables, figures and pages."""

from robagg.report.formats import render
from robagg.report.page import write_report
from robagg.report.playground import write_playground
from robagg.report.plots import plot
from robagg.report.tables import tabulate

__all__ = ["plot", "render", "tabulate", "write_playground", "write_report"]
