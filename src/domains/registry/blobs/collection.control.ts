import { setTimeout as sleep } from 'node:timers/promises'
import type { Handlers } from '#app.ts'
import type { BlobControlService } from '#gen/pinfold/control/registry/v1/blobs_pb.ts'

/** A large collection takes longer than a call may. */
const waitMs = 10_000

export const collection: Handlers<typeof BlobControlService> = {
  async collectBlobs(call, { dryRun, id }) {
    const { collector } = call.app
    const run = id === '' ? collector.start(dryRun) : collector.find(id)
    const waiting = new AbortController()
    const late = sleep(waitMs, false, { signal: waiting.signal }).catch(() => false)
    const finished = await Promise.race([run.done.then(() => true), late])
    waiting.abort()
    const { links, blobs, bytes, uploads, files, fileBytes } = run.collected
    return {
      $typeName: 'pinfold.control.registry.v1.BlobCollection',
      id: run.id,
      finished,
      links: BigInt(links),
      blobs: BigInt(blobs),
      bytes: BigInt(bytes),
      uploads: BigInt(uploads),
      files: BigInt(files),
      fileBytes: BigInt(fileBytes),
    }
  },
}
