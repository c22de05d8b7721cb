// The settings of where blobs are, for how long, and who reads them there.
import { isBucket, parseBucket } from '#blobs/s3/bucket.ts'
import { isAtOrBelow } from '#lib/net/hosts.ts'
import { setting, whole } from './basics.ts'
import { blobStore, clients } from './values.ts'

export const blobSettings = {
  blobs: setting({
    env: 'PINFOLD_BLOBS',
    flag: '--blobs',
    parse: blobStore,
    default: '',
    doc: 'Where blobs are: a folder, as a path or a `file://` URL, or a bucket, as `s3://bucket/prefix?endpoint=…&region=…`; docs/operations/storage.md has more. Several servers must share it. Default: `blobs` in the data folder.',
  }),
  blobRedirects: setting({
    env: 'PINFOLD_BLOB_REDIRECTS',
    parse: clients,
    default: 'off',
    doc: 'Which clients read larger blobs from the bucket itself, for up to five minutes after they were allowed to: `on` for all, or addresses and CIDR ranges, with commas; those with a `!` before them are left out, as in `on,!10.0.0.0/8`.',
  }),
  blobGraceSeconds: setting({
    env: 'PINFOLD_BLOB_GRACE_SECONDS',
    parse: whole(1, 365 * 86_400),
    default: '86400',
    doc: 'How long a blob that no manifest uses, or an upload that nobody continues, is kept after a push last touched it.',
  }),
  blobTrashSeconds: setting({
    env: 'PINFOLD_BLOB_TRASH_SECONDS',
    parse: whole(0, 365 * 86_400),
    default: '604800',
    doc: 'How long the content of a blob that was deleted or collected stays in the store after its last row is gone: as old as a backup of the database may be to be restored without a copy of the blobs. `0` removes it with the collection. With PINFOLD_BLOB_REDIRECTS it stays for 65 minutes at least.',
  }),
}

type Read = { blobs: string; blobRedirects: readonly string[]; url: string; hosts: readonly string[] }

/** Clients take their credential along to a host below the one that they were sent from, which buckets refuse. */
export function redirectProblems({ blobs, blobRedirects, url, hosts: names }: Read): string[] {
  if (blobRedirects.join() === 'off') return []
  if (!isBucket(blobs)) return ['PINFOLD_BLOB_REDIRECTS needs a bucket in PINFOLD_BLOBS']
  const host = new URL(parseBucket(blobs).publicOrigin).hostname
  const ours = [url, ...names].filter((one) => one !== '').map((one) => hostnameOf(one))
  return ours
    .filter((one) => isAtOrBelow(host, one))
    .map((one) => `PINFOLD_BLOB_REDIRECTS cannot lead from ${one} to ${host}: clients would send their tokens along`)
}

function hostnameOf(text: string): string {
  return new URL(text.includes('://') ? text : `http://${text}`).hostname
}
