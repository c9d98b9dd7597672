"""Verification: every stored byte that the chain covers, in one pass over the journal.

Call order: seals and the partitions' ends first, so that what is committed meanwhile is known to be
later; then all instances (salt and partition), then the journal beside the turns (`links`), then
what stands now: each snapshot against the digest its last row left, each instance row against its
snapshot, definitions and blobs against the digests that name them.

The caller reads, page by page, through a `Source`; nothing here does I/O. One loop, `_scan`, is run
per journal row and is written for speed.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from detent.kernel.anchor import Anchor
from detent.kernel.chain import GENESIS, seal_of
from detent.kernel.links import HASH_BYTES, Broken, ChainBroken, End, Link, TurnLike
from detent.kernel.recording import blob_of, read_body
from detent.kernel.signature import Check, Signatures, Witness
from detent.kernel.standing import Labels, Stored, check_row
from detent.model.ids import partition_of

SALT_BYTES = 16
_INSTANCES_AT_ONCE = 2_000
_BEFORE_ALL = -(1 << 62)  # numbers begin at 1; a row hidden below that must be seen too
# No body has this salt: with it every digest differs, as it must when the salt is gone.
_ERASED_SALT = b"erased"
_sha = hashlib.sha256
_two = struct.Struct(">QQ").pack

JournalLike = tuple[int, int, int, int, int, bytes, bytes, bytes | None, bytes]


class SealLike(Protocol):
    """What is read of a seal."""

    @property
    def n(self) -> int: ...
    @property
    def tick(self) -> int: ...
    @property
    def roots(self) -> bytes: ...
    @property
    def digest(self) -> bytes: ...
    @property
    def signature(self) -> bytes: ...


class Known(NamedTuple):
    """What never changes in an instance's row."""

    n: int
    id: str
    p: int
    salt: bytes
    tenant: str
    namespace: str
    parent: str | None


class Source(Protocol):
    """What verification reads; each call gives the next rows after a number, none at the end."""

    def store_id(self) -> str: ...
    def seals(self, after: int) -> Sequence[SealLike]: ...
    def ends(self) -> Sequence[End]: ...
    def instances(self, after: int) -> Sequence[Known]: ...
    def find(self, numbers: Sequence[int]) -> Sequence[Known]: ...
    def turns(self, p: int, after: int) -> Sequence[TurnLike]: ...
    def journal(self, after: int) -> Sequence[JournalLike]: ...
    def standing(self, numbers: Sequence[int]) -> Sequence[Stored]: ...
    def definition(self, digest: str) -> bytes | None: ...
    def blobs(self, instance: str, digests: Sequence[str]) -> Mapping[str, bytes]: ...


class Verification(Struct, frozen=True, kw_only=True):
    """What was found; `broken` names the first thing that does not hold."""

    valid: bool
    rows: int
    turns: int
    instances: int
    seals: int
    erased: int  # rows whose body is gone, proved by their digest alone
    later: int  # rows written while this ran, left to the next verification
    first_tick: int | None
    last_tick: int | None
    unsealed: int  # turns behind the newest seal: no signature of a seal covers them
    signatures: Signatures
    broken: Broken | None = None


class Chain:
    """The chain of one instance as far as it was walked."""

    __slots__ = ("digest", "erased", "head", "id", "labels", "link", "salt", "seq")

    def __init__(self, row: Known, link: Link, labels: Labels) -> None:
        self.id = row.id
        self.labels = labels
        self.salt = row.salt if len(row.salt) == SALT_BYTES else _ERASED_SALT
        self.link = link
        self.head = GENESIS
        self.seq = 0
        self.digest = b""
        self.erased = False


def verify(
    source: Source, anchor: Anchor | None = None, check: Check | None = None
) -> Verification:
    """Walk everything once and report; `check` says whether a signature is good."""
    walk = _Walk(source, Witness(check))
    try:
        walk.run(anchor)
    except ChainBroken as found:
        return walk.report(found.broken)
    except (struct.error, OverflowError) as error:
        broken = Broken(
            where=walk.place, what="number", expected="64 bits, not negative", found=str(error)
        )
        return walk.report(broken)
    return walk.report(None)


