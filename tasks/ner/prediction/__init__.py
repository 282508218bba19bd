"""From texts to entities with one or more trained models, and predictions out as data or as a page."""
