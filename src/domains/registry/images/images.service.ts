// What manifests and configurations say of images: for which architectures they are, and how much a pull transfers.
import { buffer } from 'node:stream/consumers'
import type { Call } from '#app.ts'
import { invalid, notFound } from '#lib/errors.ts'
import { findBlob, openBlob } from '../blobs/blobs.service.ts'
import { manifestTypes } from '../manifests/manifests.model.ts'
import { findManifest } from '../manifests/manifests.store.ts'
import { repoType } from '../repos/repos.model.ts'
import { findRepoRow } from '../repos/repos.store.ts'
import { type ImageVariant, imageType, maxConfigBytes, maxIndexDepth, sha256Pattern } from './images.model.ts'

/** Each once, in the order of the index; none for what is no image, such as a chart. */
export async function getArchitectures(call: Call, repoUid: string, digest: string): Promise<string[]> {
  const variants = await variantsOf(call, await requireRepo(call, repoUid, digest), digest)
  if (!variants) throw notFound(imageType, digest)
  return [...new Set(variants.map(({ architecture }) => architecture))]
}

/** Compressed bytes of the configuration and the layers of the first image that is for the architecture. */
export async function getSize(call: Call, repoUid: string, digest: string, architecture: string): Promise<number> {
  const repo = await requireRepo(call, repoUid, digest)
  const variants = await variantsOf(call, repo, digest)
  const variant = variants?.find((one) => one.architecture === architecture)
  const document = variant && (await readDocument(call, repo, variant.digest))
  if (!document) throw notFound(imageType, variants ? `${digest} for ${architecture}` : digest)
  const parts = [document.config, ...(document.layers ?? [])]
  // The sizes are what the pusher wrote, and may be anything.
  const total = parts.reduce((sum, part) => sum + (part?.size ?? 0), 0)
  return Math.min(total, Number.MAX_SAFE_INTEGER)
}

type Repo = { id: number }
type Descriptor = { mediaType?: string; digest: string; size?: number; platform?: { architecture?: string } }
type Document = { kind: 'image' | 'index'; config?: Descriptor; layers?: Descriptor[]; manifests?: Descriptor[] }

async function requireRepo(call: Call, uid: string, digest: string): Promise<Repo> {
  if (!sha256Pattern.test(digest)) {
    throw invalid({ field: 'digest', description: `digest must match "${sha256Pattern.source}"` })
  }
  const repo = await findRepoRow(call.app.db, { uid })
  if (!repo) throw notFound(repoType, uid)
  return repo
}

/** The images behind a digest; `undefined` when the repo does not have it. Attestations have no architecture. */
async function variantsOf(call: Call, repo: Repo, digest: string, depth = 0): Promise<ImageVariant[] | undefined> {
  const document = await readDocument(call, repo, digest)
  if (!document) return undefined
  if (document.kind === 'image') {
    const architecture = await architectureOf(call, repo, document.config)
    return isArchitecture(architecture) ? [{ architecture, digest }] : []
  }
  const variants: ImageVariant[] = []
  for (const entry of document.manifests ?? []) {
    const { architecture } = entry.platform ?? {}
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

async function readDocument(call: Call, repo: Repo, digest: string): Promise<Document | undefined> {
  const manifest = await findManifest(call.app.db, repo.id, digest)
  // It was checked when it was pushed.
  const document = manifest && (JSON.parse(Buffer.from(manifest.content).toString()) as Omit<Document, 'kind'>)
  return document && { ...document, kind: manifestTypes[manifest.mediaType] ?? 'image' }
}

/** What the configuration says, which is whatever was pushed; nothing of one that is none, or missing, or too large. */
async function architectureOf(call: Call, repo: Repo, config: Descriptor | undefined): Promise<unknown> {
  const blob = config && (await findBlob(call, repo, config.digest))
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
