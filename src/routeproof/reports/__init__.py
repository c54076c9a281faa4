"""Shows a judgement: terminal, HTML, Markdown, JUnit, JSON. Computes nothing."""
