"""Less output from libraries."""


def quiet_paddlenlp():
    """Leave PaddleNLP's warnings and errors, drop its notes on every file it reads or writes."""
    from paddlenlp.utils.log import logger

    logger.set_level("WARNING")
