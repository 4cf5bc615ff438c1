"""Pictures of runs, drawn from their events: as data, in a terminal, as SVG."""
