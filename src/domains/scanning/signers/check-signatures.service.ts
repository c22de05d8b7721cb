// Looks who has signed the documents that were handed in, of those who are trusted there, and takes what these say.
import type { App } from '#app.ts'
import { Unreadable } from '#contents/packages.ts'
import type { Reader } from '#contents/reader.ts'
import type { Signed } from '#contents/reports/read-report.ts'
import type { Tx } from '#db/sql.ts'
import { scannableIn } from '#domains/registry/images/scannable.service.ts'
import { chunks } from '#lib/chunks.ts'
import { lineage } from '#lib/uid.ts'
import { areOf, opened, type Write } from '../outside/read-reports.service.ts'
import type { UncheckedReport } from '../outside/scan-reports.model.ts'
import { findStatements } from '../outside/scan-reports.store.ts'
import * as store from './signed-reports.store.ts'
import { signedIn, takeSigned } from './signed-statements.service.ts'
import type { SignedStatement, Signer } from './signers.model.ts'
import { nextNew, noteLooked, signersAt } from './signers.store.ts'

const reportsAtOnce = 200
const laterMs = 60_000
const vulnerabilitiesAtOnce = 200

/** Has what was handed in before in the places of new signers looked at; answers with whether there was any to begin with. */
export async function lookForNew({ db, clock }: App, write: Write): Promise<boolean> {
  const signer = await nextNew(db)
  if (!signer) return false
  await write(async (tx) => {
    const page = { after: signer.lastReport, most: reportsAtOnce, now: clock().toISOString() }
    const last = await store.checkSignedBelow(tx, signer.scopeUid, page)
    await noteLooked(tx, signer.uid, last ?? -1)
  })
  return true
}

/** The document that is due first, of the next organisation that has one; from the first again behind the last. */
export async function nextUnchecked({ db, clock }: App, after: string): Promise<UncheckedReport | undefined> {
  const now = clock().toISOString()
  for (const [from, to] of [
    [after, undefined],
    ['', after],
  ] as const) {
    for (let behind: string = from; ; ) {
      const next = await store.nextUnchecked(db, behind)
      if (!next || (to !== undefined && next.organization > to)) break
      if (next.dueTime <= now) return next
      behind = next.organization
    }
  }
  return undefined
}

/** Looks at one; later, where that went wrong. Rejects only when the signal says so or the lease is lost. */
export async function checkOne(
  app: App,
  reader: Reader,
  unchecked: UncheckedReport,
  { write, signal }: { write: Write; signal: AbortSignal },
): Promise<void> {
  const { id, repo, repoUid, digest } = unchecked
  const trusted = await signersAt(app.db, lineage(repoUid), app.clock().toISOString())
  let signed: Signed = { signatures: 0, signers: [], subjects: [] }
  try {
    if (trusted.length > 0) signed = await readSigned(app, reader, unchecked, trusted, signal)
  } catch (error) {
    signal.throwIfAborted()
    app.log.error('signatures were not looked at', { repo, digest, error })
    const dueTime = new Date(app.clock().getTime() + laterMs).toISOString()
    return write((tx) => store.postponeCheck(tx, id, dueTime))
  }
  const by = signed.signers.map((number) => trusted[number]!.uid)
  if (by.length > 0) await take(app, unchecked, { write, signers: by, subjects: signed.subjects })
  await write(async (tx) => {
    const live = new Set((await signersAt(tx, lineage(repoUid), app.clock().toISOString())).map(({ uid }) => uid))
    // Whoever is trusted since then was not asked for.
    if (live.difference(new Set(trusted.map(({ uid }) => uid))).size > 0) return
    const left = by.filter((uid) => live.has(uid))
    await store.noteChecked(tx, id, left, trusted.length > 0 ? signed.signatures : -1)
  })
}

/** An image that a document is about, and by which digests it may be named there. */
type Meant = { digest: string; names: readonly string[] }

/** What it is about that it was handed in for, and of an index also all images, or those that it is about. */
async function imagesOf({ db }: App, { repo, digest }: UncheckedReport, subjects: readonly string[]): Promise<Meant[]> {
  const isWhole = subjects.includes(digest)
  const listed = (await scannableIn(db, repo, digest)).filter((one) => one.digest !== digest)
  return [
    ...(isWhole ? [{ digest, names: [digest] }] : []),
    ...listed
      .filter((one) => isWhole || subjects.includes(one.digest))
      .map((one) => ({ digest: one.digest, names: isWhole ? [one.digest, digest] : [one.digest] })),
  ]
}

type Taking = { write: Write; signers: readonly string[]; subjects: readonly string[] }

/** In slices: what is taken twice changes nothing. */
async function take(app: App, unchecked: UncheckedReport, { write, signers, subjects }: Taking): Promise<void> {
  const { id, repo, repoUid } = unchecked
  const document = await findStatements(app.db, id)
  if (!document) return
  const { facts, statements } = document
  const said = { id, author: facts.tool, saidTime: facts.buildTime, statements }
  for (const { digest, names } of await imagesOf(app, unchecked, subjects)) {
    const signed = await signedIn(app.db, { repoUid, digests: names }, said)
    const named = [...Map.groupBy(signed, ({ vulnerability }) => vulnerability).values()]
    for (const some of chunks(named, vulnerabilitiesAtOnce)) {
      const hadRoom = await write((tx) => takeSome(app, tx, { repoUid, digest }, signers, some.flat()))
      if (!hadRoom) app.log.warn('too much was signed of an image', { repo, digest })
    }
  }
}

/** `false` where not all of it had room. */
async function takeSome(
  { clock }: App,
  tx: Tx,
  image: { repoUid: string; digest: string },
  signers: readonly string[],
  signed: readonly SignedStatement[],
): Promise<boolean> {
  const now = clock().toISOString()
  const live = new Set((await signersAt(tx, lineage(image.repoUid), now)).map(({ uid }) => uid))
  let hadRoom = true
  for (const signer of signers) {
    if (live.has(signer)) hadRoom = (await takeSigned(tx, image, signer, signed, now)) && hadRoom
  }
  return hadRoom
}

/** Nobody has signed what can no longer be read, and what is about something else. */
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
    if (error instanceof Unreadable) return { signatures: 0, signers: [], subjects: [] }
    throw error
  }
}
