// Order in which transactions lock rows. If all transactions keep it, they wait for each other and do not deadlock. To add a lock
// here, check which rows its transaction has locked before.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { project } from '../support/process.ts'

const src = join(project, 'src')
const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((file) => /(?<!\.test)\.ts$/.test(file))
const textOf = (file: string) => readFileSync(join(src, file), 'utf8').replace(/^import[\s\S]*?from '.*'$/gm, '')

/** Locks in the order in which a transaction takes them. Rows of one table are locked in the order of their keys. */
const rowLocks = {
  'db/leases.ts': ['shared', 'deleting'],
  'domains/registry/repos/repos.store.ts': ['lock'],
  'domains/registry/blobs/blobs.store.ts': ['lock'],
  'domains/registry/blobs/uploads.store.ts': ['deleting', 'deleting'],
  'domains/registry/tags/tags.store.ts': ['alone'],
  'domains/registry/images/image-contents.store.ts': ['deleting'],
  'domains/ledger/proofs/cosignatures.store.ts': ['alone'],
  'domains/events/delivery/backlog.store.ts': ['alone'],
  'domains/events/routing/queues.store.ts': ['alone', 'alone', 'alone'],
}

/** Ways to lock the row of a repository. */
const repoLocks: Record<string, readonly string[]> = {
  'domains/registry/blobs/blobs.service.ts': ['alone'],
  'domains/registry/blobs/collect-blobs.ts': ['alone'],
  'domains/mirrors/follows/follows.service.ts': ['alone', 'alone'],
  'domains/mirrors/follows/upstream-moves.service.ts': ['alone'],
  'domains/registry/deletions/deletions.service.ts': ['deleting', 'alone'],
  'domains/registry/images/scannable.service.ts': ['alone'],
  'domains/policy/retention/sweep.service.ts': ['alone'],
  'domains/mirrors/copies/copies.service.ts': ['alone'],
  'domains/registry/repos/repos.service.ts': ['lock'],
  'domains/registry/tags/index-tags.service.ts': ['shared', 'shared', 'shared'],
  'domains/registry/tags/tag-imports.service.ts': ['alone'],
  'domains/registry/tags/tag-restores.service.ts': ['alone'],
  'domains/registry/tags/tags.service.ts': ['alone', 'alone', 'alone', 'alone'],
  'domains/registry/verification/manifest-links.service.ts': ['alone', 'alone'],
  'domains/registry/verification/tag-records.service.ts': ['alone', 'alone'],
}

function found(pattern: RegExp): Record<string, string[]> {
  const all = files.map((file): [string, string[]] => [
    file,
    [...textOf(file).matchAll(pattern)].map(([, word]) => word!),
  ])
  return Object.fromEntries(all.filter(([, words]) => words.length > 0).sort())
}

test('every row lock in the sources is listed here', () => {
  const locks = found(/(?<!function )\blocking\(\w+, '?(\w+)'?\)/g)
  assert.deepEqual(locks, Object.fromEntries(Object.entries(rowLocks).sort()))
  const elsewhere = files.filter((file) => /\bFOR (?:NO KEY )?UPDATE\b|\bFOR (?:KEY )?SHARE\b/.test(textOf(file)))
  assert.deepEqual(elsewhere, ['db/row-locks.ts'], 'locks are written in one place')
})

test('every lock of a repository is listed here, and is taken in a transaction with row locks', () => {
  const locks = found(/(?<!function )\blockRepo(?:Row)?\(\s*tx,\s*(?:\{[^}]*\}|[\w.()]+),\s*'?(\w+)'?,?\s*\)/g)
  assert.deepEqual(locks, repoLocks)
  const calls = found(/(?<!function )\b(lockRepo(?:Row)?)\(/g)
  for (const [file, names] of Object.entries(calls)) assert.equal(locks[file]?.length, names.length, file)
  for (const file of Object.keys(locks)) assert.match(textOf(file), /\binRepo\b|isolation: 'rowLocks'|\btx: Tx\b/, file)
})

test('a transaction locks a repository before its content, and before that only the lease of a background job', () => {
  const inside =
    /\b(?:findTagLocked|lockTag|deleteUpload|deleteUploadsOf|insertLinks|assignTag|unlinkBlob|linkBlob)\(tx/
  for (const file of Object.keys(repoLocks)) {
    if (file.endsWith('.store.ts')) continue
    for (const body of textOf(file).split(/\n(?=(?:export )?(?:async )?function )/)) {
      const at = body.search(/\blockRepo(?:Row)?\(/)
      const before = at < 0 ? '' : body.slice(0, at)
      const lastStart = Math.max(before.lastIndexOf('.tx(async'), before.lastIndexOf('.tx((tx'), 0)
      assert.doesNotMatch(before.slice(lastStart), inside, `${file}: ${body.slice(0, 80)}`)
    }
  }
})
