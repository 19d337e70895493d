"""A store or a journal as one page that opens in any browser and asks nothing of the network."""

from robagg.report.page.build import write_report

__all__ = ["write_report"]
