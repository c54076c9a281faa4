"""A smaller draft out of a GGUF model: its first layers, its head, its tokenizer."""

import struct
from pathlib import Path

SCALARS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
STRING, ARRAY = 8, 9
ALIGNMENT = 32


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def number(self, kind: str) -> int:
        (value,) = struct.unpack_from(f"<{kind}", self.data, self.at)
        self.at += struct.calcsize(kind)
        return value

    def text(self) -> str:
        size = self.number("Q")
        self.at += size
        return self.data[self.at - size : self.at].decode()

    def skip(self, kind: int) -> None:
        if kind == STRING:
            self.text()
        elif kind == ARRAY:
            inner, count = self.number("I"), self.number("Q")
            if inner in SCALARS:
                self.at += SCALARS[inner] * count
            else:
                for _ in range(count):
                    self.skip(inner)
        else:
            self.at += SCALARS[kind]


def early_exit(source: Path, target: Path, layers: int) -> None:
    """Write the model with only its first layers."""
    data = bytearray(source.read_bytes())
    reader = _Reader(bytes(data))
    reader.at = 8
    tensors, pairs = reader.number("Q"), reader.number("Q")
    for _ in range(pairs):
        name, kind = reader.text(), reader.number("I")
        if name.endswith(".block_count"):
            struct.pack_into("<I", data, reader.at, layers)
        reader.skip(kind)
    head_end = reader.at
    infos = []
    for _ in range(tensors):
        name, dims = reader.text(), reader.number("I")
        sizes = [reader.number("Q") for _ in range(dims)]
        infos.append((name, sizes, reader.number("I"), reader.number("Q")))
    start = -(-reader.at // ALIGNMENT) * ALIGNMENT
    ends = sorted(offset for *_, offset in infos) + [len(data) - start]
    kept, table, blob = 0, b"", b""
    for name, sizes, kind, offset in infos:
        part = name.split(".")
        if part[0] == "blk" and int(part[1]) >= layers:
            continue
        size = next(end for end in ends if end > offset) - offset
        raw = name.encode()
        table += struct.pack("<Q", len(raw)) + raw + struct.pack("<I", len(sizes))
        table += struct.pack(f"<{len(sizes)}QIQ", *sizes, kind, len(blob))
        found = bytes(data[start + offset : start + offset + size])
        blob += found + bytes(-len(found) % ALIGNMENT)
        kept += 1
    struct.pack_into("<Q", data, 8, kept)
    head = bytes(data[:head_end]) + table
    target.write_bytes(head + bytes(-len(head) % ALIGNMENT) + blob)
