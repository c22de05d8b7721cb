// Our own advisories as a source: those that the public organisation publishes count for everybody, those of another
// organisation for its own images.
import { hash } from 'node:crypto'
import type { App } from '#app.ts'
import { kindOfEcosystem } from '#contents/ecosystems.ts'
import type { Tx } from '#db/sql.ts'
import {
  type Advisory,
  advisoriesAfter,
  findForMatching,
  publicPlace,
} from '#domains/advisories/advisories/publication.service.ts'
import { isAtOrBelow, rootOf } from '#lib/uid.ts'
import { goNamesOf } from '#versions/go-names.ts'
import { isModular } from '#versions/rpm.ts'
import { queueMatches } from '../queue/queue.store.ts'
import { beginSource, putSlice, retire, type SourceRecord } from '../records/records.service.ts'
import { findCurrent, findSource } from '../records/records.store.ts'

export const ownSource = 'pinfold/advisories'

/** The number of the source, which is made when it is first needed. */
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

/** Has all advisories taken anew when the settings name other distributions for them than when they were taken. */
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
  // Last, so that whoever was interrupted begins again.
  await beginSource({ app }, facts)
}

/** Brings what we say of one advisory to what it says now; nothing is said of one that is not there any more. */
export async function takeAdvisory(app: App, tx: Tx, sourceNo: number, uid: string): Promise<void> {
  const now = app.clock().toISOString()
  const advisory = await findForMatching(tx, uid)
  const root = rootOf(uid)
  const published = await publicPlace({ db: tx, config: app.config })
  const place = published !== undefined && isAtOrBelow(uid, published) ? '' : root
  const record = advisory && recordOf(advisory, place === '' ? app.config.advisoryEcosystems : undefined)
  if (!record || record.affected.length === 0) return retire(tx, await findCurrent(tx, sourceNo, [uid]), now)
  // The place is part of what is said, since an organisation may become the public one.
  const content = hash('sha256', JSON.stringify([place, record]), 'base64url')
  await putSlice(tx, { sourceNo, generation: 0, now }, [{ record, place, hash: content }])
}

/**
 * What the last conclusive approved event says; undefined while there is none. It counts for the given distributions, or
 * for any that has packages of its kind: an organisation says itself what it has in its images.
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
          // An advisory does not say for which stream of a module its fix is.
          ...(last.type === 'fixed' && artifactType === 'rpm' && isModular(String(fixedVersion)) ? { stream: '' } : {}),
        },
      })),
    ),
  }
}

const namesOf = (type: string, name: string): string[] => (type === 'golang' ? goNamesOf(name) : [name])

/** To detect something, not to look into it, or to move it says nothing for certain. */
const inconclusive: ReadonlySet<string> = new Set(['detection', 'analysisNotPlanned', 'componentLocationChanged'])

const states: Readonly<Record<string, SourceRecord['affected'][number]['state']>> = {
  falsePositiveDetermination: 'not_affected',
  fixNotPlanned: 'wont_fix',
}

/** Queues all that has to do with these advisories. */
export async function queueAdvisories(tx: Tx, uids: readonly string[], now: string): Promise<void> {
  const items = [...new Set(uids)].sort().map((uid) => ({ kind: 'advisory' as const, place: rootOf(uid), item: uid }))
  await queueMatches(tx, items, now)
}
