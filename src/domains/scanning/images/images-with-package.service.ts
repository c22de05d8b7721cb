// Images that contain a package, in all repositories that the caller can see.

import { setImmediate } from 'node:timers/promises'
import type { Call } from '#app.ts'
import {
  type Bounds,
  boundsOf,
  isMeant,
  isWithin,
  namesMatched,
  type PackagePattern,
  patternOf,
} from '#contents/package-pattern.ts'
import { findScopes } from '#domains/rules/scopes.service.ts'
import { type FieldViolation, invalid, refuseIfAny } from '#lib/errors.ts'
import type { Page } from '#lib/lists/paging.ts'
import { orderOf } from '../findings/compare.service.ts'
import { componentsNamed } from '../findings/findings.store.ts'
import type { StoredComponent } from '../lists/lists.model.ts'
import { type ShownPackage, toPackage } from './image-packages.service.ts'
import { mostPurls } from './images.model.ts'
import * as store from './images.store.ts'
import { type FoundPage, searchedIn, seekImages } from './seek-images.service.ts'

export type PackageQuery = {
  name: string
  ecosystem: string
  version: string
  versionRange: string
  purl: string
  scope: string
}

export type ImageWithPackage = {
  repoUid: string
  digest: string
  tags: string[]
  moreTags: boolean
  packages: ShownPackage[]
  morePackages: boolean
  uncertain: boolean
}

export type ImagesWithPackage = Omit<FoundPage<unknown>, 'items'> & { items: ImageWithPackage[] }

type Hit = store.ListedComponent & { isUncertain: boolean }

/** Lists one page of the images. */
export async function listImagesWithPackage(call: Call, page: Page, query: PackageQuery): Promise<ImagesWithPackage> {
  const wanted = readPackageQuery(query)
  const { db } = call.app
  const searched = await searchedIn(call, await findScopes(call, query.scope))
  const found = await seekImages<Hit>(call, page, searched, {
    isForAll: true,
    components: (_, most) => componentsFor(db, wanted, most),
    hits: ({ listNo, key }, _, most) => hitsIn(call, wanted, { listNo, distribution: key.distribution.id }, most),
  })
  const items = found.items.map(({ image, distribution, hits, moreHits, tags, moreTags }) => ({
    ...{ repoUid: image.repoUid, digest: image.digest, tags, moreTags },
    packages: hits.slice(0, mostPurls).map((one) => toPackage(one, distribution)),
    morePackages: moreHits || hits.length > mostPurls,
    uncertain: hits.every(({ isUncertain }) => isUncertain),
  }))
  return { ...found, items }
}

const rowsAtOnce = 500

/** Matching packages of a list. Certain matches come first. */
async function hitsIn(
  call: Call,
  wanted: Wanted,
  list: { listNo: number; distribution: string },
  most: number,
): Promise<Hit[]> {
  const hits: Hit[] = []
  for (const name of namesOf(wanted)) hits.push(...(await hitsNamed(call, { ...wanted, name }, list, most)))
  return hits.sort((one, other) => Number(one.isUncertain) - Number(other.isUncertain)).slice(0, most)
}

const namesOf = ({ name, pattern }: Wanted): string[] => (pattern ? namesMatched(pattern) : [name])

async function hitsNamed(
  { app: { db }, signal }: Call,
  wanted: Wanted,
  { listNo, distribution }: { listNo: number; distribution: string },
  most: number,
): Promise<Hit[]> {
  const { name, pattern } = wanted
  const [certain, uncertain]: [Hit[], Hit[]] = [[], []]
  for (let after = 0; certain.length < most; ) {
    signal.throwIfAborted()
    const rows = await store.namedInList(db, listNo, name, { after, most: rowsAtOnce })
    for (const one of rows) {
      const fits = fitOf(wanted, one)
      if (fits === 'no' || (pattern && !isMeant(pattern, one, distribution))) continue
      const hits = fits === 'yes' ? certain : uncertain
      if (hits.length < most) hits.push({ ...one, isUncertain: fits === 'unknown' })
    }
    const last = rows.at(-1)
    if (!last || rows.length < rowsAtOnce) break
    after = last.componentNo
    await setImmediate()
  }
  return [...certain, ...uncertain].slice(0, most)
}

type Wanted = {
  name: string
  ecosystem: string
  version: string
  bounds: Bounds | undefined
  pattern: PackagePattern | undefined
}

const maxText = 512

function readPackageQuery({ name, ecosystem, version, versionRange, purl }: PackageQuery): Wanted {
  const problems: FieldViolation[] = []
  for (const [field, text] of Object.entries({ name, ecosystem, version, version_range: versionRange, purl })) {
    if (text.length > maxText) problems.push({ field, description: `must be at most ${maxText} characters long` })
  }
  refuseIfAny(problems)
  if (name === '' && purl === '') throw invalid({ field: 'name', description: 'is required if purl is empty' })
  if (name !== '' && purl !== '') throw invalid({ field: 'purl', description: 'must be empty if name is set' })
  const pattern = purl === '' ? undefined : patternOf(purl)
  if (purl !== '' && !pattern) {
    throw invalid({
      field: 'purl',
      description: 'must be a package URL of a supported type, such as pkg:deb/debian/openssl',
    })
  }
  if (version !== '' && versionRange !== '') {
    throw invalid({ field: 'version_range', description: 'must be empty if version is set' })
  }
  const bounds = versionRange === '' ? undefined : boundsOf(versionRange)
  if (versionRange !== '' && !bounds) {
    throw invalid({
      field: 'version_range',
      description: 'must be comparisons separated by commas, such as >=1.2.0,<1.2.7',
    })
  }
  return { name: pattern?.name ?? name, ecosystem, version, bounds, pattern }
}

async function componentsFor(db: Call['app']['db'], wanted: Wanted, most: number): Promise<number[]> {
  const numbers: number[] = []
  for (const name of namesOf(wanted)) {
    for (let after = 0; numbers.length < most; ) {
      const some = await componentsNamed(db, name, { after, upTo: Number.MAX_SAFE_INTEGER, most: 1000 })
      const last = some.at(-1)
      if (!last) break
      after = last.componentNo
      for (const one of some) if (fitOf({ ...wanted, name }, one) !== 'no') numbers.push(one.componentNo)
    }
  }
  return numbers
}

/** If the requested name is the name of the source package, the version of the source package is compared. */
function fitOf({ name, ecosystem, version, bounds, pattern }: Wanted, one: StoredComponent): 'yes' | 'no' | 'unknown' {
  // A package URL names the binary package itself.
  if (pattern && one.name !== name) return 'no'
  if (ecosystem !== '' && one.ecosystem !== ecosystem && !one.ecosystem.startsWith(`${ecosystem}:`)) return 'no'
  const own = one.name === name ? one.version : one.originVersion
  if (version !== '' && own !== version) return 'no'
  return bounds ? isWithin(own, bounds, orderOf(one)) : 'yes'
}
