// How many bytes pulls of images transfer: noted when they are read, since only a configuration says for which architecture it is.
import type { Call } from '#app.ts'
import { chunks } from '#lib/chunks.ts'
import { findSizes } from './image-contents.store.ts'
import { sizeOfImage } from './images.service.ts'

/** How many images one statement asks about. */
const atOnce = 500

/** Lives as long as a request; zero for an image of which nothing is known any more. */
export type Sizes = { of(digest: string): Promise<number> }

/** Of images of a repo; one that was read before sizes were noted is looked at when it is asked for. */
export async function createSizes(
  call: Call,
  repo: { id: number; uid: string },
  digests: readonly string[],
): Promise<Sizes> {
  const sizes = new Map<string, number>()
  for (const some of chunks([...new Set(digests)], atOnce)) {
    for (const { digest, size } of await findSizes(call.app.db, repo.id, some)) sizes.set(digest, size)
  }
  return {
    async of(digest) {
      const size = sizes.get(digest) ?? (await sizeOfImage(call, repo, digest)) ?? 0
      sizes.set(digest, size)
      return size
    },
  }
}
