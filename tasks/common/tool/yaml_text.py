"""YAML of configurations and plans, in bounded memory and time: aliases let a short text stand for a huge value."""

from typing import Any

import yaml

from tasks.common.language import Message

LONGEST = 1_000_000  # characters
MOST_VALUES = 100_000  # with each alias written out
DEEPEST = 50


def load_yaml(text: str, loader_class: type[yaml.SafeLoader] = yaml.SafeLoader) -> Any:
    """The value of a YAML text, as of ``yaml.load`` with a loader that runs nothing.

    Raises:
        yaml.YAMLError: it is not YAML, a value cannot be read as what it looks like, or it is too long or too deep,
            with each alias written out; with ``problem`` and ``problem_mark``.
    """
    if len(text) > LONGEST:
        raise yaml.MarkedYAMLError(problem=Message("more than {longest:,} characters", longest=LONGEST))
    loader = loader_class(text)
    node = None
    try:
        node = loader.get_single_node()
        _check_size(node)
        return None if node is None else loader.construct_document(node)
    except RecursionError:
        mark = None if node is None else node.start_mark
        raise yaml.MarkedYAMLError(
            problem=Message("nested more than {deepest} deep", deepest=DEEPEST), problem_mark=mark
        ) from None
    except (ValueError, TypeError, OverflowError, LookupError, AttributeError) as error:
        problem = Message("a value cannot be read: {error}", error=str(error)[:100])
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=loader.get_mark()) from None
    finally:
        loader.dispose()


def _check_size(root):
    """Raise MarkedYAMLError for a document that is too large or too deep, or that holds itself."""
    sizes: dict[int, int] = {}  # of the nodes that are counted, by identity
    open_nodes: set[int] = set()

    def size(node, depth):
        if id(node) in sizes:
            return sizes[id(node)]
        if depth > DEEPEST:
            raise yaml.MarkedYAMLError(
                problem=Message("nested more than {deepest} deep", deepest=DEEPEST), problem_mark=node.start_mark
            )
        if id(node) in open_nodes:
            raise yaml.MarkedYAMLError(problem=Message("a value that holds itself"), problem_mark=node.start_mark)
        open_nodes.add(id(node))
        inner = []
        if isinstance(node, yaml.MappingNode):
            inner = [part for pair in node.value for part in pair]
        elif isinstance(node, yaml.SequenceNode):
            inner = node.value
        total = 1 + sum(size(part, depth + 1) for part in inner)
        open_nodes.remove(id(node))
        sizes[id(node)] = total
        if total > MOST_VALUES:
            problem = Message("more than {most_values:,} values, with aliases written out", most_values=MOST_VALUES)
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
        return total

    if root is not None:
        size(root, 0)
