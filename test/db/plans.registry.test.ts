// Queries of the registry in each request, and pages that garbage collection reads, use an index.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Reader } from '#db/sql.ts'
import { cosignedCheckpoints } from '#domains/ledger/proofs/cosignatures.store.ts'
import { beganAt, findInChain, readTiles, rowAt, waitingLedgers } from '#domains/ledger/proofs/logs.store.ts'
import { nextFetch } from '#domains/mirrors/follows/fetches.store.ts'
import { failuresOf, nextRequest } from '#domains/mirrors/follows/histories.store.ts'
import * as promises from '#domains/policy/retention/retention-locks.store.ts'
import { firstAfter, isUnchangedTag } from '#domains/policy/views/views.store.ts'
import * as blobs from '#domains/registry/blobs/blobs.store.ts'
import * as collection from '#domains/registry/blobs/collection.store.ts'
import * as locations from '#domains/registry/blobs/locations.store.ts'
import * as uploads from '#domains/registry/blobs/uploads.store.ts'
import * as manifests from '#domains/registry/manifests/manifests.store.ts'
import * as ledgers from '#domains/registry/repos/ledgers.store.ts'
import * as told from '#domains/registry/tags/upstream-history.store.ts'
import { type Pinfold, startPinfold } from '../support/pinfold.ts'
import { checkPlanOf, queriesOf } from '../support/plans.ts'

let pinfold: Pinfold
before(async () => {
  pinfold = await startPinfold()
})
after(() => pinfold[Symbol.asyncDispose]())

const digest = `sha256:${'a'.repeat(64)}`
const cutoff = '2026-01-01T00:00:00.000Z'
const subject = { subject: digest, after: '', artifactType: undefined }

const group = 'a'.repeat(40)
const order = { field: 'deleteTime', column: 'delete_time', desc: true }
const page = { order, after: undefined, size: 50, skip: 0, binding: '' }

const teller = { ledger: 1, upstream: group, origin: 'https://registry.example.com', path: 'app' }
const newest = { field: 'time', column: 'time', desc: true }
const afterTold = { order: newest, after: { value: cutoff, uid: '1 1.0' }, size: 50, skip: 0 }

const repo = { id: 1, uid: `${group}/a`, ledger: 1 }

