"""``python -m paddle_rope.native``: build the operators for this machine, or say why not."""

import sys

from paddle_rope.machine import import_paddle, prepare_process


def main() -> int:
    """Build the operators if necessary and print the state; returns the exit status, 0 even without a compiler."""
    prepare_process()
    import_paddle()
    from paddle_rope.native.library import BuildError, build, state_in_words

    try:
        build()
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(state_in_words())
    return 0


if __name__ == "__main__":
    sys.exit(main())
