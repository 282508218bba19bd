"""Relations between entities (GPLinker), built on the recipe of entities, :mod:`paddle_rope.tasks.ner`."""
