// Images that have a vulnerability now, in all repositories that the caller can see.
import type { Call } from '#app.ts'
import { packageUrl } from '#contents/package-url.ts'
import { findScopes } from '#domains/rules/scopes.service.ts'
import { invalid } from '#lib/errors.ts'
import type { Page } from '#lib/lists/paging.ts'
import { rootOf } from '#lib/uid.ts'
import { findingStates } from '../findings/findings.model.ts'
import { levelName, unknownSeverity, worse } from '../findings/severity.model.ts'
import { isAcceptedAt } from '../image-findings/image-findings.model.ts'
import type { Gap } from '../image-findings/reports.model.ts'
import { canonicalName, hasRecord, problemOfName } from '../image-findings/vulnerability-names.service.ts'
import { listReads } from '../records/records.store.ts'
import { coverageOf } from '../reports/coverage.service.ts'
import { mostListedGaps, type ResultCoverage, resultCoverage } from '../reports/result-coverage.model.ts'
import { acceptedAt } from '../risks/accepted.service.ts'
import type { FoundImage } from './found-images.service.ts'
import { mostPurls } from './images.model.ts'
import * as store from './images.store.ts'
import {
  ecosystemsIn,
  type FoundPage,
  type Searched,
  searchedIn,
  seekImages,
  type UnknownImages,
} from './seek-images.service.ts'

export type ImageState = 'AFFECTED' | 'UNCERTAIN' | 'SUPPRESSED' | 'ACCEPTED'

export type VulnerableImage = {
  repoUid: string
  digest: string
  tags: string[]
  moreTags: boolean
  state: ImageState
  severity: string
  purls: string[]
  morePurls: boolean
}

/** Only the first page has `coverage` and `gaps`. */
export type VulnerableImages = Omit<FoundPage<unknown>, 'items'> & {
  items: VulnerableImage[]
  coverage: ResultCoverage | undefined
  gaps: readonly Gap[]
}

/**
 * Lists one page of the images. An image can have the vulnerability in several packages. Some of these findings may be suppressed
 * or accepted.
 */
export async function listVulnerableImages(
  call: Call,
  page: Page,
  vulnerability: string,
  scope: string,
): Promise<VulnerableImages> {
  const problem = problemOfName(vulnerability)
  if (problem) throw invalid({ field: 'vulnerability', description: problem })
  const scopes = await findScopes(call, scope)
  const { db } = call.app
  const name = await canonicalName(db, vulnerability, [...new Set(scopes.map(rootOf))])
  const searched = await searchedIn(call, scopes)
  const found = await seekImages<store.FoundIn>(call, page, searched, {
    isForAll: false,
    components: (organizations, most) => store.componentsWith(db, name, organizations, most),
    hits: ({ listNo }, of, most) => store.foundInList(db, listNo, { name, organization: of }, most),
  })
  const items: VulnerableImage[] = []
  for (const one of found.items) items.push(toImage(one, await acceptedIn(call, one, name)))
  if (page.after) return { ...found, items, coverage: undefined, gaps: [] }
  const gaps = await gapsIn(call, searched, name, found)
  const unrated = items.filter(({ severity }) => severity === levelName(unknownSeverity))
  const coverage = resultCoverage(gaps, unrated.length)
  return { ...found, items, coverage, gaps: gaps.slice(0, mostListedGaps) }
}

/** Coverage gaps in the scopes. Because of a gap, an image that is not listed may have the vulnerability. */
async function gapsIn(
  call: Call,
  searched: Searched,
  name: string,
  { unknown, moreUnknown }: UnknownImages,
): Promise<Gap[]> {
  const { db, config } = call.app
  const { ecosystems, moreEcosystems } = await ecosystemsIn(call, searched)
  const coverage = coverageOf(ecosystems, await listReads(db, ecosystems), config.vulnerabilityMaxAgeDays)
  const isNamed = await hasRecord(db, name, [...new Set(searched.scopes.map(rootOf))])
  return [
    ...(moreEcosystems ? [otherEcosystems] : []),
    ...coverage.gapsAt(call.now),
    ...(isNamed
      ? []
      : [{ reason: 'NO_RECORD', subject: name, message: 'no data source has an advisory for this vulnerability' }]),
    ...(unknown > 0 || moreUnknown ? [unreadImages(unknown, moreUnknown)] : []),
  ]
}

const otherEcosystems: Gap = {
  reason: 'NOT_COMPARED',
  subject: '',
  message:
    'some ecosystems may be missing here, because there are too many images or package lists of an earlier version',
}

function unreadImages(count: number, more: boolean): Gap {
  const isOne = count === 1 && !more
  return {
    reason: 'CONTENTS_UNREAD',
    subject: '',
    message: `${count}${more ? ' or more' : ''} ${isOne ? 'image was' : 'images were'} not scanned completely`,
  }
}

/** Packages in which the vulnerability is an accepted risk. */
async function acceptedIn(
  { app, now }: Call,
  { image, hits, distribution }: FoundImage<store.FoundIn>,
  name: string,
): Promise<ReadonlySet<store.FoundIn>> {
  const acceptedOf = await acceptedAt(app.db, hits, image, distribution)
  return new Set(hits.filter((hit) => acceptedOf(hit).some((by) => isAcceptedAt(by, name, now))))
}

function toImage(
  { image, distribution, hits, moreHits, tags, moreTags }: FoundImage<store.FoundIn>,
  accepted: ReadonlySet<store.FoundIn>,
): VulnerableImage {
  const stateOf = (hit: store.FoundIn) => (accepted.has(hit) ? 'ACCEPTED' : unacceptedState(hit))
  const purls = new Set(hits.map(({ component }) => packageUrl(component, distribution)))
  const state = order.find((one) => hits.some((hit) => stateOf(hit) === one))!
  return {
    ...{ repoUid: image.repoUid, digest: image.digest, tags, moreTags },
    // If there are more matches than were read, the risk in other packages may not be accepted.
    state: state === 'ACCEPTED' && moreHits ? 'UNCERTAIN' : state,
    severity: levelName(hits.map(levelOf).reduce(worse)),
    purls: [...purls].sort().slice(0, mostPurls),
    morePurls: moreHits || purls.size > mostPurls,
  }
}

const order = ['AFFECTED', 'UNCERTAIN', 'SUPPRESSED', 'ACCEPTED'] as const satisfies ImageState[]

function unacceptedState({ state, isSuppressed }: store.FoundIn): ImageState {
  if (isSuppressed) return 'SUPPRESSED'
  return state === findingStates.unknown ? 'UNCERTAIN' : 'AFFECTED'
}

const levelOf = ({ state, severity }: store.FoundIn): number =>
  state === findingStates.unknown ? unknownSeverity : severity
