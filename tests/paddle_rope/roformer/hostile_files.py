"""Small files of tensors that ask for much memory or time: name, content, and what the error says."""

import io
import zipfile

NUMBERS = b"\x80\x04"  # of protocol 4
STORAGE = (  # the persistent id of a torch storage of one number, on the stack
    b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x01tQ"
)
REBUILD = b"ctorch._utils\n_rebuild_tensor_v2\n"


def nested(levels):
    """A tuple of tuples that has 2^levels ends, in two bytes a level."""
    return b")" + b"2\x86" * levels


def archive(pickled, storage=b"\0\0\x80?", compression=zipfile.ZIP_STORED):
    """A file of ``torch.save``."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as members:
        members.writestr("archive/data.pkl", pickled)
        members.writestr("archive/data/0", storage)
    return file.getvalue()


def tensor(size, strides):
    """A pickle of one tensor on the storage of one number; ``size`` and ``strides`` are opcodes of tuples."""
    return b"\x80\x02}X\x01\x00\x00\x00a" + REBUILD + b"(" + STORAGE + b"K\x00" + size + strides + b"\x89}tRs."


def encrypted(content):
    """An archive whose members say that they are encrypted."""
    changed = bytearray(content)
    for start, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = changed.find(start)
        while place >= 0:
            changed[place + flags] |= 1
            place = changed.find(start, place + 4)
    return bytes(changed)


MILLION = b"J\x40\x42\x0f\x00"
HOSTILE = {
    "memo.pdparams": (b"\x80\x02}r\xff\xff\xff\xff.", "holds|lacks|^$"),
    "frame.pdparams": (NUMBERS + b"\x95\xff\xff\xff\xff\x00\x00\x00\x00}.", "ends too early"),
    "bytes.pdparams": (NUMBERS + b"}\x8e\xff\xff\xff\xff\x00\x00\x00\x00.", "ends too early"),
    "bytearray.pdparams": (b"\x80\x05}\x96\xff\xff\xff\xff\x00\x00\x00\x00.", "holds a set or a bytearray"),
    "dtype.pdparams": (
        b"\x80\x02}X\x01\x00\x00\x00acnumpy\ndtype\n(" + nested(40) + b"tRs.",
        "which is not a plain number",
    ),
    "key.pdparams": (b"\x80\x02}" + nested(60) + b"K\x01s.", "holds a tuple as the name"),
    "keys.pdparams": (b"\x80\x02}(" + nested(60) + b"K\x01u.", "holds a tuple as the name"),
    "dictionary.pdparams": (b"\x80\x02(" + nested(60) + b"K\x01d.", "holds a tuple as the name"),
    "set.pdparams": (b"\x80\x04(" + nested(60) + b"\x91.", "holds a set"),
    "ordered.pdparams": (
        b"\x80\x02ccollections\nOrderedDict\n(]](" + nested(60) + b"K\x01eatR.",
        "holds a tuple as the name",
    ),
    "stride.bin": (archive(tensor(MILLION + b"M\xe8\x03\x86", b"K\x00K\x00\x86")), "more numbers than its storage"),
    "inflated.bin": (archive(b"\x80\x02}." + bytes(2**26), compression=zipfile.ZIP_DEFLATED), "holds compressed"),
    "storage.bin": (
        archive(tensor(MILLION + b"\x85", b"K\x01\x85"), bytes(2**26), zipfile.ZIP_DEFLATED),
        "holds compressed",
    ),
    "encrypted.bin": (encrypted(archive(tensor(b"K\x01\x85", b"K\x01\x85"))), "is an encrypted archive"),
}
