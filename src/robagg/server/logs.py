"""A round in the log: how many were believed, and by name who was not."""

from __future__ import annotations

import logging

from robagg.server.quote import quote
from robagg.server.report import RoundReport


def log_report(logger: logging.Logger, report: RoundReport) -> None:
    """One line for the round, and one for each client that was rejected or lost."""
    believed = report.answered - len(report.rejected)
    force = "" if report.f is None else f", f in force {report.f}"
    tau = "" if report.tau is None else f", tau {report.tau:.4g}"
    looking = ", looking on only" if report.observed else ""
    logger.info(
        "robagg: %s: %d of %d replies not rejected%s%s%s", report.rule, believed, report.answered, force, tau, looking
    )
    for client in report.clients:
        if client.rejected or not client.replied:
            what = "rejected" if client.replied else "lost"
            logger.warning("\t> client %s %s: %s", quote(client.client), what, client.reason)
        elif client.reason:
            logger.debug("\t> client %s: %s", quote(client.client), client.reason)
        if client.aside:
            logger.warning("\t> client %s: %s; the median of all is taken", quote(client.client), client.aside)
    if report.unasked:
        names = ", ".join(map(quote, report.unasked))
        logger.warning("\t> not asked, so that what they sent does not count: %s", names)
    if report.note:
        logger.warning("robagg: %s", report.note)
    if report.unprotected:
        logger.warning("robagg: round %d is not protected: %s", report.round, report.unprotected)
    if report.skipped:
        what = "would be skipped" if report.observed else "is skipped and the model kept"
        logger.error("robagg: round %d %s: %s", report.round, what, report.skipped)
