// What others say was made of vulnerabilities in an image (VEX). It is shown beside what is found, and hides nothing until
// somebody who may accept risks adopts it, or trusts whoever has signed it.
import type { Call } from '#app.ts'
import { keptPattern } from '#contents/package-pattern.ts'
import { aboutImage } from '#contents/reports/vex-about.ts'
import { isKnownImage } from '#domains/registry/images/image-contents.service.ts'
import { findRepoByUid } from '#domains/registry/repos/paths.service.ts'
import { isDigest } from '#lib/digest.ts'
import { found, invalid, notFound } from '#lib/errors.ts'
import { holdForCall } from './report-memory.service.ts'
import type { StatedVulnerability } from './scan-reports.model.ts'
import * as store from './scan-reports.store.ts'

/** `uid` is what it is adopted by; `author` is who says so, by the document's own word. */
export type Statement = StatedVulnerability & {
  uid: string
  author: string
  format: string
  actor: string
  referrer: string
  takeTime: string
  /** The uids of the signers who were trusted when it was looked at, and have signed it. */
  signers: string[]
}

/** How many documents of an image are looked at, the newest first, how many statements are told, and of how many bytes. */
const most = { documents: 50, statements: 5000, bytes: 8 * 2 ** 20 }

/** What is said of an image of a repo, the newest document first. Throws NOT_FOUND for a repo or an image that is not there. */
export async function listStatements(call: Call, repoUid: string, digest: string): Promise<Statement[]> {
  const { db } = call.app
  if (!isDigest(digest)) throw invalid({ field: 'digest', description: 'is not a digest' })
  const repo = found(await findRepoByUid(db, repoUid), 'registry.pinfold.dev/Repo', repoUid)
  if (!(await isKnownImage(db, repo.id, digest))) throw notFound('registry.pinfold.dev/Image', digest)
  const wanted: number[] = []
  let bytes = 0
  for (const { id, size } of await store.documentsOf(db, repo.id, digest, most.documents)) {
    // One that is too long hides no others.
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

/** Throws NOT_FOUND where the image has no such statement. */
export async function getStatement(call: Call, repoUid: string, digest: string, uid: string): Promise<Statement> {
  const one = (await listStatements(call, repoUid, digest)).find((statement) => statement.uid === uid)
  return found(one, 'registry.pinfold.dev/VexStatement', uid)
}

/** What is accepted when it is adopted: of no more than it speaks of. */
export type Adopted = { vulnerability: string; package: string; stated: string }

/** Throws INVALID_ARGUMENT for one that does not say that there is nothing to do, or is about something else. */
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
  if (digest === '') throw refuse('is required with a statement', 'digest')
  const one = (await listStatements(call, repoUid, digest)).find(({ uid }) => uid === statement)
  if (!one) throw refuse('is no statement about the image')
  const { vulnerability, status, justification, text, author } = one
  if (status !== 'not_affected' && status !== 'fixed') throw refuse(`says ${status}, so there is nothing to adopt`)
  const stated = [status, justification, text].filter(Boolean).join(', ').slice(0, 1000)
  const of = { vulnerability, stated: `${author || 'somebody'}: ${stated}` }
  const wanted = named === '' ? undefined : keptPattern(named)
  if (named !== '' && !wanted) throw refuse('is no package URL of a kind that is compared', 'package')
  const { image, parts } = aboutImage(one, digest)
  if (image) return { ...of, package: named }
  if (parts.length === 0) throw refuse('is about another image')
  // What cannot be told apart would hide more than is said.
  const packages = parts.map((part) => keptPattern(part) ?? '')
  if (wanted) {
    if (!packages.includes(wanted)) throw refuse('is no package that the statement is about', 'package')
    return { ...of, package: named }
  }
  const [only, ...others] = new Set(packages)
  if (others.length > 0) throw refuse('is required, since the statement is about several packages', 'package')
  if (!only) throw refuse('is about something that is no package which is compared')
  return { ...of, package: only }
}
