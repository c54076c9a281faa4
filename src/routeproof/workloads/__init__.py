"""Cases, arrival processes, importers of public data sets and traces, fingerprint."""
