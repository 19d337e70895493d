"""`python -m robagg` is `robagg`."""

from robagg.cli import main

main()
