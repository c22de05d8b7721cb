// Main package of each image of a repository. A stored result is valid until one of its inputs changes: the packages of the
// image, the known products, or the names of the labels.
import { hash } from 'node:crypto'
import type { App } from '#app.ts'
import { ContentMissing } from '#blobs/blobs.ts'
import type { Reader } from '#db/sql.ts'
import { Walk } from '#lib/scheduling/walk.ts'
import { findRepoBlob } from '../blobs/blobs.store.ts'
import { knownContents, packagesOf } from '../images/image-contents.service.ts'
import { imageConfigOf, maxConfigBytes } from '../images/images.model.ts'
import { ManifestProblem, readManifest } from '../manifests/manifest-document.ts'
import { type Manifest, manifestTypes } from '../manifests/manifests.model.ts'
import { findManifest } from '../manifests/manifests.store.ts'
import * as lifecycles from './lifecycles.store.ts'
import * as store from './lifecycles.store.ts'
import { cycleOf, findInstalled, type Installed, lookupNames } from './main-package.model.ts'

export type { StoredMain } from './lifecycles.store.ts'

export type MainsOf = {
  /** Main packages by digest. Digests beyond the limits for reading are left out. */
  mains: Map<string, store.StoredMain>
  /** New or changed main packages, which are not stored yet. */
  fresh: store.StoredMain[]
}

type Repo = { id: number; name: string }

/** Limits for reading, for one response or one batch of a background job. */
const readLimits = { steps: 2000, bytes: 64 * 1024 * 1024 }

class EnoughRead extends Error {}

/** Reader with limits, for one response or one batch of a background job. One image always fits. */
export function readingOf(signal: AbortSignal): Walk {
  return new Walk(readLimits, signal, () => new EnoughRead())
}

/** Main packages of these digests, in order. Digests beyond the limits for reading are left out. */
export async function mainPackagesOf(app: App, repo: Repo, digests: readonly string[], walk: Walk): Promise<MainsOf> {
  const distinct = [...new Set(digests)]
  const contents = await knownContents(app.db, repo.id, distinct)
  const stamp = await stampOf(app)
  const kept = new Map((await store.findMains(app.db, repo.id, distinct)).map((one) => [one.digest, one]))
  const mains: MainsOf['mains'] = new Map()
  const fresh: store.StoredMain[] = []
  for (const digest of distinct) {
    const packages = contents.get(digest) ?? ''
    const basis = hash('sha256', JSON.stringify([stamp, packages]), 'base64url').slice(0, 22)
    const known = kept.get(digest)
    if (known?.basis === basis) {
      mains.set(digest, known)
      continue
    }
    try {
      const found = { digest, basis, ...(await findMain(app, repo, { digest, packages }, walk)) }
      mains.set(digest, found)
      fresh.push(found)
    } catch (error) {
      if (error instanceof EnoughRead) break
      throw error
    }
  }
  return { mains, fresh }
}

export function keysOf({ config, vendor }: Pick<App, 'config' | 'vendor'>): string[] {
  const tokens = ['pinfold', ...(vendor ? [vendor.token] : [])]
  return [...tokens.map((token) => `dev.${token}.package.main`), ...config.mainPackageKeys]
}

async function stampOf(app: App): Promise<unknown> {
  return [keysOf(app), await lifecycles.lastUpdate(app.db)]
}

async function findMain(app: App, repo: Repo, image: { digest: string; packages: string }, walk: Walk) {
  const { db } = app
  const declared = await declaredOf(app, repo, image.digest, walk)
  const installed = image.packages === '' ? [] : await packagesOf(db, image.packages, walk)
  const named = declared || repo.name
  const product = await productOf(db, named)
  const names = [...new Set([...lookupNames(named), ...(product ? await lifecycles.namesOfProduct(db, product) : [])])]
  const found = findInstalled(names, installed) ?? exactly(named, installed) ?? { name: named, version: '' }
  const ofFound = product || (found.name === named ? '' : await productOf(db, found.name))
  const cycles = new Set((ofFound ? await lifecycles.releasesOf(db, ofFound) : []).map(({ cycle }) => cycle))
  const cycle = found.version === '' ? '' : cycleOf(found.version, cycles)
  return { name: found.name, version: found.version, product: ofFound, cycle }
}

function exactly(name: string, installed: readonly Installed[]) {
  const found = installed.find((one) => one.name === name)
  return found && { name, version: found.version }
}

/** Product that the package belongs to. Empty if there is none, or if the name matches several products. */
export async function productOf(reader: Reader, name: string): Promise<string> {
  const lookups = lookupNames(name)
  const found = await lifecycles.productsNamed(reader, lookups)
  for (const lookup of lookups) {
    const [best, next] = found.filter((one) => one.name === lookup)
    if (best) return next?.rank === best.rank ? '' : best.product
  }
  return ''
}

/**
 * Name of the package that an annotation of the manifest or a label of the image declares. If an index declares none, the name
 * comes from its first image.
 */
async function declaredOf(app: App, repo: Repo, digest: string, walk: Walk, level = 0): Promise<string> {
  await walk.pause()
  const manifest = await findManifest(app.db, repo.id, digest)
  if (!manifest) return ''
  walk.spend(1, manifest.content.length)
  const keys = keysOf(app)
  const { annotations, listed } = readBoth(manifest)
  const own = pick(keys, annotations)
  if (own !== '') return own
  if (manifestTypes[manifest.mediaType] === 'index') {
    const [first] = listed?.entries.filter(({ architecture }) => architecture !== 'unknown') ?? []
    return first && level < 2 ? declaredOf(app, repo, first.digest, walk, level + 1) : ''
  }
  return listed?.config ? pick(keys, await labelsOf(app, repo, listed.config.digest, walk)) : ''
}

function readBoth(manifest: Manifest) {
  try {
    return readManifest(manifest.content, manifest.mediaType)
  } catch (error) {
    // An earlier release of the server accepted this manifest under other rules.
    if (error instanceof ManifestProblem) return { annotations: {}, listed: undefined }
    throw error
  }
}

function pick(keys: readonly string[], values: Readonly<Record<string, string>>): string {
  for (const key of keys) {
    const value = Object.hasOwn(values, key) ? values[key]! : ''
    if (/^[\x21-\x7e]{1,256}$/.test(value)) return value
  }
  return ''
}

async function labelsOf(app: App, repo: Repo, digest: string, walk: Walk): Promise<Record<string, string>> {
  const blob = await findRepoBlob(app.db, repo.id, digest)
  if (!blob || blob.size > maxConfigBytes) return {}
  walk.spend(1, blob.size)
  try {
    const chunks: Buffer[] = []
    for await (const chunk of (await app.blobs.read(blob)).stream()) chunks.push(chunk as Buffer)
    return imageConfigOf(Buffer.concat(chunks)).labels
  } catch (error) {
    if (error instanceof ContentMissing) return {}
    throw error
  }
}
