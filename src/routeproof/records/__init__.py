"""What was sent and what came back: the schema, the store, the columns."""
