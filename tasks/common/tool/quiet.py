"""Less output from libraries."""


def quiet_paddlenlp():
    """Leave PaddleNLP's warnings and errors, without colors; drop its notes on every file it reads or writes."""
    from paddlenlp.utils.log import logger

    logger.set_level("WARNING")
    logger.format.no_color = True  # escapes are shown as such
