import type { Handlers } from '#app.ts'
import type { BlobControlService } from '#gen/pinfold/control/registry/v1/blobs_pb.ts'
import { hasEnded } from './collection.model.ts'
import { requestCollection, waitForCollection } from './collection.service.ts'

/** Longest time that one call waits for a collection. Then the call returns the progress. */
const waitMs = 10_000

export const collection: Handlers<typeof BlobControlService> = {
  async collectBlobs({ app, signal }, { dryRun, id: asked }) {
    const id = asked === '' ? await requestCollection(app, dryRun) : asked
    const found = await waitForCollection(app, id, { waitMs, signal })
    const { links, blobs, bytes, uploads, files, fileBytes } = found.collected
    return {
      $typeName: 'pinfold.control.registry.v1.BlobCollection',
      id,
      finished: hasEnded(found),
      links: BigInt(links),
      blobs: BigInt(blobs),
      bytes: BigInt(bytes),
      uploads: BigInt(uploads),
      files: BigInt(files),
      fileBytes: BigInt(fileBytes),
    }
  },
}
