// Verifies the signatures of imported VEX documents with the keys of trusted signers. Applies the statements of verified
// documents.
import { setTimeout as sleep } from 'node:timers/promises'
import type { App } from '#app.ts'
import { Unreadable, type UnreadableReason } from '#contents/packages.ts'
import type { Reader } from '#contents/reader.ts'
import { type Signed, unsigned } from '#contents/reports/signed.ts'
import type { Tx } from '#db/sql.ts'
import { addBytes, bytesOfSigned, charge } from '#domains/registry/blobs/usage.service.ts'
import { isKnownImage } from '#domains/registry/images/image-contents.service.ts'
import { scannableIn } from '#domains/registry/images/scannable.service.ts'
import { chunks } from '#lib/chunks.ts'
import { AppError } from '#lib/errors.ts'
import { dueByOrganization } from '#lib/scheduling/read-scheduler.ts'
import { lineage } from '#lib/uid.ts'
import { areOf, maxAttempts, nextAttemptTime, opened, type Write } from '../scan-reports/read-reports.service.ts'
import type { UncheckedReport } from '../scan-reports/scan-reports.model.ts'
import { findStatements } from '../scan-reports/scan-reports.store.ts'
import { countSigned } from '../scan-reports/signed-statements.store.ts'
import * as store from './signed-reports.store.ts'
import { createNames, type PreparedStatement, signedIn, takeSigned } from './signed-statements.service.ts'
import { mostSigned, type Signer } from './signers.model.ts'
import { type NewSigner, nextNew, noteQueuedReport, signersAt } from './signers.store.ts'

const reportsAtOnce = 200
const statementsAtOnce = 500
/** Pause in ms between transactions, so that other writers are not delayed. */
const pauseMs = 10

/**
 * Queues some existing documents in the scope of a new signer for verification. Returns the signer, or undefined if there is no
 * new signer.
 */
export async function findNewSigner({ db, clock }: App, write: Write, after: number): Promise<NewSigner | undefined> {
  const signer = (await nextNew(db, after)) ?? (await nextNew(db, 0))
  if (!signer) return undefined
  const ids = await store.signedBelow(db, signer.scopeUid, { after: signer.lastReport, most: reportsAtOnce })
  await write(async (tx) => {
    await store.checkSigned(tx, ids, clock().toISOString())
    await noteQueuedReport(tx, signer.uid, ids.length < reportsAtOnce ? -1 : ids.at(-1)!)
  })
  return signer
}

/** Yields the first due document of each organization. Begins with the organization that follows `after`. */
export function dueChecks({ db, clock }: App, after: string): AsyncGenerator<UncheckedReport> {
  return dueByOrganization((behind) => store.nextUnchecked(db, behind), after, clock().toISOString())
}

/** Reasons for a failed verification that may not apply at the next attempt. */
const passing: readonly UnreadableReason[] = ['BLOB_MISSING', 'TIMED_OUT']

/**
 * Verifies one document. The document can add at most `rows` rows. A failed verification is tried again, up to a limit on
 * attempts. Rejects only if `signal` aborts or the lease is lost.
 */
export async function checkOne(
  app: App,
  reader: Reader,
  unchecked: UncheckedReport,
  { write, signal, rows }: { write: Write; signal: AbortSignal; rows: number },
): Promise<void> {
  const { id, repoUid } = unchecked
  const trusted = await signersAt(app.db, lineage(repoUid), app.clock().toISOString())
  let signed = unsigned
  let isListed = false
  let by: string[] = []
  try {
    if (trusted.length > 0) signed = await readSigned(app, reader, unchecked, trusted, signal)
    by = signed.signers.map((number) => trusted[number]!.uid)
    if (by.length > 0) isListed = await applyDocument(app, unchecked, signed, { write, signal, rows, signers: by })
  } catch (error) {
    signal.throwIfAborted()
    return postpone(app, unchecked, error, write)
  }
  await write(async (tx) => {
    const live = new Set((await signersAt(tx, lineage(repoUid), app.clock().toISOString())).map(({ uid }) => uid))
    // The document stays queued if other signers became trusted during the verification, because their keys were not compared.
    if (live.difference(new Set(trusted.map(({ uid }) => uid))).size > 0) return
    const left = isListed ? by.filter((uid) => live.has(uid)) : []
    await store.noteChecked(tx, id, left, trusted.length > 0 ? signed.signatures : -1)
  })
}

async function postpone(app: App, unchecked: UncheckedReport, error: unknown, write: Write): Promise<void> {
  const { id, repo, digest } = unchecked
  const attempts = unchecked.attempts + 1
  await write((tx) =>
    store.postponeCheck(tx, id, attempts, attempts < maxAttempts ? nextAttemptTime(app, attempts) : ''),
  )
  if (!(error instanceof Unreadable)) app.log.error('checking signatures failed', { repo, digest, attempts, error })
}

