"""Restores a backup from a store, written from docs/backup-format.md alone.

Standard library and the `zstd` command. An encrypted store also needs the `cryptography` package, for AES-GCM.

    restore.py STORE SERVER_ID BACKUP_ID TARGET [KEY_IN_HEX]
"""
import hashlib
import hmac
import json
import os
import struct
import subprocess
import sys

SECTOR = 4096
store, server_id, backup_id, target = sys.argv[1:5]
key = bytes.fromhex(sys.argv[5]) if len(sys.argv) > 5 else None


def read(name):
    with open(os.path.join(store, name), 'rb') as blob:
        return blob.read()


def digest(data):
    return hashlib.blake2b(data).digest()[:32]


made_with = json.loads(read('format'))
assert made_with['version'] in (1, 2, 3)
BLOCK = made_with['blockBytes']
block_hash = {'blake2b-256': hashlib.blake2b, 'sha-256': hashlib.sha256}[made_with['blockHash']]


def derive(use):
    info = b'gamekeeper backups ' + use.encode()
    extracted = hmac.new(bytes(32), key, hashlib.sha256).digest()
    return hmac.new(extracted, info + b'\x01', hashlib.sha256).digest()


def block_id(data):
    if key is None:
        return block_hash(data).digest()[:32]
    return hmac.new(derive('names'), data, block_hash).digest()[:32]


def decode(stored, length, codec):
    if codec & 2:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        piece_key = hmac.new(derive('content'), stored[:16], hashlib.sha256).digest()
        stored = AESGCM(piece_key).decrypt(stored[16:28], stored[28:], None)
    if codec & 4:
        count = -(-length // SECTOR)
        kept = struct.unpack_from(f'<{count}H', stored)
        at, sectors = 2 * count, []
        for number, size in enumerate(kept):
            sector = stored[at:at + size]
            assert len(sector) == size and not sector.endswith(b'\0')
            sectors.append(sector.ljust(min(SECTOR, length - number * SECTOR), b'\0'))
            at += size
        assert at == len(stored)
        stored = b''.join(sectors)
    if codec & 1:
        stored = subprocess.run(['zstd', '-dc'], input=stored, stdout=subprocess.PIPE, check=True).stdout
    assert len(stored) == length
    return stored


def read_blocks():
    """Where each block is, from the packs' own tables: no index is needed."""
    places = {}
    for folder, _, names in os.walk(os.path.join(store, 'packs')):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, 'rb') as pack:
                data = pack.read()
            assert data[:8] == data[-8:] == b'GKPACK01'
            (size,) = struct.unpack('<I', data[-44:-40])
            table = data[-44 - size:-44]
            assert digest(table) == data[-40:-8]
            frames, blocks = struct.unpack('<II', table[:8])
            at = 8 + 24 * frames
            for number in range(frames):
                frame = struct.unpack('<6I', table[8 + 24 * number:32 + 24 * number])
                if frame[3] == 16:
                    spans = data[frame[0]:frame[0] + frame[1]]
                    assert digest(bytes.fromhex(name) + spans[:-32]) == spans[-32:] and (len(spans) - 48) % 24 == 0
                for _ in range(frame[5]):
                    inner, length = struct.unpack('<II', table[at + 32:at + 40])
                    places[table[at:at + 32]] = (path, frame, inner, length)
                    at += 40
    return places


decoded_frames = {}


def read_block(places, name):
    path, (offset, stored, length, codec, _, _), inner, size = places[name]
    if (path, offset) not in decoded_frames:
        decoded_frames.clear()
        with open(path, 'rb') as pack:
            pack.seek(offset)
            decoded_frames[path, offset] = decode(pack.read(stored), length, codec)
    data = decoded_frames[path, offset][inner:inner + size]
    assert block_id(data) == name, 'a block is damaged'
    return data


class Cursor:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        self.at += count
        return self.data[self.at - count:self.at]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value

    def bytes(self):
        return self.take(self.varint())


def read_chunk(blob, listed, chunk):
    """In the manifest itself, or in a part."""
    if 'part' not in chunk:
        data = blob[chunk['offset']:chunk['offset'] + chunk['storedLength']]
        assert digest(data).hex() == chunk['digest']
        return decode(data, chunk['rawLength'], chunk['codec'])
    part = listed['parts'][chunk['part']]['id']
    with open(os.path.join(store, 'parts', server_id, part), 'rb') as file:
        file.seek(chunk['offset'])
        data = decode(file.read(chunk['storedLength']), chunk['rawLength'], chunk['codec'])
    assert block_id(data).hex() == chunk['id'], 'a chunk is damaged'
    return data


def read_entries():
    blob = read('manifests/%s/%s' % (server_id, backup_id))
    assert blob[:8] == blob[-8:] == b'GKMANI01'
    stored, length, codec, _ = struct.unpack('<4I', blob[-56:-40])
    tail = blob[-56 - stored:-56]
    assert digest(tail) == blob[-40:-8]
    listed = json.loads(decode(tail, length, codec))
    for chunk in listed['chunks']:
        cursor = Cursor(read_chunk(blob, listed, chunk))
        path = b''
        while cursor.at < len(cursor.data):
            shared = cursor.varint()
            path = path[:shared] + cursor.bytes()
            kind, flags = cursor.take(2)
            mode, uid, gid = cursor.varint(), cursor.varint(), cursor.varint()
            mtime, _, _, size = struct.unpack('<qqQQ', cursor.take(32))
            link = cursor.bytes() if flags & 2 else None
            symlink = cursor.bytes() if kind == 2 else None
            content = cursor.bytes() if kind == 0 else b''
            yield path, kind, mode, uid, gid, mtime, size, link, symlink, content


def read_patched(places, cursor):
    """A block of which some sectors are in another block, one after another."""
    (sectors,) = struct.unpack('<H', cursor.take(2))
    name, base, patch = cursor.take(32), cursor.take(32), cursor.take(32)
    if not (base in places and patch in places):
        return read_block(places, name)
    data, others = bytearray(read_block(places, base)), read_block(places, patch)
    assert len(others) == SECTOR * bin(sectors).count('1')
    for number in range(BLOCK // SECTOR):
        if sectors >> number & 1:
            data[number * SECTOR:(number + 1) * SECTOR], others = others[:SECTOR], others[SECTOR:]
    assert block_id(bytes(data)) == name
    return data


def write_file(places, path, size, content):
    with open(path, 'wb') as file:
        cursor = Cursor(content)
        while cursor.at < len(content):
            run = cursor.varint()
            if run == 1:
                file.write(read_patched(places, cursor))
            for _ in range(run >> 1):
                if run & 1:
                    file.seek(BLOCK, 1)
                else:
                    file.write(read_block(places, cursor.take(32)))
        file.truncate(size)


def main():
    places = read_blocks()
    root = os.fsencode(target)
    finished = []
    for path, kind, mode, uid, gid, mtime, size, link, symlink, content in read_entries():
        assert not {b'', b'.', b'..'} & set(path.split(b'/'))
        full = os.path.join(root, path)
        if kind == 1:
            os.mkdir(full)
        elif kind == 2:
            os.symlink(symlink, full)
        elif link is not None:
            os.link(os.path.join(root, link), full)
        else:
            write_file(places, full, size, content)
        finished.append((full, kind, mode, uid, gid, mtime))
    for full, kind, mode, uid, gid, mtime in reversed(finished):
        if os.geteuid() == 0:
            os.chown(full, uid, gid, follow_symlinks=False)
        if kind != 2:
            os.chmod(full, mode)
        os.utime(full, ns=(mtime, mtime), follow_symlinks=False)


main()