const asked: Record<string, (reader: Reader) => Promise<unknown>> = {
  'a blob of a repo': (reader) => blobs.findRepoBlob(reader, 1, digest),
  'a blob': (reader) => blobs.findBlob(reader, digest),
  'the manifests that need a blob': (reader) => blobs.manifestsWithBlob(reader, 1, digest, 10),
  'the repos that have a blob': (reader) => blobs.reposWithBlob(reader, digest, 10),
  'an upload': (reader) => uploads.findUpload(reader, 1, 'a'),
  'whether a content is known': (reader) => locations.locationIsKnown(reader, 'a'),
  'what is due in the trash': (reader) => locations.dueTrash(reader, '2026', 10),
  'the parts of an upload': (reader) => uploads.partsOfOpen(reader, 'a'),
  'a manifest': (reader) => manifests.findManifest(reader, 1, digest),
  'blobs of a repo': (reader) => blobs.findRepoBlobs(reader, 1, [digest, digest]),
  'a page of the sizes of blobs': (reader) => blobs.blobSizes(reader, 1, digest, 1000),
  'a page of the sizes of manifests': (reader) => manifests.manifestSizes(reader, 1, digest, 1000),
  'manifests with their sizes': (reader) => manifests.storedManifests(reader, 1, [digest, digest]),
  'manifests with their content': (reader) => manifests.findManifests(reader, 1, [digest, digest]),
  'indexes that list a manifest': (reader) => manifests.indexesWith(reader, 1, digest, 1000),
  referrers: (reader) => manifests.listReferrers(reader, 1, subject, 500),
  'referrers of a type': (reader) => manifests.listReferrers(reader, 1, { ...subject, artifactType: 'a/b' }, 500),
  'what referrers say': (reader) => manifests.readReferrers(reader, 1, [digest, digest]),
  'a page of links': (reader) => collection.pageOfLinks(reader, { repo: 1, digest }, cutoff, 500),
  'a page of blobs': (reader) => collection.pageOfBlobs(reader, digest, cutoff, 500),
  'stale uploads': (reader) => collection.staleUploads(reader, cutoff, '', 500),
  'deleted repos': (reader) => ledgers.deletedRepoList.list(reader, [{ below: group }], page, { path: '' }),
  'a deleted repo': (reader) => ledgers.findDeletedRepo(reader, group),
  'the deleted repos of a ledger': (reader) => ledgers.deletedReposOf(reader, 1),
  'the repo of a ledger': (reader) => ledgers.writerOf(reader, 1),
  'deleted repos of a path, counted': (reader) => {
    return ledgers.deletedRepoList.count(reader, [{ below: '/' }], { path: 'acme/app' })
  },
  'what of an organization is brought next': (reader) => nextFetch(reader, group, cutoff),
  'the tag whose past is asked for next': (reader) => nextRequest(reader, group, cutoff),
  'the same while upstreams rest': (reader) => nextRequest(reader, group, cutoff, [group, cutoff]),
  'how often questions about a repo have failed': (reader) => failuresOf(reader, group),
  'what was last told of a tag': (reader) => told.findLastReported(reader, teller, '1.0'),
  'what was told of a tag': (reader) => told.listReported(reader, 1, '1.0', {}, afterTold),
  'what was told of a digest': (reader) => told.listReported(reader, 1, undefined, { digest }, afterTold),
  'how much was told': (reader) => told.countMatching(reader, 1, undefined, {}, 100),
  'what was told of all tags': (reader) => told.listReported(reader, 1, undefined, {}, afterTold),
  'the stays of a digest under tags': (reader) => promises.assignmentsOfDigest(reader, 1, digest, 10_000),
  'what never was a tag': (reader) => {
    const came = [{ after: cutoff, until: cutoff }]
    return promises.listUntagged(reader, { id: 1, ledger: 1 }, came, { behind: digest, most: 500 })
  },
  'whether a tag stands still': (reader) => {
    const latest = { since: cutoff, digest }
    return isUnchangedTag(reader, repo, '1.0', { until: cutoff, latest, chosen: digest })
  },
  'the first move of a tag after a time': (reader) => firstAfter(reader, repo, '1.0', cutoff),
  'the first move in a repo after a time': (reader) => firstAfter(reader, repo, undefined, cutoff),
  'heads that witnesses have signed': (reader) => cosignedCheckpoints(reader, 'a'.repeat(40)),
  'what a tag was, with its entry': (reader) => rowAt(reader, 1, '1.0', cutoff),
  'the next entry of a chain': (reader) => findInChain(reader, 1, digest, 7),
  'when a chain began': (reader) => beganAt(reader, 1, digest),
  'ledgers that wait for their logs': (reader) => waitingLedgers(reader, 7, 100),
  'known locations': (reader) => collection.knownLocations(reader, ['a', 'b']),
}

for (const [what, ask] of Object.entries(asked)) {
  test(`${what}: uses an index`, async () => {
    for (const query of await queriesOf(ask)) await checkPlanOf(pinfold, query, what)
  })
}

test('reads the tiles of a proof by key, without scanning the log', async () => {
  const wanted = [
    { level: 0, index: 5 },
    { level: 0, index: 900 },
    { level: 1, index: 3 },
  ]
  const [query] = await queriesOf((reader) => readTiles(reader, 1, wanted))
  const plan = await pinfold.app.db.plan(query!)
  const byKey = /log_id=\? AND level=\? AND idx=\?|Index Cond: .*log_id = .*level = .*idx = /g
  assert.equal(plan.match(byKey)?.length, wanted.length, plan)
})
