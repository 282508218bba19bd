"""Small files of tensors that would run something, or need much memory or time."""

import io
import os
import pickle
import zipfile

import numpy as np

from paddle_rope.roformer.checkpoints.tensor_files import TORCH_LEGACY_MAGIC

STORAGE = (  # the persistent id of a torch storage of one number, on the stack
    b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x01tQ"
)
TWO = STORAGE.replace(b"K\x01tQ", b"K\x02tQ")  # of two numbers
REBUILD = b"ctorch._utils\n_rebuild_tensor_v2\n"
NESTED = b")" + b"2\x86" * 60  # a tuple of tuples that has 2^60 ends
MILLION = b"J\x40\x42\x0f\x00"


def archive(pickled, storage=b"\0\0\x80?", compression=zipfile.ZIP_STORED):
    """A file of ``torch.save``."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as members:
        members.writestr("archive/data.pkl", pickled)
        members.writestr("archive/data/0", storage)
    return file.getvalue()


def legacy(pickled):
    """A file of ``torch.save`` before torch 1.6, without storages."""
    start = [pickle.dumps(part, 2) for part in (TORCH_LEGACY_MAGIC, 1001, {"little_endian": True})]
    return b"".join([*start, pickled, pickle.dumps([], 2)])


def tensor(size, strides, storage=STORAGE):
    """A pickle of one tensor on the storage of one number; ``size`` and ``strides`` are opcodes of tuples."""
    return b"\x80\x02}X\x01\x00\x00\x00a" + REBUILD + b"(" + storage + b"K\x00" + size + strides + b"\x89}tRs."


def encrypted(content):
    """An archive whose members say that they are encrypted."""
    changed = bytearray(content)
    for start, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = changed.find(start)
        while place >= 0:
            changed[place + flags] |= 1
            place = changed.find(start, place + 4)
    return bytes(changed)


# name -> (content, a word of the error)
HOSTILE = {
    "bytes.pdparams": (b"\x80\x04}\x8e\xff\xff\xff\xff\x00\x00\x00\x00.", "cut short"),
    "bytearray.pdparams": (b"\x80\x05}\x96\xff\xff\xff\xff\x00\x00\x00\x00.", "bytearray"),
    "dtype.pdparams": (b"\x80\x02}X\x01\x00\x00\x00acnumpy\ndtype\n(" + NESTED + b"tRs.", "not a plain number"),
    "key.pdparams": (b"\x80\x02}" + NESTED + b"K\x01s.", "unhashable"),
    "keys.pdparams": (b"\x80\x02}(" + NESTED + b"K\x01u.", "unhashable"),
    "dictionary.pdparams": (b"\x80\x02(" + NESTED + b"K\x01d.", "unhashable"),
    "set.pdparams": (b"\x80\x04\x8f(" + NESTED + b"\x90.", "unhashable"),
    "frozenset.pdparams": (b"\x80\x04(" + NESTED + b"\x91.", "unhashable"),
    "ordered.pdparams": (b"\x80\x02ccollections\nOrderedDict\n(]](" + NESTED + b"K\x01eatR.", "cut short"),
    "stored.bin": (archive(tensor(b"K\x01\x85", b"K\x01\x85", STORAGE.replace(b"X\x01\x00\x00\x000", NESTED))), "hash"),
    "stride.bin": (archive(tensor(MILLION + b"M\xe8\x03\x86", b"K\x00K\x00\x86")), "beyond its storage"),
    "edge.bin": (archive(tensor(b"K\x02\x85", b"K\x02\x85", TWO), bytes(8)), "beyond its storage"),
    "view.bin": (archive(tensor(b"K\x02\x85", b"K\x01\x85")), "beyond its storage"),
    "inflated.bin": (archive(b"\x80\x02}." + bytes(2**26), compression=zipfile.ZIP_DEFLATED), "compressed"),
    "bomb.bin": (archive(b"\x80\x02}." + bytes(2**26), compression=zipfile.ZIP_BZIP2), "compressed"),
    "storage.bin": (archive(tensor(MILLION + b"\x85", b"K\x01\x85"), bytes(2**26), zipfile.ZIP_DEFLATED), "compressed"),
    "encrypted.bin": (encrypted(archive(tensor(b"K\x01\x85", b"K\x01\x85"))), "encrypted"),
    # where the state {'build': 1} is put on the constructor of OrderedDict itself
    "constructor.pdparams": (b"\x80\x02ccollections\nOrderedDict\n}X\x05\x00\x00\x00buildK\x01sb.", "changes"),
    # rows of a matrix taken for elements would lead beyond its memory
    "matrix.pdparams": (tensor(b"K\x01\x85", b"K\x01\x85", b"]"), "without a storage"),
    "negative.bin": (archive(tensor(b"J\xff\xff\xff\xff\x85", b"K\x01\x85")), "impossible shape"),
}


class Runs:
    """Pickles as a call."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def harmful(place):
    """dict from a name to an object whose pickle calls it, which would make the file ``place`` or read it."""
    return {
        r"(posix|nt)\.system": Runs(os.system, f"touch {place}"),
        r"(builtins|__builtin__)\.eval": Runs(eval, f"open({str(place)!r}, 'w').close()"),
        r"(builtins|__builtin__)\.__import__": Runs(__import__, "os"),
        r"(builtins|__builtin__)\.getattr": Runs(getattr, "a", "join"),
        r"numpy.*\.load": Runs(np.load, str(place)),
    }
