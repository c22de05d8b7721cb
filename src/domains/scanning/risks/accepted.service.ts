// Applies accepted risks and signed statements to the findings of an image.
import { isMeant, type PackagePattern, patternOf } from '#contents/package-pattern.ts'
import type { Reader } from '#db/sql.ts'
import { lineage } from '#lib/uid.ts'
import type { Accepted, Known } from '../image-findings/image-findings.model.ts'
import { type NamedRecord, vulnerabilityIds } from '../records/records.model.ts'
import { hasSigned, type IgnoringStatement, ignoringStatementsOf } from '../scan-reports/signed-statements.store.ts'
import type { RiskAcceptance } from './risks.model.ts'
import * as store from './risks.store.ts'

/** An image in one of the requested repositories. */
export type ImageAt = { repoUid: string; digest: string }

type Named = Pick<Known, 'component'> & { record: NamedRecord }

/** Adds accepted risks to each finding. A finding is accepted only if its risk was accepted in all of the repositories. */
export async function withAccepted<K extends Known>(
  reader: Reader,
  known: readonly K[],
  images: readonly ImageAt[],
  distribution: string,
): Promise<K[]> {
  const accepted: ((one: Named) => Accepted[])[] = []
  for (const image of images) accepted.push(await acceptedAt(reader, known, image, distribution))
  return known.map((one) => {
    const each = accepted.map((of) => of(one))
    return each.some((some) => some.length > 0) ? { ...one, accepted: each } : one
  })
}

/** True if the repository has, or ever had, an accepted risk or a signed statement. */
export const hasAccepted = async (reader: Reader, repoUid: string): Promise<boolean> =>
  (await store.hasRisks(reader, lineage(repoUid))) || (await hasSigned(reader, repoUid))

/** Reads the present and former acceptances for one image. Returns a function that finds the acceptances of a finding. */
export async function acceptedAt(
  reader: Reader,
  known: readonly Named[],
  { repoUid, digest }: ImageAt,
  distribution: string,
): Promise<(one: Named) => Accepted[]> {
  if (known.length === 0 || !(await hasAccepted(reader, repoUid))) return () => []
  const scopes = lineage(repoUid)
  const names = [...new Set(known.flatMap(({ record }) => namesOf(record).flatMap(({ names }) => names)))]
  const risks = (await store.risksOf(reader, scopes, names)).filter((one) => one.digest === '' || one.digest === digest)
  const signed = await ignoringStatementsOf(reader, { repoUid, digest }, names)
  const all = [...risks.map(ofRisk), ...signed.map(ofSigned)].filter(isReadable)
  const byName = Map.groupBy(all, ({ vulnerability }) => vulnerability)
  return ({ component, record }) => {
    return namesOf(record).flatMap(({ id, names }) =>
      names
        .flatMap((name) => byName.get(name) ?? [])
        .filter(({ pattern }) => pattern === undefined || isMeant(pattern, component, distribution))
        .map(({ accepted }) => ({ ...accepted, vulnerability: id })),
    )
  }
}

/**
 * Each vulnerability of a record with its names. If a record is about several vulnerabilities, the record's other names belong to
 * none of them.
 */
function namesOf(record: Named['record']): { id: string; names: string[] }[] {
  const ids = vulnerabilityIds(record)
  return ids.map((id) => ({
    id,
    names: ids.length > 1 ? [id] : [...new Set([id, record.id, ...record.aliases, ...record.upstream])],
  }))
}

/** Acceptance with its package. `pattern` is undefined if the acceptance applies to all packages. */
type AcceptedIn = {
  vulnerability: string
  package: string
  pattern: PackagePattern | undefined
  accepted: Omit<Accepted, 'vulnerability'>
}

function ofRisk(risk: RiskAcceptance): AcceptedIn {
  const { vulnerability, uid, reason, actor, createTime, expireTime, endTime } = risk
  return {
    ...{ vulnerability, package: risk.package, pattern: patternIn(risk) },
    accepted: { uid, signer: '', reason, actor, expireTime, fromTime: createTime, untilTime: endTime || expireTime },
  }
}

/**
 * Acceptance that follows from a signed statement. It applies while the statement is in force and its signer is trusted. Its
 * actor is the member who trusts the signer.
 */
function ofSigned(one: IgnoringStatement): AcceptedIn {
  const { vulnerability, stated, fromTime, untilTime, signer } = one
  const { uid, name, actor, expireTime, endTime } = signer
  const trustedUntil = endTime || expireTime
  return {
    ...{ vulnerability, package: one.package, pattern: patternIn(one) },
    accepted: {
      ...{ uid: '', signer: uid, actor, expireTime, fromTime, reason: `signed by ${name}: ${stated}` },
      untilTime: untilTime !== '' && untilTime < trustedUntil ? untilTime : trustedUntil,
    },
  }
}

const patternIn = (one: { package: string }) => (one.package === '' ? undefined : patternOf(one.package))

/** False if the package URL of an acceptance is not supported any more. Such an acceptance applies to no package. */
const isReadable = ({ package: named, pattern }: AcceptedIn): boolean => named === '' || pattern !== undefined
