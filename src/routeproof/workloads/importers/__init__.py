"""Importers of public data sets and of other tools' cases, one file per source."""
