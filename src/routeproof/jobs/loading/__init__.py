"""One endpoint under load: what is sent, and what is said of it."""
