"""A live engine, looked at again and again."""
