// Uses our own advisories as a data source. Public advisories apply to all images. Advisories of another organization apply to
// its own images.
import { hash } from 'node:crypto'
import type { App } from '#app.ts'
import { kindOfEcosystem } from '#contents/ecosystems.ts'
import type { Tx } from '#db/sql.ts'
import {
  type Advisory,
  advisoriesAfter,
  findForMatching,
  findPublicOrganization,
} from '#domains/advisories/advisories/publication.service.ts'
import { isAtOrBelow, rootOf } from '#lib/uid.ts'
import { goNamesOf } from '#versions/go-names.ts'
import { isModular } from '#versions/rpm.ts'
import { queueMatches } from '../queue/queue.store.ts'
import { beginSource, putSlice, retire, type SourceRecord } from '../records/records.service.ts'
import { findCurrent, findSource } from '../records/records.store.ts'

export const ownSource = 'pinfold/advisories'

/** Number of the data source. Creates the data source if it does not exist. */
export async function openOwnSource(app: App): Promise<number> {
  return (await findSource(app.db, ownSource))?.sourceNo ?? (await beginSource({ app }, factsOf(app))).sourceNo
}

const factsOf = ({ config }: App) => ({
  name: ownSource,
  url: '',
  licence: 'unknown',
  ecosystems: [...config.advisoryEcosystems],
})

const advisoriesAtOnce = 500

/** Queues all advisories again if the settings apply the advisories to other distributions than before. */
export async function followSettings(app: App, signal: AbortSignal): Promise<void> {
  const known = await findSource(app.db, ownSource)
  const facts = factsOf(app)
  if (known && JSON.stringify(known.ecosystems) === JSON.stringify(facts.ecosystems)) return
  for (let after = ''; ; ) {
    signal.throwIfAborted()
    const uids = await advisoriesAfter(app.db, after, advisoriesAtOnce)
    const last = uids.at(-1)
    if (last === undefined) break
    after = last
    await app.db.tx((tx) => queueAdvisories(tx, uids, app.clock().toISOString()))
  }
  // The settings are stored last, so that an interrupted run is repeated.
  await beginSource({ app }, facts)
}

/**
 * Updates the record of one advisory. Removes the record if the advisory does not exist any more, or if the advisory states
 * nothing about a package.
 */
export async function takeAdvisory(app: App, tx: Tx, sourceNo: number, uid: string): Promise<void> {
  const now = app.clock().toISOString()
  const advisory = await findForMatching(tx, uid)
  const root = rootOf(uid)
  const published = await findPublicOrganization({ db: tx, config: app.config })
  const organization = published !== undefined && isAtOrBelow(uid, published) ? '' : root
  const record = advisory && recordOf(advisory, organization === '' ? app.config.advisoryEcosystems : undefined)
  if (!record || record.affected.length === 0) return retire(tx, await findCurrent(tx, sourceNo, [uid]), now)
  // The hash includes the scope, because another organization can become the public organization.
  const content = hash('sha256', JSON.stringify([organization, record]), 'base64url')
  await putSlice(tx, { sourceNo, generation: 0, now }, [{ record, organization, hash: content }])
}

/**
 * Record of an advisory from its last approved determination. Returns undefined if there is none. A public advisory applies to
 * the given distributions. An advisory of another organization applies to all packages of its kind.
 */
export function recordOf(
  { uid, advisoryId, aliases, artifactName, artifactType, ...advisory }: Advisory,
  distributions: readonly string[] | undefined,
): SourceRecord | undefined {
  const last = advisory.events.findLast(({ type }) => !inconclusive.has(type))
  if (!last) return undefined
  const { fixedVersion, patchedVersions } = last.data
  const except = last.type === 'patched' && Array.isArray(patchedVersions) ? (patchedVersions as string[]) : []
  const arch = advisory.artifactArchitecture
  const ecosystems = distributions?.filter((one) => kindOfEcosystem(one) === artifactType) ?? [artifactType]
  return {
    id: uid,
    aliases: [advisoryId, ...aliases],
    upstream: [],
    summary: '',
    publishTime: advisory.createTime,
    modifyTime: advisory.updateTime,
    withdrawTime: '',
    severities: [],
    references: [],
    affected: ecosystems.flatMap((ecosystem) =>
      namesOf(artifactType, artifactName).map((name) => ({
        ecosystem,
        name,
        ranges:
          last.type === 'fixed'
            ? [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }, { fixed: String(fixedVersion) }] }]
            : [],
        versions: [],
        state: states[last.type] ?? 'affected',
        severity: '',
        qualifiers: {
          ...(arch === '' ? {} : { arch }),
          ...(except.length > 0 ? { except } : {}),
          // An advisory cannot name the module stream of its fix.
          ...(last.type === 'fixed' && artifactType === 'rpm' && isModular(String(fixedVersion)) ? { stream: '' } : {}),
        },
      })),
    ),
  }
}

const namesOf = (type: string, name: string): string[] => (type === 'golang' ? goNamesOf(name) : [name])

/** Event types that are not determinations: a detection, a decision not to analyze, or a move of the component. */
const inconclusive: ReadonlySet<string> = new Set(['detection', 'analysisNotPlanned', 'componentLocationChanged'])

const states: Readonly<Record<string, SourceRecord['affected'][number]['state']>> = {
  falsePositiveDetermination: 'not_affected',
  fixNotPlanned: 'wont_fix',
}

/** Queues these advisories for comparison. */
export async function queueAdvisories(tx: Tx, uids: readonly string[], now: string): Promise<void> {
  const items = [...new Set(uids)]
    .sort()
    .map((uid) => ({ kind: 'advisory' as const, organization: rootOf(uid), item: uid }))
  await queueMatches(tx, items, now)
}
