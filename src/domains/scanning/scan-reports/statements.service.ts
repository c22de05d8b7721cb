// VEX statements on vulnerabilities in an image, from documents of any author. Answers show statements next to findings. A
// statement hides a finding only after a member adopts the statement as an accepted risk, or if a trusted signer has signed the
// statement.
import type { Call } from '#app.ts'
import { canonicalPattern } from '#contents/package-pattern.ts'
import { aboutImage } from '#contents/reports/vex-about.ts'
import { isKnownImage } from '#domains/registry/images/image-contents.service.ts'
import { findRepoByUid } from '#domains/registry/repos/paths.service.ts'
import { isDigest } from '#lib/digest.ts'
import { found, invalid, notFound } from '#lib/errors.ts'
import { holdForCall } from './report-memory.service.ts'
import type { StatedVulnerability } from './scan-reports.model.ts'
import * as store from './scan-reports.store.ts'

/** A VEX statement. Adopting the statement needs its `uid`. `author` is the author in the document, who is not verified. */
export type Statement = StatedVulnerability & {
  uid: string
  author: string
  format: string
  actor: string
  referrer: string
  takeTime: string
  /** The uids of the trusted signers who have signed the document. The list is as of the last verification. */
  signers: string[]
}

/** Limits for one image on documents, on statements, and on the bytes of statements. The newest documents have precedence. */
const most = { documents: 50, statements: 5000, bytes: 8 * 2 ** 20 }

/**
 * Lists the statements on an image, the newest document first. Throws NOT_FOUND if the repository or the image does not exist.
 */
export async function listStatements(call: Call, repoUid: string, digest: string): Promise<Statement[]> {
  const { db } = call.app
  if (!isDigest(digest)) throw invalid({ field: 'digest', description: 'is not a digest' })
  const repo = found(await findRepoByUid(db, repoUid), 'registry.pinfold.dev/Repo', repoUid)
  if (!(await isKnownImage(db, repo.id, digest))) throw notFound('registry.pinfold.dev/Image', digest)
  const wanted: number[] = []
  let bytes = 0
  for (const { id, size } of await store.documentsOf(db, repo.id, digest, most.documents)) {
    // If a document is too long, it is left out, and shorter documents are still read.
    if (bytes + size > most.bytes && wanted.length > 0) continue
    bytes += size
    wanted.push(id)
  }
  await holdForCall(call, bytes)
  const all: Statement[] = []
  for (const id of wanted) {
    call.signal.throwIfAborted()
    const document = await store.findStatements(db, id)
    for (const [i, one] of (document?.statements ?? []).entries()) {
      if (all.length >= most.statements) return all
      const { tool, format, actor, referrer, takeTime, signers } = document!.facts
      all.push({ ...one, uid: `${id}.${i + 1}`, author: tool, format, actor, referrer, takeTime, signers })
    }
  }
  return all
}

/** Finds a statement on an image. Throws NOT_FOUND if the image has no such statement. */
export async function getStatement(call: Call, repoUid: string, digest: string, uid: string): Promise<Statement> {
  const one = (await listStatements(call, repoUid, digest)).find((statement) => statement.uid === uid)
  return found(one, 'registry.pinfold.dev/VexStatement', uid)
}

/** The risk that adopting a statement accepts. Its scope is never wider than the statement. */
export type Adopted = { vulnerability: string; package: string; stated: string }

/**
 * Returns the risk that adopting a statement accepts. Throws INVALID_ARGUMENT if its status is not "not affected" or "fixed", or
 * if it is about another image or package.
 */
export async function adoptedStatement(
  call: Call,
  {
    repoUid,
    digest,
    statement,
    package: named,
  }: { repoUid: string; digest: string; statement: string; package: string },
): Promise<Adopted> {
  const refuse = (description: string, member = 'statement') =>
    invalid({ field: `risk_acceptance.${member}`, description })
  if (digest === '') throw refuse('is required if statement is set', 'digest')
  const one = (await listStatements(call, repoUid, digest)).find(({ uid }) => uid === statement)
  if (!one) throw refuse('is not a VEX statement on this image')
  const { vulnerability, status, justification, text, author } = one
  if (status !== 'not_affected' && status !== 'fixed')
    throw refuse(`has the status ${status}; only statements with the status not_affected or fixed can be adopted`)
  const stated = [status, justification, text].filter(Boolean).join(', ').slice(0, 1000)
  const of = { vulnerability, stated: `${author || 'unknown author'}: ${stated}` }
  const wanted = named === '' ? undefined : canonicalPattern(named)
  if (named !== '' && !wanted)
    throw refuse('must be a package URL of a supported type, such as pkg:deb/debian/openssl', 'package')
  const { image, parts } = aboutImage(one, digest)
  if (image) return { ...of, package: named }
  if (parts.length === 0) throw refuse('is about another image')
  // If a product has no supported package URL, an acceptance for the whole image would hide more findings than the statement
  // covers.
  const packages = parts.map((part) => canonicalPattern(part) ?? '')
  if (wanted) {
    if (!packages.includes(wanted)) throw refuse('must be a package of the statement', 'package')
    return { ...of, package: named }
  }
  const [only, ...others] = new Set(packages)
  if (others.length > 0) throw refuse('is required, because the statement is about several packages', 'package')
  if (!only) throw refuse('is about a product that has no package URL of a supported type')
  return { ...of, package: only }
}
