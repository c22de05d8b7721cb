#!/usr/bin/env python3
"""Checks offline that a tag pointed to a digest at a time, with nothing but Python 3.8.

    verify.py HOST/acme/app:1.0@sha256:... 2026-11-01T00:00:00.000Z FILE.tlog-proof FILE.policy

The exit code is 0 if the file proves it. It is 3 if the file proves only the assignment of the digest, not how long it
lasted, and 1 otherwise. It was written from docs/reference/ledger-proofs.md and the specifications of c2sp.org, and shares no code with the server.
"""
import base64
import hashlib
import hmac
import json
import re
import sys

# Ed25519 as in RFC 8032, section 6. Slow, and only for verification.
P = 2**255 - 19
Q = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT = pow(2, (P - 1) // 4, P)


def recover_x(y, sign):
    if y >= P:
        raise Wrong("a key or signature is not a point")
    x2 = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(x2, (P + 3) // 8, P)
    if (x * x - x2) % P != 0:
        x = x * ROOT % P
    if (x * x - x2) % P != 0 or (x == 0 and sign):
        raise Wrong("a key or signature is not a point")
    return P - x if x & 1 != sign else x


def point(data):
    number = int.from_bytes(data, "little")
    y = number & ((1 << 255) - 1)
    x = recover_x(y, number >> 255)
    return (x, y, 1, x * y % P)


def add(a, b):
    e = (a[1] - a[0]) * (b[1] - b[0]) % P
    f = (a[1] + a[0]) * (b[1] + b[0]) % P
    g = 2 * a[3] * b[3] * D % P
    h = 2 * a[2] * b[2] % P
    e, f, g, h = f - e, h - g, h + g, f + e
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def times(number, at):
    result = (0, 1, 1, 0)
    while number > 0:
        if number & 1:
            result = add(result, at)
        at = add(at, at)
        number >>= 1
    return result


BASE_Y = 4 * pow(5, P - 2, P) % P


class Wrong(Exception):
    """Reason why the file does not prove the claim."""


def is_signed(key, message, signature):
    if len(signature) != 64:
        return False
    base_x = recover_x(BASE_Y, 0)
    base = (base_x, BASE_Y, 1, base_x * BASE_Y % P)
    a, r = point(key), point(signature[:32])
    s = int.from_bytes(signature[32:], "little")
    if s >= Q:
        return False
    h = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % Q
    left, right = times(s, base), add(r, times(h, a))
    return (left[0] * right[2] - right[0] * left[2]) % P == 0 and (left[1] * right[2] - right[1] * left[2]) % P == 0


def sha256(data):
    return hashlib.sha256(data).digest()


def b64(text):
    data = base64.b64decode(text, validate=True)
    if base64.b64encode(data).decode() != text:
        raise Wrong("a value is not valid base64")
    return data


def read_key(text, kind):
    """Name, number and public key of a signer in a policy."""
    name, number, encoded = re.fullmatch(r"([^+\s]+)\+([0-9a-f]{8})\+(\S+)", text).groups()
    key = b64(encoded)
    if key[0] != kind or len(key) != 33 or sha256(name.encode() + b"\n" + key)[:4].hex() != number:
        raise Wrong("the policy has an invalid key")
    return name, bytes.fromhex(number), key[1:]


def read_policy(text):
    """Keys of the logs, and a function that tells if a set of keys has enough witnesses."""
    logs, named, quorum = [], {}, None
    for line in text.split("\n"):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if words[0] == "log" and len(words) in (2, 3):
            logs.append(read_key(words[1], 1))
        elif words[0] == "witness" and len(words) in (3, 4) and words[1] not in named and words[1] != "none":
            named[words[1]] = read_key(words[2], 4)
        elif words[0] == "group" and len(words) > 3 and words[1] not in named and words[1] != "none":
            members = [named[word] for word in words[3:]]
            least = {"all": len(members), "any": 1}.get(words[2]) or int(words[2])
            if not 1 <= least <= len(members):
                raise Wrong("the policy has a group with a count above the number of its members")
            named[words[1]] = (least, members)
        elif words[0] == "quorum" and len(words) == 2 and quorum is None:
            quorum = (0, []) if words[1] == "none" else named[words[1]]
        else:
            raise Wrong("the policy has an unknown line")
    if quorum is None:
        raise Wrong("the policy has no quorum line")
    return logs, quorum


def is_witnessed(wanted, has_signed):
    if len(wanted) == 3:
        return has_signed(wanted)
    least, members = wanted
    return sum(1 for one in members if is_witnessed(one, has_signed)) >= least


def read_checkpoint(note, policy):
    """Origin, size and root of a checkpoint. Fails unless a log of the policy and enough witnesses have signed it."""
    logs, quorum = policy
    text, _, lines = note.rpartition("\n\n")
    text += "\n"
    origin, size, root = text.split("\n")[:3]
    signatures = []
    for line in lines.rstrip("\n").split("\n"):
        dash, name, encoded = line.split(" ")
        if dash != "\u2014":
            raise Wrong("the checkpoint is not a signed note")
        signatures.append((name, b64(encoded)))

    def signed(key, is_witness):
        name, number, public = key
        found = False
        for by, signature in signatures:
            if (by, signature[:4]) != (name, number):
                continue
            message, rest = text.encode(), signature[4:]
            if is_witness:
                message = b"cosignature/v1\ntime %d\n" % int.from_bytes(rest[:8], "big") + message
                rest = rest[8:]
            if not is_signed(public, message, rest):
                raise Wrong("a signature of the checkpoint is invalid")
            found = True
        return found

    if not any([signed(key, False) for key in logs if key[0] == origin]):
        raise Wrong("the checkpoint is not signed with a log key from the policy")
    if not is_witnessed(quorum, lambda key: signed(key, True)):
        raise Wrong("the checkpoint lacks the witness signatures that the policy requires")
    if not re.fullmatch(r"0|[1-9][0-9]*", size):
        raise Wrong("the checkpoint has no size")
    return origin, int(size), b64(root)


def root_of(leaf, index, size, path):
    """Root that follows from an inclusion proof, by RFC 9162, section 2.1.3.2."""
    if index >= size:
        raise Wrong("the entry is not in the log")
    fn, sn, r = index, size - 1, leaf
    for p in path:
        if sn == 0:
            raise Wrong("the proof is too long")
        if fn & 1 or fn == sn:
            r = sha256(b"\x01" + p + r)
            while not fn & 1 and fn != 0:
                fn, sn = fn >> 1, sn >> 1
        else:
            r = sha256(b"\x01" + r + p)
        fn, sn = fn >> 1, sn >> 1
    if sn != 0:
        raise Wrong("the proof is too short")
    return r


HEADER = "c2sp.org/tlog-proof@v1\n"
ENTRY = re.compile(
    r"pinfold-tag/1\n([0-9a-f]{64})\n(0|[1-9][0-9]*)\n(-|[0-9a-f]{64})\n"
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z)\n(live|import|backfill)\n([0-9a-f]{64})\n"
)


def read_proof(text, policy):
    """Content of an entry. Fails unless the entry is in the log."""
    head, _, note = text.partition("\n\n")
    lines = head.split("\n")
    if not lines[0].startswith("extra ") or not re.fullmatch("index (0|[1-9][0-9]*)", lines[1]):
        raise Wrong("the proof does not include its log entry")
    extra, index = json.loads(b64(lines[0][6:])), int(lines[1][6:])
    origin, size, root = read_checkpoint(note, policy)
    leaf = sha256(b"\x00" + extra["entry"].encode())
    if not hmac.compare_digest(root_of(leaf, index, size, [b64(line) for line in lines[2:]]), root):
        raise Wrong("the entry is not in the log")
    match = ENTRY.fullmatch(extra["entry"])
    if not match:
        raise Wrong("the entry is not a tag entry")
    chain, seq, prev, time, kind, commitment = match.groups()
    entry = {"chain": chain, "seq": int(seq), "prev": prev, "time": time, "kind": kind, "commitment": commitment}
    return {**entry, "leaf": leaf.hex(), "origin": origin, "size": size, "extra": extra}


MEMBERS = ["actor", "digest", "event", "nonce", "organization", "path", "previousDigest", "source", "tag", "time"]


def check(reference, at, proof_text, policy_text):
    name, _, digest = reference.partition("@")
    name, _, tag = name.rpartition(":")
    parts = name.split("/")
    host = parts.pop(0) if len(parts) > 1 and re.search(r"[.:]|^localhost$", parts[0]) else None
    if not digest.startswith("sha256:") and not digest.startswith("sha512:") or not tag:
        raise Wrong("the image must be given with tag and digest")

    policy = read_policy(policy_text)
    if not proof_text.startswith(HEADER):
        raise Wrong("the file is not a proof")
    proofs = [read_proof(one, policy) for one in re.split("^" + re.escape(HEADER), proof_text, flags=re.M)[1:]]
    if len(proofs) > 2:
        raise Wrong("the file has more than two proofs")
    first, origin = proofs[0], proofs[0]["origin"]

    text = first["extra"].get("opening", "")
    opening = json.loads(text)
    if json.dumps(opening, ensure_ascii=False, separators=(",", ":")) != text or list(opening) != MEMBERS:
        raise Wrong("the tag history row has the wrong format")
    if sha256(text.encode()).hex() != first["commitment"]:
        raise Wrong("the tag history row does not match the entry")
    named = "\n".join([opening["organization"], opening["path"], opening["tag"]])
    salt = first["extra"]["salt"]
    if not re.fullmatch("[0-9a-f]{64}", salt) or sha256(bytes.fromhex(salt) + named.encode()).hex() != first["chain"]:
        raise Wrong("the entry and the tag history row are about different tags")
    if not re.search("/ledger/" + re.escape(opening["organization"]) + "(/[0-9]+-[0-9a-f]{8})?$", origin):
        raise Wrong("the tag history row and the log belong to different organizations")
    if opening["time"] > first["time"]:
        raise Wrong("the time of the entry is before the time of the tag history row")

    if host is not None and origin.split("/")[0] != host:
        raise Wrong("the log belongs to " + origin.split("/")[0])
    if (opening["path"], opening["tag"]) != ("/".join(parts), tag):
        raise Wrong("the proof is about another tag, " + opening["path"] + ":" + opening["tag"])
    if opening["event"] == "deleted":
        raise Wrong("the tag was deleted at " + opening["time"])
    if opening["digest"] != digest:
        raise Wrong("the tag pointed to another digest, " + opening["digest"])
    if first["time"] > at:
        raise Wrong("the tag was assigned to this digest at " + first["time"])
    if len(proofs) == 1:
        return first["time"], None
    after = proofs[1]
    follows = (after["origin"], after["chain"], after["seq"]) == (origin, first["chain"], first["seq"] + 1)
    if not follows or after["prev"] != first["leaf"]:
        raise Wrong("the second entry does not directly follow the first")
    if after["time"] <= at:
        raise Wrong("the tag was updated again at " + after["time"])
    return first["time"], after["time"]


def main(argv):
    if len(argv) != 5 or not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", argv[2]):
        print(__doc__, file=sys.stderr)
        return 64
    texts = []
    for file in argv[3:]:
        with open(file, encoding="utf-8", newline="") as opened:
            texts.append(opened.read())
    try:
        since, until = check(argv[1], argv[2], *texts)
    except Wrong as why:
        print(f"not proved: {why}", file=sys.stderr)
        return 1
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as why:
        print(f"not proved: the file is not written as it should be ({why})", file=sys.stderr)
        return 1
    print(f"proved from {since} until {until or 'a time that the proof does not tell'}")
    return 0 if until else 3


if __name__ == "__main__":
    sys.exit(main(sys.argv))
