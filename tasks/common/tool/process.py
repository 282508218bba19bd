"""Set-up of the process."""

from paddle_rope.machine import import_paddle, prepare_process


def prepare():
    """Called when work begins, before anything that imports paddle."""
    prepare_process()
    import_paddle()