class _Walk:
    def __init__(self, source: Source, witness: Witness) -> None:
        self.source = source
        self.witness = witness
        self.links: dict[int, Link] = {}
        self.chains: dict[int, Chain] = {}
        self.place = "seals"
        self.rows = self.erased = self.later = self.seals = 0
        self.first_tick: int | None = None
        self.last_tick: int | None = None
        self.definitions: dict[str, None] = {}
        self.labels: dict[Labels, Labels] = {}

    def report(self, broken: Broken | None) -> Verification:
        return Verification(
            valid=broken is None,
            rows=self.rows,
            turns=sum(k.turns for k in self.links.values()),
            instances=len(self.chains),
            seals=self.seals,
            erased=self.erased,
            later=self.later,
            first_tick=self.first_tick,
            last_tick=self.last_tick,
            unsealed=sum(k.turn - k.sealed for k in self.links.values()),
            signatures=self.witness.report(),
            broken=broken,
        )

    def run(self, anchor: Anchor | None) -> None:
        source = self.source
        if anchor is not None:
            self.witness.anchor(anchor)
        sealed = self._seals(anchor)
        ends = sorted(source.ends())
        if [end.p for end in ends] != list(range(len(ends))):
            raise ChainBroken("partitions", "numbers", f"0 to {len(ends) - 1}", [e.p for e in ends])
        for end in ends:
            self.links[end.p] = Link(
                end, self._turns(end.p), self._awaited(sealed, end.p, len(ends))
            )
        if anchor is not None:
            self._anchor(anchor)
        self.place = "instances"
        for page in _pages(source.instances):
            self._meet(page)
        self.place = "journal"
        after = _BEFORE_ALL
        while rows := source.journal(after):
            self._scan(rows)
            after = rows[-1][0]
        for link in self.links.values():
            self.place = f"partition {link.p}"
            link.finish()
        self._check_later()
        self._check_standing()

    # chains --------------------------------------------------------------------------------------

    def _seals(self, anchor: Anchor | None) -> list[SealLike]:
        digest = GENESIS
        found: list[SealLike] = []
        for page in _pages(self.source.seals):
            for seal in page:
                where = f"seal {len(found) + 1}"
                if seal.n != len(found) + 1:
                    raise ChainBroken(where, "seal", where, f"seal {seal.n}")
                digest = seal_of(digest, seal.n, seal.tick, [seal.roots])
                if digest != seal.digest:
                    raise ChainBroken(where, "digest", digest, seal.digest)
                self.witness.seal(seal.n, digest, seal.signature)
                found.append(seal)
        self.witness.end_of_seals()
        self.seals = len(found)
        if anchor is not None and anchor.seal:
            known = 0 < anchor.seal <= len(found)
            there = found[anchor.seal - 1].digest.hex() if known else "none"
            if there != anchor.seal_digest:
                raise ChainBroken(f"seal {anchor.seal}", "seal", anchor.seal_digest, there)
        return found

    def _awaited(self, sealed: Sequence[SealLike], p: int, partitions: int) -> list[bytes]:
        roots: list[bytes] = []
        for seal in sealed:
            if len(seal.roots) != HASH_BYTES * partitions:
                raise ChainBroken(
                    f"seal {seal.n}", "roots", partitions, len(seal.roots) / HASH_BYTES
                )
            root = seal.roots[p * HASH_BYTES : (p + 1) * HASH_BYTES]
            if not roots or roots[-1] != root:
                roots.append(root)
        return roots

    def _anchor(self, anchor: Anchor) -> None:
        if anchor.store != self.source.store_id():
            raise ChainBroken("anchor", "store", anchor.store, self.source.store_id())
        for each in anchor.roots:
            link = self.links.get(each.p)
            if link is None:
                raise ChainBroken("anchor", "partition", each.p, "none")
            try:
                link.anchor(each.turn, bytes.fromhex(each.root))
            except ValueError:
                raise ChainBroken("anchor", "root", "hexadecimal digits", each.root) from None

    def _turns(self, p: int) -> Iterator[TurnLike]:
        after = _BEFORE_ALL
        while page := self.source.turns(p, after):
            yield from page
            after = page[-1].n

    def _meet(self, page: Sequence[Known]) -> None:
        partitions, links, labels = len(self.links), self.links, self.labels
        for row in page:
            p = partition_of(row.id, partitions)
            if row.p != p:
                raise ChainBroken(f"instance {row.id}", "partition", p, row.p)
            label = Labels(row.tenant, row.namespace, row.parent)
            if row.parent is None:
                label = labels.setdefault(label, label)  # few, so that each is kept once
            self.chains[row.n] = Chain(row, links[p], label)

    def _find(self, pos: int, n: int) -> Chain:
        """A row of an instance that was not there when instances were read."""
        self._meet(self.source.find([n]))
        if n not in self.chains:
            raise ChainBroken(f"journal position {pos}", "instance row", f"number {n}", "none")
        return self.chains[n]

    def _scan(self, rows: Sequence[JournalLike]) -> None:
        chains, sha, two = self.chains, _sha, _two
        if self.first_tick is None:
            self.first_tick = rows[0][4]
        skipped = 0
        for pos, inst, seq, turn, tick, snapshot_digest, digest, body, head in rows:
            chain = chains.get(inst)
            if chain is None:
                chain = self._find(pos, inst)
            link = chain.link
            if turn != link.turn:
                if turn > link.end.turn:
                    link.latest = max(link.latest, turn)
                    skipped += 1
                    continue
                link.move(turn, pos)
            if body is None:
                self._check_erased(chain, seq, digest)
            elif sha(chain.salt + body).digest() != digest:
                raise _row_broken(chain, seq, "digest", sha(chain.salt + body).digest(), digest)
            elif b'{"$blob":' in body:
                self._check_blobs(chain, seq, body)
            if seq != chain.seq + 1:
                raise _row_broken(chain, chain.seq + 1, "seq", chain.seq + 1, seq)
            if tick < 0:
                raise _row_broken(chain, seq, "tick", "0 or more", tick)
            if sha(chain.head + two(seq, tick) + snapshot_digest + digest).digest() != head:
                expected = sha(chain.head + two(seq, tick) + snapshot_digest + digest).digest()
                raise _row_broken(chain, seq, "head", expected, head)
            link.got.append(head)
            chain.head = head
            chain.seq = seq
            chain.digest = snapshot_digest
        self.later += skipped
        self.rows += len(rows) - skipped
        self.last_tick = rows[-1][4]

    def _check_erased(self, chain: Chain, seq: int, digest: bytes) -> None:
        chain.erased = True
        self.erased += 1
        if len(digest) != HASH_BYTES:
            raise _row_broken(chain, seq, "digest", f"{HASH_BYTES} bytes", digest)

    def _check_blobs(self, chain: Chain, seq: int, body: bytes) -> None:
        digests = [blob for raw in read_body(body).inputs if (blob := blob_of(raw))]
        self._compare_blobs(chain.id, digests, f"instance {chain.id}, seq {seq}")

    def _compare_blobs(self, instance: str, digests: Sequence[str], where: str) -> None:
        found = self.source.blobs(instance, digests) if digests else {}
        for digest in digests:
            body = found.get(digest)
            actual = "none" if body is None else _sha(body).hexdigest()
            if actual != digest:
                raise ChainBroken(where, "blob", digest, actual)

    def _check_later(self) -> None:
        """What lies behind the ends must have been written since: the ends have moved as far."""
        now = {end.p: end.turn for end in self.source.ends()}
        for link in self.links.values():
            extra = self.source.turns(link.p, link.end.turn)
            last = max([link.latest, *(row.n for row in extra[:1])])
            if last > now.get(link.p, 0):
                where = f"partition {link.p}"
                raise ChainBroken(where, "turn", f"{now.get(link.p, 0)} is the last", last)

    def _moved(self, p: int) -> bool:
        """Whether a partition was written since this began."""
        return any(end.p == p and end.turn > self.links[p].end.turn for end in self.source.ends())

    # what stands now -----------------------------------------------------------------------------

    def _check_standing(self) -> None:
        numbers = list(self.chains)
        for at in range(0, len(numbers), _INSTANCES_AT_ONCE):
            wanted = numbers[at : at + _INSTANCES_AT_ONCE]
            rows = self.source.standing(wanted)
            if len(rows) != len(wanted):
                raise ChainBroken("instances", "rows", len(wanted), len(rows))
            for row in rows:
                self._check_one(row, self.chains[row.n])

    def _check_one(self, row: Stored, chain: Chain) -> None:
        where = f"instance {row.id}"
        if row.definition not in self.definitions:
            self._check_definition(row)
        if row.version != chain.seq:
            if row.version > chain.seq and self._moved(chain.link.p):
                return  # it moved on while this ran; the next verification looks at it
            if not (row.body is None and chain.erased):
                raise ChainBroken(where, "snapshot version", chain.seq, row.version)
        if row.body is None:
            return
        if _sha(row.body).digest() != chain.digest:
            raise ChainBroken(where, "snapshot", chain.digest, _sha(row.body).digest())
        snapshot_blobs = check_row(row, chain.labels)
        if snapshot_blobs:
            self._compare_blobs(row.id, snapshot_blobs, where)

    def _check_definition(self, row: Stored) -> None:
        body = self.source.definition(row.definition)
        actual = "none" if body is None else _sha(body).hexdigest()
        if actual != row.definition:
            raise ChainBroken(f"definition of instance {row.id}", "hash", row.definition, actual)
        self.definitions[row.definition] = None


def _row_broken(chain: Chain, seq: int, what: str, expected: Any, found: Any) -> ChainBroken:
    return ChainBroken(f"instance {chain.id}, seq {seq}", what, expected, found)


def _pages(read: Any) -> Iterator[Sequence[Any]]:
    """Pages of rows numbered by `n`."""
    after = _BEFORE_ALL
    while page := read(after):
        yield page
        after = page[-1].n
