"""Less output from libraries."""

from paddlenlp.utils.log import logger


def quiet_paddlenlp():
    """Leave PaddleNLP's warnings and errors, drop its notes on every file it reads or writes."""
    logger.set_level("WARNING")
