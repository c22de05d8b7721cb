// Size of the content of a repository, counted on request.
import { setImmediate as turn } from 'node:timers/promises'
import type { Call } from '#app.ts'
import type { Reader } from '#db/sql.ts'
import { found } from '#lib/errors.ts'
import { blobSizes } from '../blobs/blobs.store.ts'
import { manifestSizes } from '../manifests/manifests.store.ts'
import { repoType } from './repos.model.ts'
import { findRepoRow } from './repos.store.ts'

type Stored = { digest: string; size: number }
type ReadPage = (reader: Reader, repo: number, after: string, limit: number) => Promise<Stored[]>

const pageSize = 1000

export async function repoUsage(call: Call, uid: string): Promise<{ manifests: number; blobs: number; bytes: number }> {
  const { id } = found(await findRepoRow(call.app.db, { uid }), repoType, uid)
  const manifests = await sumOf(call, id, manifestSizes)
  const blobs = await sumOf(call, id, blobSizes)
  return { manifests: manifests.count, blobs: blobs.count, bytes: manifests.bytes + blobs.bytes }
}

/** Adds up rows page by page, so that other work runs in between. Stops if the request is canceled. */
async function sumOf(call: Call, repo: number, read: ReadPage): Promise<{ count: number; bytes: number }> {
  let [count, bytes] = [0, 0]
  for (let after = ''; ; await turn()) {
    call.signal.throwIfAborted()
    const page = await read(call.app.db, repo, after, pageSize)
    count += page.length
    for (const { size } of page) bytes += size
    if (page.length < pageSize) return { count, bytes }
    after = page.at(-1)!.digest
  }
}
