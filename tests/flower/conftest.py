"""The newcomer's app is data of a test, and imports what may not be there."""

collect_ignore_glob = ["newcomer/*", "learners/*"]
