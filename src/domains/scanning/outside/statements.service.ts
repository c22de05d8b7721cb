// What others say was made of vulnerabilities in an image (VEX). It is shown beside what is found, and hides nothing until
// somebody who may accept risks adopts it.
import type { Call } from '#app.ts'
import { isMeant, patternOf, patternText } from '#contents/package-pattern.ts'
import { contentsOf, isKnownImage } from '#domains/registry/images/image-contents.service.ts'
import { findRepoByUid } from '#domains/registry/repos/paths.service.ts'
import { isDigest } from '#lib/digest.ts'
import { found, invalid, notFound } from '#lib/errors.ts'
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
}

/** How many documents of an image are looked at, the newest first, how many statements are told, and of how many bytes. */
const most = { documents: 50, statements: 5000, bytes: 8 * 2 ** 20 }

/** What is said of an image of a repo, the newest document first. Throws NOT_FOUND for a repo or an image that is not there. */
export async function listStatements(call: Call, repoUid: string, digest: string): Promise<Statement[]> {
  const { db } = call.app
  if (!isDigest(digest)) throw invalid({ field: 'digest', description: 'is not a digest' })
  const repo = found(await findRepoByUid(db, repoUid), 'registry.pinfold.dev/Repo', repoUid)
  if (!(await isKnownImage(db, repo.id, digest))) throw notFound('registry.pinfold.dev/Image', digest)
  const all: Statement[] = []
  let bytes = 0
  for (const { id, size } of await store.documentsOf(db, repo.id, digest, most.documents)) {
    call.signal.throwIfAborted()
    bytes += size
    if (bytes > most.bytes && all.length > 0) break
    const document = await store.findStatements(db, id)
    for (const [i, one] of (document?.statements ?? []).entries()) {
      if (all.length >= most.statements) return all
      const { tool, format, actor, referrer, takeTime } = document!.facts
      all.push({ ...one, uid: `${id}.${i + 1}`, author: tool, format, actor, referrer, takeTime })
    }
  }
  return all
}

/** Of what is said, what is about a package that something is found in. */
export async function statementsFor(
  call: Call,
  repoUid: string,
  digest: string,
): Promise<
  (one: { names: readonly string[]; component: { kind: string; name: string; version: string } }) => Statement[]
> {
  const all = await listStatements(call, repoUid, digest)
  if (all.length === 0) return () => []
  const repo = await findRepoByUid(call.app.db, repoUid)
  const [contents] = repo ? await contentsOf(call.app.db, repo.id, [digest]) : []
  const distribution = contents?.distribution.id ?? ''
  const byName = new Map<string, Set<Statement>>()
  for (const one of all) {
    for (const name of [one.vulnerability, ...one.aliases]) byName.set(name, (byName.get(name) ?? new Set()).add(one))
  }
  return ({ names, component }) => {
    const said = new Set(names.flatMap((name) => [...(byName.get(name) ?? [])]))
    return [...said].filter(({ products }) => {
      if (products.every(isImage)) return true
      const patterns = products.flatMap((product) => patternOf(product) ?? [])
      return patterns.some((pattern) => isMeant(pattern, component, distribution))
    })
  }
}

const isImage = (product: string): boolean => /^pkg:(?:oci|docker)\//.test(product)

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
  if (one.products.every(isImage)) {
    const elsewhere = one.products.find((product) => product.includes('sha256:') && !product.includes(digest))
    if (elsewhere !== undefined) throw refuse('is about another image')
    return { ...of, package: named }
  }
  // What cannot be told apart would hide more than is said.
  const packages = one.products.map((product) => {
    const pattern = patternOf(product)
    return pattern ? patternText(pattern) : ''
  })
  const wanted = named === '' ? undefined : patternOf(named)
  if (wanted) {
    if (!packages.includes(patternText(wanted))) throw refuse('is no package that the statement is about', 'package')
    return { ...of, package: named }
  }
  const [only, ...others] = new Set(packages)
  if (others.length > 0) throw refuse('is required, since the statement is about several packages', 'package')
  if (!only) throw refuse('is about something that is no package which is compared')
  return { ...of, package: only }
}
