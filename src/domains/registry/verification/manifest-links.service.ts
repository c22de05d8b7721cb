// Compares the content that each manifest needs with the link rows that protect this content from deletion.
import type { Db } from '#db/sql.ts'
import { chunksByBytes } from '#lib/chunks.ts'
import { algorithmOf, digestOf } from '#lib/digest.ts'
import { inRepo, lockRepo } from '../blobs/blobs.store.ts'
import { ManifestProblem, readManifest } from '../manifests/manifest-document.ts'
import type { Manifest, ManifestDocument } from '../manifests/manifests.model.ts'
import { hasManifest, insertLinks } from '../manifests/manifests.store.ts'
import type { Problem, Watch } from './verification.model.ts'
import * as store from './verification.store.ts'

const page = 500
/** Limits of one batch: manifests, and bytes of content according to the sizes in the rows. */
const atOnce = { items: page, bytes: 8 << 20 }
const start = { repo: 0, digest: '', manifest: '' }

export async function verifyManifests(db: Db, watch: Watch): Promise<void> {
  for (let after = 0; ; ) {
    const manifests = await store.manifestsAfter(db, after, page)
    for (const some of chunksByBytes(manifests, atOnce, ({ size }) => size)) {
      for (const [repo, keys] of Map.groupBy(some, (key) => key.repo)) await verifyManifestsOf(db, repo, keys, watch)
    }
    watch.examined('manifests', manifests.length)
    if (manifests.length < page) break
    after = manifests.at(-1)!.id
  }
  await verifyUnneededLinks(db, watch)
}

async function verifyManifestsOf(
  db: Db,
  repo: number,
  keys: readonly store.ManifestKey[],
  watch: Watch,
): Promise<void> {
  const digests = keys.map(({ digest }) => digest)
  const manifests = new Map((await store.manifestsOf(db, repo, digests)).map((one) => [one.digest, one]))
  const links = Map.groupBy(await store.linksOf(db, repo, digests), ({ manifest }) => manifest)
  for (const key of keys) {
    const manifest = manifests.get(key.digest)
    // The manifest may have been deleted since the key was read.
    if (manifest) await verifyManifest(db, key, manifest, links.get(key.digest) ?? [], watch)
  }
}

async function verifyManifest(
  db: Db,
  key: store.ManifestKey,
  manifest: Manifest,
  links: readonly store.StoredLink[],
  watch: Watch,
): Promise<void> {
  const report = (problem: Problem, detail: string, repaired: boolean) =>
    watch.found({ check: 'manifests', problem, subject: key.digest, detail: `repo ${key.repo}: ${detail}`, repaired })
  if (digestOf(algorithmOf(key.digest), manifest.content) !== key.digest || manifest.content.length !== key.size) {
    report('manifest has another digest', `${manifest.content.length} bytes`, false)
    return
  }
  const document = readDocument(manifest)
  if (typeof document === 'string') return report('manifest cannot be read', document, false)
  if (sameLinks(document, links)) return
  // A manifest that was deleted between the two reads has no links. If it was pushed again, it has them.
  if (sameLinks(document, await store.linksOf(db, key.repo, [key.digest]))) return
  if (!(await hasManifest(db, key.repo, key.digest))) return
  const repaired = watch.repair && (await writeLinks(db, key, document))
  report('links differ from the manifest', `it lists ${neededBy(document).size} blobs and manifests`, repaired)
}

function readDocument({ content, mediaType }: Manifest): ManifestDocument | string {
  try {
    return readManifest(content, mediaType)
  } catch (error) {
    if (error instanceof ManifestProblem) return error.message
    throw error
  }
}

/**
 * Content that a manifest needs, with 0 for a blob and 1 for a manifest. As for a push, a digest of both a blob and a manifest
 * counts as a blob.
 */
function neededBy({ blobs, manifests }: ManifestDocument): Map<string, number> {
  return new Map([...manifests.map((one) => [one, 1] as const), ...blobs.map((one) => [one, 0] as const)])
}

function sameLinks(document: ManifestDocument, links: readonly store.StoredLink[]): boolean {
  const needed = neededBy(document)
  return links.length === needed.size && links.every(({ digest, kind }) => needed.get(digest) === kind)
}

function writeLinks(db: Db, key: store.ManifestKey, document: ManifestDocument): Promise<boolean> {
  return db.tx(async (tx) => {
    if (!(await lockRepo(tx, { id: key.repo }, 'alone'))) return false
    if (!(await hasManifest(tx, key.repo, key.digest))) return false
    await store.deleteLinksOf(tx, key)
    await insertLinks(tx, key.repo, key.digest, 0, document.blobs)
    await insertLinks(tx, key.repo, key.digest, 1, document.manifests)
    return true
  }, inRepo)
}

async function verifyUnneededLinks(db: Db, watch: Watch): Promise<void> {
  for (let after = start; ; ) {
    const links = await store.linksAfter(db, after, page)
    for (const { repo, manifest } of links.filter(({ isLoose }) => isLoose === 1)) {
      const remove = (tx: Parameters<typeof store.deleteLinksOf>[0]) =>
        store.deleteLinksOf(tx, { repo, digest: manifest })
      const repaired =
        watch.repair &&
        (await db.tx(async (tx) => {
          if (!(await lockRepo(tx, { id: repo }, 'alone')) || (await hasManifest(tx, repo, manifest))) return true
          return (await remove(tx)) > 0
        }, inRepo))
      const detail = `repo ${repo}`
      watch.found({
        check: 'manifests',
        problem: 'links of a manifest that is gone',
        subject: manifest,
        detail,
        repaired,
      })
    }
    if (links.length < page) return
    after = links.at(-1)!
  }
}
