// Rows that are removed with a repository: at once if it is small, and in batches if it is large.
import type { App } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import { unlinkAll, unlinkBlob } from '../blobs/blobs.store.ts'
import { deleteSomeOfUpload, deleteUploadsOf } from '../blobs/uploads.store.ts'
import type { RegistryHooks } from '../hooks.ts'
import { forgetContents } from '../images/image-contents.service.ts'
import { deleteManifest, deleteManifestsOf } from '../manifests/manifests.store.ts'
import { allRows, piecesAtOnce, type Removal } from '../repos/removals.model.ts'
import * as store from '../repos/removals.store.ts'
import { removeTagsOfRemoval } from '../tags/tag-moves.service.ts'

/** Function that removes rows of one kind, with the parameters of the hook `repoDeleting`. */
type Removing = RegistryHooks['repoDeleting']

const ofContents: Removing = async (tx, { id }, limit) => {
  if (limit === allRows) return forgetContents(tx, id)
  const digests = await store.contentDigests(tx, id, limit)
  return digests.length === 0 ? 0 : forgetContents(tx, id, digests)
}

const ofPlainTables: Removing = (tx, { id }, limit) => store.deletePlain(tx, id, limit)

const ofManifests: Removing = async (tx, repo, limit) => {
  if (limit === allRows) return deleteManifestsOf(tx, repo)
  const digests = await store.manifestDigests(tx, repo.id, limit)
  for (const digest of digests) await deleteManifest(tx, repo, digest)
  return digests.length
}

/** Removes uploads of a repository. A batch of a large repository removes one upload or some of its chunks. */
const ofUploads: Removing = async (tx, repo, limit) => {
  if (limit === allRows) return deleteUploadsOf(tx, repo, repo.deleteTime)
  const uid = await store.someUpload(tx, repo.id)
  return uid === undefined ? 0 : deleteSomeOfUpload(tx, uid, piecesAtOnce, repo.deleteTime)
}

const ofBlobs: Removing = async (tx, repo, limit) => {
  if (limit === allRows) return unlinkAll(tx, repo)
  const digests = await store.blobDigests(tx, repo.id, limit)
  for (const digest of digests) await unlinkBlob(tx, repo, digest)
  return digests.length
}

/** Functions that remove the rows of a repository, in the order of the calls. */
export function removings({ hooks }: Pick<App, 'hooks'>): readonly Removing[] {
  return [removeTagsOfRemoval, ofContents, ofPlainTables, ...hooks.repoDeleting, ofManifests, ofUploads, ofBlobs]
}

/** Removes all rows of the repository in one transaction. */
export async function removeAll(tx: Tx, app: Pick<App, 'hooks'>, repo: Removal): Promise<void> {
  for (const removing of removings(app)) await removing(tx, repo, allRows)
}
