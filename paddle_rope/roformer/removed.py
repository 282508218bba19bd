"""Options that our experiments found not to help, and that are gone; commit e394b37 is the last with them."""

from collections.abc import Mapping
from typing import Any

from paddle_rope.options import shown

# Option -> the values without effect, which older files hold.
OPTIONS = {
    "score_scaling_length": (None,),
    "convolution_size": (None, 3),
    "position_gaps": (None,),
    "num_random_features": (None,),
}
# Option that is still there -> its values that are gone.
VALUES = {
    "feature_map": ("hedgehog", "identity", "squared_relu"),
    "normalizer": ("subtracted_mean",),
    "decay": ("token",),
}
_CONVOLUTIONS = {"input", "value", "output"}  # `convolutions` was a list of some of them


class RemovedOption(ValueError):
    """An option that was removed is in use."""


def without_removed(given: Mapping[str, Any], removed: Mapping[str, tuple] = OPTIONS) -> dict[str, Any]:
    """The options of an older file in today's terms: removed options without effect are left out, and ``convolutions``
    is true or false.

    Raises:
        RemovedOption: an option of ``removed``, or one of :data:`VALUES`, is in use.
    """
    options = dict(given)
    for name, unused in removed.items():
        if name in options and (value := options.pop(name)) not in unused:
            raise _error(name, value)
    for name, values in VALUES.items():
        if options.get(name) in values:
            raise _error(name, options[name])
    convolutions = options.get("convolutions")
    if isinstance(convolutions, (str, list, tuple)):
        names = convolutions.split(",") if isinstance(convolutions, str) else convolutions
        places = {str(name).strip() for name in names} - {""}
        if places <= _CONVOLUTIONS:
            if places and places != _CONVOLUTIONS:
                raise _error("convolutions", convolutions)
            options["convolutions"] = bool(places)
    return options


def _error(name, value):
    what = f"{name} {shown(value)}"
    return RemovedOption(f"{what} was removed, because it did not help; commit e394b37 is the last with it")
