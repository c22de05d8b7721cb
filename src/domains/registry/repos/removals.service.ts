// The slices in which a deleted repo goes.
import type { Tx } from '#db/sql.ts'
import { forgetSomeReports } from '#domains/scanning/outside/report-queue.service.ts'
import { forgetSomeScans } from '#domains/scanning/scanners/scan-queue.service.ts'
import { unlinkBlob } from '../blobs/blobs.store.ts'
import { deleteSomeOfUpload } from '../blobs/uploads.store.ts'
import { forgetSomeContents } from '../images/image-contents.service.ts'
import { deleteManifest } from '../manifests/manifests.store.ts'
import { removeTagsOfRemoval } from '../tags/tag-moves.service.ts'
import { piecesAtOnce, type Removal, sliceSize } from './removals.model.ts'
import * as store from './removals.store.ts'

/** Each takes away so many of one thing and answers with how many there were. */
export const slices: readonly ((tx: Tx, removal: Removal) => Promise<number>)[] = [
  async (tx, removal) => {
    const uids = await store.tagUids(tx, removal.id, sliceSize)
    if (uids.length > 0) await removeTagsOfRemoval(tx, removal, uids)
    return uids.length
  },
  async (tx, { id }) => {
    const digests = await store.contentDigests(tx, id, sliceSize)
    if (digests.length > 0) await forgetSomeContents(tx, id, digests)
    return digests.length
  },
  (tx, { id }) => store.deletePlain(tx, id, sliceSize),
  (tx, { id, uid }) => forgetSomeReports(tx, { id, uid }, sliceSize),
  (tx, { id }) => forgetSomeScans(tx, id, sliceSize),
  async (tx, { id, uid }) => {
    const digests = await store.manifestDigests(tx, id, sliceSize)
    for (const digest of digests) await deleteManifest(tx, { id, uid }, digest)
    return digests.length
  },
  async (tx, { id, deleteTime }) => {
    const uid = await store.someUpload(tx, id)
    return uid === undefined ? 0 : deleteSomeOfUpload(tx, uid, piecesAtOnce, deleteTime)
  },
  async (tx, { id, uid }) => {
    const digests = await store.blobDigests(tx, id, sliceSize)
    for (const digest of digests) await unlinkBlob(tx, { id, uid }, digest)
    return digests.length
  },
]
