"""``python -m routeproof``."""

from routeproof.cli import main

main()
