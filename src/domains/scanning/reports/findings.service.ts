// The findings of one image with all that they follow from, and where nothing can be said of it.
import type { Call } from '#app.ts'
import { fixesFor } from '#contents/match.ts'
import { packageUrl } from '#contents/package-url.ts'
import type { PackageKind } from '#contents/packages.ts'
import { contentsOf, isKnownImage } from '#domains/registry/images/image-contents.service.ts'
import { findRepoByUid } from '#domains/registry/repos/paths.service.ts'
import { isDigest } from '#lib/digest.ts'
import { found, invalid, notFound } from '#lib/errors.ts'
import { rootOf } from '#lib/uid.ts'
import { type Known, vulnerabilityIds } from '../known/known.model.ts'
import { findKnownNow } from '../known/known.store.ts'
import { ecosystemsOfList, findList } from '../lists/lists.store.ts'
import { findingStates } from '../matching/findings.model.ts'
import { orderOf } from '../matching/matching.service.ts'
import { severityLevels } from '../records/records.model.ts'
import { listSources } from '../records/records.store.ts'
import { speaksOf } from './image-knowledge.service.ts'

export type Gap = { reason: string; subject: string; message: string }
export type ShownFinding = Known & { vulnerabilities: string[]; purl: string; fixes: string[]; level: string }
export type ImageFindings = { findings: ShownFinding[]; gaps: Gap[] }

const maxFindings = 20_000
const levelNames = new Map<number, string>(Object.entries(severityLevels).map(([name, number]) => [number, name]))

/** Throws NOT_FOUND for a repo or an image that is not there. */
export async function imageFindings(call: Call, repoUid: string, digest: string): Promise<ImageFindings> {
  const { db } = call.app
  if (!isDigest(digest)) throw invalid({ field: 'digest', description: 'is not a digest' })
  const repo = found(await findRepoByUid(db, repoUid), 'registry.pinfold.dev/Repo', repoUid)
  const [contents] = await contentsOf(db, repo.id, [digest])
  if (!contents && !(await isKnownImage(db, repo.id, digest))) throw notFound('registry.pinfold.dev/Image', digest)
  if (contents?.state !== 'known') {
    const message = contents?.message || (contents ? 'nothing in it says what is installed' : 'it waits to be read')
    return { findings: [], gaps: [{ reason: 'CONTENTS_UNREAD', subject: '', message }] }
  }
  const { packages, distribution } = contents
  const list = await findList(db, { hash: packages, distribution })
  if (!list || list.matchTime === '') return { findings: [], gaps: [waits] }
  const known = await findKnownNow(db, list.listNo, [rootOf(repoUid)], maxFindings)
  const purlOf = ({ component }: Known) =>
    packageUrl({ ...component, kind: component.kind as PackageKind }, distribution.id)
  return {
    findings: known
      .filter(({ state }) => state === findingStates.vulnerable)
      .map((one) => ({
        ...one,
        vulnerabilities: vulnerabilityIds(one.record),
        purl: purlOf(one),
        fixes: fixesFor(one.component, one.affected, orderOf(one.component)),
        level: levelNames.get(one.severity) ?? 'unknown',
      })),
    gaps: [
      ...(await gapsOfSources(call, await ecosystemsOfList(db, list.listNo))),
      ...known.filter(({ state }) => state === findingStates.unknown).map((one) => versionGap(one, purlOf(one))),
    ],
  }
}

const waits: Gap = { reason: 'NOT_COMPARED', subject: '', message: 'its packages wait to be compared' }

async function gapsOfSources({ app }: Call, ecosystems: readonly string[]): Promise<Gap[]> {
  const sources = await listSources(app.db)
  return ecosystems.flatMap((ecosystem): Gap[] => {
    if (ecosystem === '') {
      return [
        {
          reason: 'NO_SOURCE',
          subject: '',
          message: 'packages of a distribution or kind that no ecosystem is known for',
        },
      ]
    }
    const those = sources.filter((source) => source.fetchTime !== '' && speaksOf(source.ecosystems, ecosystem))
    if (those.length === 0) return [{ reason: 'NO_SOURCE', subject: ecosystem, message: 'no source speaks of it' }]
    return those.flatMap(({ name, error, fetchTime }) => {
      return error === '' ? [] : [{ reason: 'SOURCE_FAILED', subject: name, message: `of ${fetchTime}: ${error}` }]
    })
  })
}

function versionGap({ record, affected }: Known, purl: string): Gap {
  return {
    reason: 'VERSION',
    subject: purl,
    message: `${record.id} speaks of versions of ${affected.name} that cannot be compared`,
  }
}
