"""Charts of the HTML report: rows of a judgement to Vega-Lite, by Altair."""
