// Pulls of larger blobs that go on at the bucket.
import type { Blob } from '#domains/registry/blobs/blobs.model.ts'
import { isAtOrBelow } from '#lib/net/hosts.ts'
import type { Visit } from './visit.ts'

/** Smaller ones are here before a client has found out where else to go. */
const smallBytes = 64 * 1024

/** Where the client reads the blob; nothing where that is here. */
export async function addressFor({ registry, call, origin }: Visit, blob: Blob): Promise<string | undefined> {
  const { blobs, blobRedirects } = registry.app
  if (blob.size <= smallBytes || !blobs.addressOf || !blobRedirects.has(call.cause.source)) return undefined
  const address = await blobs.addressOf(blob)
  if (address === undefined) return undefined
  // Clients would take their credential along to such a host, which buckets refuse.
  return isAtOrBelow(new URL(address).hostname, new URL(origin).hostname) ? undefined : address
}
