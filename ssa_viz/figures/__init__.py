"""Arrays in, plotly figures out; one module per figure. Nothing here knows a model or a page."""
