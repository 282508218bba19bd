"""Messages of protocol buffers, written by hand: graphs that no exporter writes."""


def varint(value):
    """A number, seven bits a byte."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def field(number, content):
    """A field of a message: of bytes, or of a number."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def onnx_node(operator, domain=b"", *attributes):
    return field(4, operator) + (field(7, domain) if domain else b"") + b"".join(field(5, one) for one in attributes)


def onnx_model(*nodes, initializers=(), more=b""):
    graph = b"".join(field(1, node) for node in nodes) + b"".join(field(5, one) for one in initializers)
    return field(1, 8) + field(8, field(2, 17)) + field(7, graph) + more


def connected_program(variables, *operators):
    """A program of Paddle 2 with one block: names of its variables; (name, inputs, outputs) of each operator."""

    def names(number, words):
        return field(number, field(1, b"X") + b"".join(field(2, word) for word in words))

    written = [field(4, names(1, inputs) + names(2, outputs) + field(3, name)) for name, inputs, outputs in operators]
    return field(1, b"".join(field(3, field(1, name)) for name in variables) + b"".join(written))


def program(*blocks):
    """A program of Paddle 2: operators of each block."""
    return b"".join(field(1, b"".join(field(4, field(3, name)) for name in block)) for block in blocks)
