"""Mutants of binary files by their structure: pickles, zip archives, safetensors."""

import io
import pickletools
import struct
import zipfile

from tests.attack.mutators import OF_BYTES, mutate
from tests.attack.trees import change_json

# What a hostile pickle may hold: names that run something, sizes that take memory, recursion.
OPCODES = (
    *(b"cos\nsystem\n", b"cbuiltins\neval\n", b"cnumpy\nempty\n", b"cpaddle\nload\n", b"cbuiltins\nbytearray\n"),
    *(
        b"cbuiltins\nbytes\n",
        b"ccollections\nOrderedDict\n",
        b"cnumpy\ndtype\n",
        b"cnumpy.core.multiarray\n_reconstruct\n",
    ),
    *(
        b"X\x02\x00\x00\x00os",
        b"\x93",
        b"R",
        b"b",
        b"\x81",
        b"\x92",
        b"o",
        b"(",
        b")",
        b"]",
        b"}",
        b"t",
        b"l",
        b"d",
        b"e",
        b"u",
    ),
    *(
        b"s",
        b"a",
        b"0",
        b"1",
        b"2",
        b"\x85",
        b"\x86",
        b"\x87",
        b"\x94",
        b"N",
        b"K\x00",
        b"K\xff",
        b"J\xff\xff\xff\x7f",
        b"J\x00\x00\x00\x80",
    ),
    *(
        b"\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00",
        b"I1\n",
        b"F1e400\n",
        b"L9999999999999999999L\n",
        b"h\x00",
        b"q\xff",
        b"r\xff\xff\xff\x7f",
    ),
    *(
        b"p4000000000\n",
        b"B\xff\xff\xff\x7f",
        b"\x8e\xff\xff\xff\xff\x00\x00\x00\x00",
        b"\x8d\xff\xff\xff\xff\x01\x00\x00\x00",
        b"\x96\xff\xff\xff\xff\x00\x00\x00\x00",
    ),
    *(
        b"T\xff\xff\xff\x7f",
        b"P0\n",
        b"Q",
        b"\x95\xff\xff\xff\xff\x00\x00\x00\x00",
        b"\x80\x05",
        b"\x80\xff",
        b"\x82\x01",
        b".",
        b"\x88",
        b"\x8f",
    ),
)


def change_pickle(content, rng):
    """Operations of a pickle dropped, doubled, moved, replaced or put in; what follows the pickle stays."""
    try:
        positions = [position for _, _, position in pickletools.genops(content)]
    except Exception:  # a mutant of a mutant
        return mutate(content, rng, OF_BYTES)
    end = content.index(b".", positions[-1]) + 1
    operations = [content[one:other] for one, other in zip(positions, [*positions[1:], end])]
    place = rng.randrange(len(operations))
    kind = rng.randrange(6)
    if kind == 0:
        operations.pop(place)
    elif kind == 1:
        operations.insert(place, operations[place])
    elif kind == 2:
        operations.insert(place, rng.choice(OPCODES) * rng.choice((1, 1, 1, 3, 2000)))
    elif kind == 3:
        operations[place] = rng.choice(OPCODES)
    elif kind == 4:
        other = rng.randrange(len(operations))
        operations[place], operations[other] = operations[other], operations[place]
    else:
        operations[place] = mutate(operations[place], rng, OF_BYTES)
    return b"".join(operations) + content[end:]


def change_zip(content, rng):
    """A zip archive written anew with a member changed, dropped, doubled, renamed, deflated or made large."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = [(info.filename, archive.read(info), zipfile.ZIP_STORED) for info in archive.infolist()]
    except Exception:  # a mutant of a mutant
        return mutate(content, rng, OF_BYTES)
    if not members:
        return mutate(content, rng, OF_BYTES)
    place = rng.randrange(len(members))
    name, data, kind_of_member = members[place]
    kind = rng.randrange(8)
    if kind == 0:
        members.pop(place)
    elif kind == 1:
        members.append(members[place])
    elif kind == 2:
        other = rng.choice(members)[0]
        members[place] = (
            rng.choice((name + "x", "../" + name, other, "data.pkl", "archive/byteorder", "x" * 300)),
            data,
            kind_of_member,
        )
    elif kind == 3:
        members[place] = (name, data, zipfile.ZIP_DEFLATED)
    elif kind == 4:
        members[place] = (name, data + bytes(rng.choice((1, 1000, 1000, 1000, 100_000_000))), zipfile.ZIP_DEFLATED)
    elif kind == 5 and name.endswith(".pkl"):
        members[place] = (name, change_pickle(data, rng), kind_of_member)
    else:
        change = change_pickle if name.endswith(".pkl") else lambda data, rng: mutate(data, rng, OF_BYTES)
        members[place] = (name, change(data, rng), kind_of_member)
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name, data, how in members:
            archive.writestr(zipfile.ZipInfo(name), data, how, 1)
    content = written.getvalue()
    return mutate(content, rng, OF_BYTES) if rng.random() < 0.2 else content


def change_safetensors(content, rng):
    """The header of safetensors changed as JSON, with its true length or another."""
    if len(content) < 8:
        return mutate(content, rng, OF_BYTES)
    size = min(struct.unpack("<Q", content[:8])[0], len(content))
    header, data = content[8 : 8 + size], content[8 + size :]
    header = change_json(header, rng) if rng.random() < 0.8 else mutate(header, rng, OF_BYTES)
    length = len(header) if rng.random() < 0.9 else rng.choice((0, 1, 2**31, 2**32, 2**63, 2**64 - 1, len(header) + 1))
    return struct.pack("<Q", length) + header + data
