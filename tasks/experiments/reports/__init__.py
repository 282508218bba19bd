"""Further reports of plans, by name: see :data:`tasks.experiments.table.REPORTS`."""
