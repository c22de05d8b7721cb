// Pushing blobs: pieces that arrive, uploads that go on after a restart, and what becomes of them when they are complete.
import { createHash, randomBytes } from 'node:crypto'
import type { Work } from '#app.ts'
import type { Part } from '#blobs/blobs.ts'
import type { Tx } from '#db/sql.ts'
import { emitPush, type Origin } from '#domains/events/outbox/emit-registry.ts'
import { type Algorithm, algorithmOf } from '#lib/digest.ts'
import type { RepoRef } from '../repos/repos.model.ts'
import type { Upload, UploadPart } from './blobs.model.ts'
import * as blobs from './blobs.store.ts'
import * as store from './uploads.store.ts'

/** Content whose digest is known. It is open while it has not been finished, else only a name in the store. */
export type Content = { digest: string; size: number; part: Part | string }

/** `undefined` when the repo was deleted meanwhile. */
export async function startUpload(work: Work, repo: RepoRef): Promise<Upload | undefined> {
  const uid = randomBytes(16).toString('hex')
  return work.app.db.tx(async (tx) => {
    if (!(await blobs.repoExists(tx, repo))) return undefined
    await store.insertUpload(tx, uid, repo.id, work.cause.now)
    return { uid, size: 0 }
  })
}

export async function findUpload(work: Work, repo: RepoRef, uid: string): Promise<Upload | undefined> {
  return store.findUpload(work.app.db, repo.id, uid)
}

/** Adds a piece whose bytes are on disk. `false` when another request was faster, or the upload is gone. */
export async function addPart(work: Work, upload: Upload, part: UploadPart): Promise<boolean> {
  return work.app.db.tx((tx) => store.appendPart(tx, upload.uid, part, timeOf(work)))
}

/** Forgets the upload and removes what it had. */
export async function cancelUpload(work: Work, upload: Upload): Promise<void> {
  const parts = await work.app.db.tx(async (tx) => {
    const had = await store.partsOf(tx, upload.uid)
    await store.deleteUpload(tx, upload.uid)
    return had
  })
  await removeAll(work, parts)
}

/**
 * What the pieces of an upload make together, with `last` behind them where the closing request brought one. Nothing is
 * read when it is one piece that was hashed while it came; several are copied into one, and checked on the way.
 */
export async function assemble(
  work: Work,
  upload: Upload,
  last: { part: Part; size: number; digest: string } | undefined,
  algorithm: Algorithm,
): Promise<Content> {
  const parts = await store.partsOf(work.app.db, upload.uid)
  const [first] = parts
  if (last && !first) return last
  if (first && parts.length === 1 && !last) {
    const known = first.digest !== '' && algorithmOf(first.digest) === algorithm
    const digest = known ? first.digest : await join(work, [first.location], algorithm)
    return { digest, size: first.size, part: first.location }
  }
  const whole = await work.app.blobs.begin()
  try {
    await last?.part.finish()
    const names = [...parts.map(({ location }) => location), ...(last ? [last.part.name] : [])]
    const digest = await join(work, names, algorithm, whole)
    // Not by `upload`: pieces may have come since it was read.
    return { digest, size: parts.reduce((sum, { size }) => sum + size, last?.size ?? 0), part: whole }
  } catch (error) {
    await whole.discard()
    throw error
  } finally {
    await last?.part.discard()
  }
}

async function join(work: Work, names: readonly string[], algorithm: Algorithm, into?: Part): Promise<string> {
  const hash = createHash(algorithm)
  for (const name of names) {
    const content = await work.app.blobs.read(name)
    for await (const chunk of content.stream() as AsyncIterable<Buffer>) {
      hash.update(chunk)
      await into?.write([chunk])
    }
  }
  return `${algorithm}:${hash.digest('hex')}`
}

/**
 * Makes the content a blob of the repo, and ends the upload that brought it. Where the registry has it already, that copy
 * stays. `false` when the repo was deleted meanwhile. When it rejects, what it kept may be in use all the same, since a
 * commit can succeed without an answer; the collection finds out.
 */
export async function keepBlob(
  work: Work,
  repo: RepoRef,
  { digest, size, part }: Content,
  origin: Origin,
  upload?: Upload,
): Promise<boolean> {
  const { db, blobs: files } = work.app
  const now = timeOf(work)
  const link = async (tx: Tx): Promise<void> => {
    await blobs.linkBlob(tx, repo.id, digest, now)
    if (upload) await store.deleteUpload(tx, upload.uid)
    await emitPush(tx, work, repo, origin, { type: 'blob', digest })
  }
  try {
    const parts = upload ? await store.partsOf(db, upload.uid) : []
    const linked = (await blobs.findBlob(db, digest)) && (await db.tx((tx) => linkStored(tx, repo, digest, link)))
    if (linked) {
      await removeAll(work, parts)
      return linked === 'linked'
    }
    if (typeof part !== 'string') await part.finish()
    const location = await files.keep(typeof part === 'string' ? part : part.name, digest)
    const stored = await db.tx(async (tx) => {
      if (!(await blobs.repoExists(tx, repo))) return 'gone'
      const inserted = await blobs.insertBlob(tx, { digest, size, location }, now)
      await link(tx)
      return inserted ? 'stored' : 'had'
    })
    if (stored !== 'stored') await files.remove(location)
    await removeAll(work, parts)
    return stored !== 'gone'
  } finally {
    if (typeof part !== 'string') await part.discard()
  }
}

/** `undefined` when it has been collected meanwhile. */
async function linkStored(
  tx: Tx,
  repo: RepoRef,
  digest: string,
  link: (tx: Tx) => Promise<void>,
): Promise<'linked' | 'gone' | undefined> {
  if (!(await blobs.repoExists(tx, repo))) return 'gone'
  if (!(await blobs.findBlob(tx, digest))) return undefined
  await link(tx)
  return 'linked'
}

/** An upload may take longer than what nobody uses is kept, so its time is when it has come, not when it began. */
function timeOf({ app }: Work): string {
  return app.clock().toISOString()
}

async function removeAll(work: Work, parts: readonly UploadPart[]): Promise<void> {
  await Promise.all(parts.map(({ location }) => work.app.blobs.remove(location)))
}
