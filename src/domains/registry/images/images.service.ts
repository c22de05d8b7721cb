// What manifests and configurations say of images: for which architectures they are, and how much a pull transfers.

import { buffer } from 'node:stream/consumers'
import type { Call } from '#app.ts'
import { sha256Pattern } from '#lib/digest.ts'
import { found, invalid, notFound } from '#lib/errors.ts'
import { findBlob, openBlob } from '../blobs/blobs.service.ts'
import { readListed } from '../manifests/manifest-document.ts'
import type { Descriptor, Listed } from '../manifests/manifests.model.ts'
import { findManifest } from '../manifests/manifests.store.ts'
import { repoType } from '../repos/repos.model.ts'
import { findRepoRow } from '../repos/repos.store.ts'
import { type ImageVariant, imageType, maxConfigBytes, maxIndexDepth } from './images.model.ts'

/** Each once, in the order of the index; none for what is no image, such as a chart. */
export async function getArchitectures(call: Call, repoUid: string, digest: string): Promise<string[]> {
  const variants = found(await variantsOf(call, await requireRepo(call, repoUid, digest), digest), imageType, digest)
  return [...new Set(variants.map(({ architecture }) => architecture))]
}

/** Compressed bytes of the configuration and the layers of the first image that is for the architecture. */
export async function getSize(call: Call, repoUid: string, digest: string, architecture: string): Promise<number> {
  const repo = await requireRepo(call, repoUid, digest)
  const variants = await variantsOf(call, repo, digest)
  const variant = variants?.find((one) => one.architecture === architecture)
  const listed = variant && (await readListedOf(call, repo, variant.digest))
  if (!listed?.config) throw notFound(imageType, variants ? `${digest} for ${architecture}` : digest)
  // The sizes are what the pusher wrote, and may be anything.
  const total = [listed.config, ...listed.layers].reduce((sum, { size }) => sum + size, 0)
  return Math.min(total, Number.MAX_SAFE_INTEGER)
}

type Repo = { id: number }

async function requireRepo(call: Call, uid: string, digest: string): Promise<Repo> {
  if (!sha256Pattern.test(digest)) {
    throw invalid({ field: 'digest', description: `digest must match "${sha256Pattern.source}"` })
  }
  return found(await findRepoRow(call.app.db, { uid }), repoType, uid)
}

/** The images behind a digest; `undefined` when the repo does not have it. Attestations have no architecture. */
async function variantsOf(call: Call, repo: Repo, digest: string, depth = 0): Promise<ImageVariant[] | undefined> {
  const listed = await readListedOf(call, repo, digest)
  if (!listed) return undefined
  if (listed.config) {
    const architecture = await architectureOf(call, repo, listed.config)
    return isArchitecture(architecture) ? [{ architecture, digest }] : []
  }
  const variants: ImageVariant[] = []
  for (const entry of listed.entries) {
    const { architecture } = entry
    if (isArchitecture(architecture)) variants.push({ architecture, digest: entry.digest })
    else if (architecture === undefined && depth < maxIndexDepth) {
      variants.push(...((await variantsOf(call, repo, entry.digest, depth + 1)) ?? []))
    }
  }
  return variants
}

function isArchitecture(text: unknown): text is string {
  return typeof text === 'string' && text !== '' && text !== 'unknown'
}

async function readListedOf(call: Call, repo: Repo, digest: string): Promise<Listed | undefined> {
  const manifest = await findManifest(call.app.db, repo.id, digest)
  return manifest && readListed(manifest)
}

/** What the configuration says, which is whatever was pushed; nothing of one that is none, or missing, or too large. */
async function architectureOf(call: Call, repo: Repo, config: Descriptor): Promise<unknown> {
  const blob = await findBlob(call, repo, config.digest)
  if (!blob || blob.size > maxConfigBytes) return undefined
  const content = await openBlob(call, repo, blob)
  if (!content) return undefined
  const text = String(await buffer(content.stream()))
  try {
    return (JSON.parse(text) as { architecture?: unknown } | null)?.architecture
  } catch {
    return undefined
  }
}
