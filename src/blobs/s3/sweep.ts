// Lists and removes objects of a bucket.
import { createHash } from 'node:crypto'
import { isLocation, type Stored } from '../blobs.ts'
import { type Client, Refused } from './client.ts'
import { abort } from './upload.ts'
import { elementsOf, escaped, textOf } from './xml.ts'

/** Most objects that one request can remove. */
const mostAtOnce = 1000

/**
 * Lists objects whose key begins with the prefix of the bucket and `begin`. Includes only contents of the blob store, unless
 * `isOurs` selects other objects.
 */
export async function* listObjects(client: Client, begin: string, isOurs = isLocation): AsyncIterable<Stored> {
  const { prefix } = client.bucket
  for (let token: string | undefined = ''; token !== undefined; ) {
    const more: [string, string][] = token === '' ? [] : [['continuation-token', token]]
    const query = [['list-type', '2'], ['prefix', prefix + begin], ...more] as const
    const { text } = await client.ask({ operation: 'ListObjects', method: 'GET', query })
    for (const entry of elementsOf(text, 'Contents')) {
      const location = textOf(entry, 'Key')!.slice(prefix.length)
      // Objects of other programs are left out, such as those of another Pinfold blob store with a longer prefix.
      if (!isOurs(location)) continue
      yield {
        location,
        size: Number(textOf(entry, 'Size')),
        changed: Date.parse(textOf(entry, 'LastModified')!),
      }
    }
    token = textOf(text, 'IsTruncated') === 'true' ? textOf(text, 'NextContinuationToken') : undefined
  }
}

/** Removes objects. Returns the locations that the bucket did not remove. */
export async function removeObjects(client: Client, locations: readonly string[]): Promise<string[]> {
  const left: string[] = []
  for (let at = 0; at < locations.length; at += mostAtOnce) {
    left.push(...(await removeSome(client, locations.slice(at, at + mostAtOnce))))
  }
  return left
}

async function removeSome(client: Client, locations: readonly string[]): Promise<string[]> {
  const { prefix } = client.bucket
  const objects = locations.map((location) => `<Object><Key>${escaped(prefix + location)}</Key></Object>`)
  const body = Buffer.from(`<Delete><Quiet>true</Quiet>${objects.join('')}</Delete>`)
  const headers = { 'content-md5': createHash('md5').update(body).digest('base64'), 'content-type': 'application/xml' }
  const ask = { operation: 'DeleteObjects', method: 'POST', query: [['delete', '']], headers, body: [body] } as const
  const { text } = await client.ask(ask)
  const failed = elementsOf(text, 'Error')
  const left = failed.map((one) => (textOf(one, 'Key') ?? '').slice(prefix.length))
  // An error that names none of the requested objects applies to the whole request.
  const unnamed = failed.length > 0 && !left.every((one) => locations.includes(one))
  if (unnamed) throw new Error(`objects could not be deleted: ${textOf(failed[0]!, 'Code')}`)
  return left
}

/** Aborts multipart uploads that began before a time on the clock of the bucket. A killed server leaves such uploads. */
export async function abortUploads(client: Client, begin: string, before: number): Promise<void> {
  const { prefix } = client.bucket
  for (let marker: [string, string][] | undefined = []; marker !== undefined; ) {
    const query = [['uploads', ''], ['prefix', begin], ...marker] as const
    const { text } = await client.ask({ operation: 'ListMultipartUploads', method: 'GET', query })
    for (const upload of elementsOf(text, 'Upload')) {
      if (Date.parse(textOf(upload, 'Initiated')!) >= before) continue
      const key = textOf(upload, 'Key')!.slice(prefix.length)
      if (!isLocation(key)) continue
      await abort(client, key, textOf(upload, 'UploadId')!).catch((error: unknown) => {
        // With 404, the upload was completed or aborted meanwhile.
        if (!(error instanceof Refused && error.status === 404)) throw error
      })
    }
    const [key, id] = [textOf(text, 'NextKeyMarker'), textOf(text, 'NextUploadIdMarker')]
    const isMore = textOf(text, 'IsTruncated') === 'true' && key !== undefined
    marker = isMore
      ? [['key-marker', key], ...(id ? ([['upload-id-marker', id]] as [string, string][]) : [])]
      : undefined
  }
}
