// Packages of an image.

import type { Call } from '#app.ts'
import { packageUrl } from '#contents/package-url.ts'
import { archAndModule } from '#contents/rpm-module.ts'
import { contentsOf, isKnownImage } from '#domains/registry/images/image-contents.service.ts'
import { findRepoByUid } from '#domains/registry/repos/paths.service.ts'
import { isDigest } from '#lib/digest.ts'
import { found, invalid, notFound } from '#lib/errors.ts'
import { type Listed, type Page, toListed } from '#lib/lists/paging.ts'
import type { Gap } from '../image-findings/reports.model.ts'
import { countEntries, findList } from '../lists/lists.store.ts'
import { unread } from '../reports/image-knowledge.service.ts'
import type { ListedComponent } from './images.store.ts'
import * as store from './images.store.ts'

/** The package list of an image. `listNo` is undefined if the packages of the image are unknown, which is a coverage gap. */
export type ImageList = { listNo: number | undefined; distribution: string; gaps: Gap[] }

/**
 * Finds the package list of an image. Throws NOT_FOUND if the repository or the image does not exist. `field` is the request
 * field that contains the digest.
 */
export async function listOfImage(
  call: Call,
  repoUid: string,
  digest: string,
  field: 'digest' | 'base_digest' = 'digest',
): Promise<ImageList> {
  const { db } = call.app
  if (!isDigest(digest)) throw invalid({ field, description: digest === '' ? 'is required' : 'is not a digest' })
  const repo = found(await findRepoByUid(db, repoUid), 'registry.pinfold.dev/Repo', repoUid)
  const [contents] = await contentsOf(db, repo.id, [digest])
  if (!contents && !(await isKnownImage(db, repo.id, digest))) throw notFound('registry.pinfold.dev/Image', digest)
  if (contents?.state !== 'known') {
    const message =
      contents?.message ||
      (contents ? 'no package database or SBOM was found in the image' : 'the image has not been read yet')
    return { listNo: undefined, distribution: '', gaps: [{ reason: 'CONTENTS_UNREAD', subject: '', message }] }
  }
  const { packages, distribution, gaps } = contents
  const list = await findList(db, { hash: packages, distribution })
  // A background job adds package rows for images from releases without such rows.
  const waits: Gap = {
    reason: 'CONTENTS_UNREAD',
    subject: '',
    message: 'the package list of the image has not been processed yet',
  }
  return {
    listNo: list?.listNo,
    distribution: distribution.id,
    gaps: [...gaps.map(unread), ...(list ? [] : [waits])],
  }
}

export type ImagePackages = Listed<ShownPackage> & { gaps: Gap[] }

/** Lists one page of packages, in a stable order or by name. */
export async function listImagePackages(
  call: Call,
  page: Page,
  repoUid: string,
  digest: string,
): Promise<ImagePackages> {
  const { listNo, distribution, gaps } = await listOfImage(call, repoUid, digest)
  if (listNo === undefined) return { items: [], next: '', total: 0, gaps }
  const { db } = call.app
  const rows = await store.componentPage(db, listNo, page)
  const numbered = rows.map((one) => ({ ...one, number: String(one.componentNo), uid: String(one.componentNo) }))
  const { items, ...listed } = toListed(call, page, numbered, await countEntries(db, listNo))
  return { ...listed, items: items.map((one) => toPackage(one, distribution)), gaps }
}

const rowsAtOnce = 2000

/** All packages of a list. An image has a limited number of packages. */
export async function allPackages(call: Call, { listNo, distribution }: ImageList): Promise<ShownPackage[]> {
  const packages: ShownPackage[] = []
  for (let after = 0; listNo !== undefined; ) {
    call.signal.throwIfAborted()
    const rows = await store.componentsIn(call.app.db, listNo, { after, most: rowsAtOnce })
    packages.push(...rows.map((one) => toPackage(one, distribution)))
    const last = rows.at(-1)
    if (!last || rows.length < rowsAtOnce) break
    after = last.componentNo
  }
  return packages.sort((one, other) => (one.purl < other.purl ? -1 : 1))
}

/** A package in the format of the API. */
export type ShownPackage = {
  purl: string
  kind: string
  name: string
  version: string
  ecosystem: string
  origin: string
  originVersion: string
  architecture: string
  locations: string[]
}

export function toPackage(one: ListedComponent, distribution: string): ShownPackage {
  const { kind, name, version, ecosystem, origin, originVersion, locations } = one
  const { arch } = archAndModule(one.arch)
  const purl = packageUrl(one, distribution)
  return { purl, kind, name, version, ecosystem, origin, originVersion, architecture: arch, locations }
}
