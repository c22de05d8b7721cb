// Applies what was accepted to what is known of an image.
import { isMeant, type PackagePattern, patternOf } from '#contents/package-pattern.ts'
import type { Reader } from '#db/sql.ts'
import { lineage } from '#lib/uid.ts'
import type { Accepted, Known } from '../image-findings/image-findings.model.ts'
import { type NamedRecord, vulnerabilityIds } from '../records/records.model.ts'
import { type HidingStatement, hasSigned, hidingOf } from '../scan-reports/signed-statements.store.ts'
import type { RiskAcceptance } from './risks.model.ts'
import * as store from './risks.store.ts'

/** An image in one of the repos that are asked about. */
export type ImageAt = { repoUid: string; digest: string }

type Named = Pick<Known, 'component'> & { record: NamedRecord }

/** Adds to each finding what was accepted of it: it does not count where that is so in all of the repos. */
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

/** Whether anything was ever accepted that may count in a repo, by somebody or since a signer is trusted. */
export const hasAccepted = async (reader: Reader, repoUid: string): Promise<boolean> =>
  (await store.hasRisks(reader, lineage(repoUid))) || (await hasSigned(reader, repoUid))

/** What was accepted of a finding in one image, now or ever. */
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
  const signed = await hidingOf(reader, { repoUid, digest }, names)
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

/** Each vulnerability of a record with the names that stand for it; those of a record about several stand for none. */
function namesOf(record: Named['record']): { id: string; names: string[] }[] {
  const ids = vulnerabilityIds(record)
  return ids.map((id) => ({
    id,
    names: ids.length > 1 ? [id] : [...new Set([id, record.id, ...record.aliases, ...record.upstream])],
  }))
}

/** In which packages; undefined for all. */
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

/** As long as the signer says so and is trusted; whoever trusts the signer answers for it. */
function ofSigned(one: HidingStatement): AcceptedIn {
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

/** What was accepted of something that nobody can tell any more is of no package. */
const isReadable = ({ package: named, pattern }: AcceptedIn): boolean => named === '' || pattern !== undefined
