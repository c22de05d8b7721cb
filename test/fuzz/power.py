"""A file system in memory that forgets, as a machine without power does, what was not synced. For test/fuzz/power.ts.

power.py MOUNTPOINT: what is written to `.power/cut` there drops all that no fsync has made last; `.power/sync` makes all of it
last. A new name, a rename and a removal last once the folder is synced, a content once the file is. Needs fusepy and FUSE.
"""

import errno
import os
import random
import stat
import sys
import time

try:
    from fuse import FUSE, FuseOSError, Operations
except ImportError:
    # So it is called on Debian, where another program has that name.
    from fusepy import FUSE, FuseOSError, Operations


class Node:
    def __init__(self, mode):
        self.mode = mode
        self.links = 0
        self.data = bytearray()
        self.safe = bytearray()
        self.dirty = []
        self.times = (time.time(), time.time())
        self.names = {} if stat.S_ISDIR(mode) else None
        self.safe_names = {} if stat.S_ISDIR(mode) else None

    def sync(self):
        if self.names is not None:
            self.safe_names = dict(self.names)
            return
        if len(self.safe) != len(self.data):
            if len(self.safe) > len(self.data):
                del self.safe[len(self.data):]
            else:
                self.safe.extend(bytes(len(self.data) - len(self.safe)))
        for start, end in self.dirty:
            end = min(end, len(self.data))
            if start < end:
                self.safe[start:end] = self.data[start:end]
        self.dirty = []


class Forgetful(Operations):
    def __init__(self, seed):
        self.root = Node(stat.S_IFDIR | 0o700)
        self.open_files = {}
        self.next = 1
        self.random = random.Random(seed)

    def find(self, path):
        node = self.root
        for name in [part for part in path.split("/") if part]:
            if node.names is None or name not in node.names:
                raise FuseOSError(errno.ENOENT)
            node = node.names[name]
        return node

    def parent(self, path):
        folder, _, name = path.rpartition("/")
        return self.find(folder or "/"), name

    def every(self, names="names"):
        seen, left = [], [self.root]
        while left:
            node = left.pop()
            seen.append(node)
            children = getattr(node, names)
            if children:
                left.extend(children.values())
        return seen

    def cut(self):
        for node in self.every("safe_names"):
            if node.names is not None:
                node.names = dict(node.safe_names)
                continue
            # Some of what was not synced has reached the disk all the same, in no order.
            if self.random.random() < 0.5:
                node.dirty = [one for one in node.dirty if self.random.random() < 0.5]
                size = len(node.data)
                for start, end in node.dirty:
                    end = min(end, size)
                    if end > len(node.safe):
                        node.safe.extend(bytes(end - len(node.safe)))
                    node.safe[start:end] = node.data[start:end]
            node.data = bytearray(node.safe)
            node.dirty = []

    def getattr(self, path, fh=None):
        if path.startswith("/.power"):
            mode = stat.S_IFDIR | 0o700 if path == "/.power" else stat.S_IFREG | 0o600
            return {"st_mode": mode, "st_nlink": 1, "st_size": 0, "st_uid": os.getuid(), "st_gid": os.getgid()}
        node = self.open_files[fh] if fh in self.open_files else self.find(path)
        return {
            "st_mode": node.mode,
            "st_nlink": max(1, node.links),
            "st_size": len(node.data),
            "st_atime": node.times[0],
            "st_mtime": node.times[1],
            "st_ctime": node.times[1],
            "st_uid": os.getuid(),
            "st_gid": os.getgid(),
            "st_blocks": (len(node.data) + 511) // 512,
        }

    def readdir(self, path, fh):
        return [".", "..", *self.find(path).names]

    def handle(self, node):
        self.next += 1
        self.open_files[self.next] = node
        return self.next

    def create(self, path, mode, fi=None):
        folder, name = self.parent(path)
        node = Node(stat.S_IFREG | (mode & 0o777))
        node.links = 1
        folder.names[name] = node
        return self.handle(node)

    def open(self, path, flags):
        if path.startswith("/.power"):
            return 0
        return self.handle(self.find(path))

    def release(self, path, fh):
        self.open_files.pop(fh, None)
        return 0

    def node(self, path, fh):
        return self.open_files.get(fh) or self.find(path)

    def read(self, path, size, offset, fh):
        if path.startswith("/.power"):
            return b""
        return bytes(self.node(path, fh).data[offset : offset + size])

    def write(self, path, data, offset, fh):
        if path == "/.power/cut":
            self.cut()
            return len(data)
        if path == "/.power/sync":
            for node in self.every():
                node.sync()
            return len(data)
        node = self.node(path, fh)
        if offset > len(node.data):
            node.data.extend(bytes(offset - len(node.data)))
        node.data[offset : offset + len(data)] = data
        node.dirty.append((offset, offset + len(data)))
        node.times = (node.times[0], time.time())
        return len(data)

    def truncate(self, path, length, fh=None):
        if path.startswith("/.power"):
            return 0
        node = self.node(path, fh)
        if length < len(node.data):
            del node.data[length:]
        else:
            node.data.extend(bytes(length - len(node.data)))
        return 0

    def fsync(self, path, datasync, fh):
        self.node(path, fh).sync()
        return 0

    def fsyncdir(self, path, datasync, fh):
        self.find(path).sync()
        return 0

    def mkdir(self, path, mode):
        folder, name = self.parent(path)
        if name in folder.names:
            raise FuseOSError(errno.EEXIST)
        folder.names[name] = Node(stat.S_IFDIR | (mode & 0o777))

    def rmdir(self, path):
        folder, name = self.parent(path)
        if self.find(path).names:
            raise FuseOSError(errno.ENOTEMPTY)
        del folder.names[name]

    def unlink(self, path):
        folder, name = self.parent(path)
        self.find(path).links -= 1
        del folder.names[name]

    def rename(self, old, new):
        node = self.find(old)
        (one, name), (other, to) = self.parent(old), self.parent(new)
        del one.names[name]
        other.names[to] = node

    def link(self, target, source):
        node = self.find(source)
        folder, name = self.parent(target)
        if name in folder.names:
            raise FuseOSError(errno.EEXIST)
        node.links += 1
        folder.names[name] = node

    def chmod(self, path, mode):
        node = self.find(path)
        node.mode = stat.S_IFMT(node.mode) | (mode & 0o777)

    def chown(self, path, uid, gid):
        return 0

    def utimens(self, path, times=None):
        self.find(path).times = times or (time.time(), time.time())

    def statfs(self, path):
        return {"f_bsize": 4096, "f_frsize": 4096, "f_blocks": 1 << 20, "f_bfree": 1 << 19, "f_bavail": 1 << 19, "f_namemax": 255}


if __name__ == "__main__":
    FUSE(
        Forgetful(int(sys.argv[2]) if len(sys.argv) > 2 else 0),
        sys.argv[1],
        foreground=True,
        nothreads=True,
        attr_timeout=0,
        entry_timeout=0,
        negative_timeout=0,
    )