/** An image that a document is about, and the digests under which the document can name the image. */
type NamedImage = { digest: string; names: readonly string[] }

/**
 * Images that a document is about. For an image, this is the image that the document was imported for. For an index, these are
 * also the images of the index that the document names, or all of its images. Throws Unreadable if the repository does not have
 * the image yet.
 */
async function imagesOf(
  { db }: App,
  { repo, digest }: UncheckedReport,
  subjects: readonly string[],
): Promise<NamedImage[]> {
  if (!(await isKnownImage(db, repo, digest)))
    throw new Unreadable('BLOB_MISSING', `the repository does not have the image ${digest}`)
  const isWhole = subjects.includes(digest)
  const listed = (await scannableIn(db, repo, digest)).filter((one) => one.digest !== digest)
  return [
    ...(isWhole ? [{ digest, names: [digest] }] : []),
    ...listed
      .filter((one) => isWhole || subjects.includes(one.digest))
      .map((one) => ({ digest: one.digest, names: isWhole ? [one.digest, digest] : [one.digest] })),
  ]
}

type Applying = { write: Write; signal: AbortSignal; rows: number; signers: readonly string[] }

/**
 * Applies the verified statements in slices. Applying a statement twice changes nothing. Returns true if author and statements
 * are the same as in the list of statements. They can differ if another server parsed the document.
 */
async function applyDocument(
  app: App,
  unchecked: UncheckedReport,
  signed: Signed,
  { write, signal, rows, signers }: Applying,
) {
  const { id, repo, repoUid, createTime } = unchecked
  const listed = await findStatements(app.db, id)
  if (!listed) return false
  const { author, statementTime, statements } = signed
  const names = createNames(app.db, repoUid)
  const images = await imagesOf(app, unchecked, signed.subjects)
  let left = rows
  let hadRoom = images.length <= mostSigned.images
  for (const { digest, names: digests } of images.slice(0, mostSigned.images)) {
    const prepared = await signedIn(names, digests, { id, author, statementTime, createTime, statements })
    for (const some of chunks(prepared, statementsAtOnce)) {
      signal.throwIfAborted()
      const taken = await applySlice(app, write, { repoUid, digest }, { signers, prepared: some, most: left })
      left = Math.max(0, left - taken.added)
      hadRoom &&= taken.hadRoom
      await sleep(pauseMs)
    }
  }
  if (!hadRoom) app.log.warn('signed statements ignored: an image has too many', { repo, digest: unchecked.digest })
  return listed.facts.tool === author && JSON.stringify(listed.statements) === JSON.stringify(statements)
}

type Image = { repoUid: string; digest: string }
type Slice = { signers: readonly string[]; prepared: readonly PreparedStatement[]; most: number }
type Applied = { added: number; hadRoom: boolean }

/** Applies a slice of statements. If the organization has no quota left, applies only statements that stop hiding findings. */
async function applySlice(app: App, write: Write, image: Image, slice: Slice): Promise<Applied> {
  try {
    return await write((tx) => applySliceInTx(app, tx, image, slice))
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'RESOURCE_EXHAUSTED') throw error
    return write((tx) => applySliceInTx(app, tx, image, { ...slice, most: 0 }))
  }
}

/** Applies a slice in a transaction. Throws RESOURCE_EXHAUSTED if the organization has no quota for the added rows. */
async function applySliceInTx(app: App, tx: Tx, image: Image, { signers, prepared, most }: Slice): Promise<Applied> {
  const now = app.clock().toISOString()
  const live = new Set((await signersAt(tx, lineage(image.repoUid), now)).map(({ uid }) => uid))
  const room = Math.min(most, mostSigned.ofImage - (await countSigned(tx, image, mostSigned.ofImage)))
  const all = { added: 0, hadRoom: true }
  for (const signer of signers) {
    if (!live.has(signer)) continue
    const { added, hadRoom } = await takeSigned(tx, image, signer, prepared, { now, room: room - all.added })
    all.added += added
    all.hadRoom &&= hadRoom
  }
  const bytes = all.added * bytesOfSigned
  if (most === 0) await addBytes(tx, image.repoUid, bytes)
  else if (bytes > 0) await charge(tx, { app }, image.repoUid, bytes)
  return all
}

/**
 * Reads the signatures and statements of a document. If the document cannot be parsed, or is about another subject, it is treated
 * as unsigned.
 */
async function readSigned(
  app: App,
  reader: Reader,
  { repo, digest, rawDigest }: UncheckedReport,
  trusted: readonly Signer[],
  signal: AbortSignal,
): Promise<Signed> {
  try {
    const keys = trusted.map(({ publicKey }) => publicKey)
    const signed = await reader.readSigners(await opened(app, { repo, rawDigest }), keys, signal)
    return (await areOf(app.db, repo, digest, signed.subjects)) ? signed : { ...signed, signers: [] }
  } catch (error) {
    if (error instanceof Unreadable && !passing.includes(error.reason)) return unsigned
    throw error
  }
}
