"""The second listener: dashboard, commands, metrics, roles for other tools."""
