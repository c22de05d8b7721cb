// Images made of package databases, and a function that waits until the server has read pushed images.
import { gzipSync } from 'node:zlib'
import { sql } from '#db/sql.ts'
import { fixture } from './fixtures.ts'
import { type LayerEntries, tarOf } from './layers.ts'
import type { Json, Pinfold } from './pinfold.ts'
import { type Descriptor, imageOf, type RegistryClient, types } from './registry.ts'

/** Pushes an image with these layers. A buffer is the stored form of a layer. */
export async function pushLayers(
  client: RegistryClient,
  name: string,
  layers: readonly (LayerEntries | Buffer)[],
  reference?: string,
  extra: Json = {},
): Promise<Descriptor> {
  const config = await client.pushBlob(name, '{"architecture":"amd64","os":"linux"}', types.config)
  const pushed: Descriptor[] = []
  for (const layer of layers) {
    pushed.push(await client.pushBlob(name, Buffer.isBuffer(layer) ? layer : gzipSync(await tarOf(layer))))
  }
  return client.pushManifest(name, imageOf(config, pushed, extra), reference)
}

/** Layer of an Alpine image of the fixtures. */
export const alpine = (image: string): LayerEntries => ({
  'etc/os-release': fixture('contents/alpine-3.10/os-release'),
  'lib/apk/db/installed': fixture(`contents/${image}/installed`),
})

/** Pushes an SBOM as a referrer of the image. */
export async function pushSbom(
  client: RegistryClient,
  name: string,
  subject: Descriptor,
  document: Buffer | string,
  mediaType = 'application/spdx+json',
): Promise<Descriptor> {
  const config = await client.pushBlob(name, '{}', types.empty)
  const layer = await client.pushBlob(name, document, mediaType)
  const { digest, size, mediaType: subjectType } = subject
  const about = { artifactType: mediaType, subject: { digest, size, mediaType: subjectType } }
  return client.pushManifest(name, imageOf(config, [layer], about))
}

/** Resolves when no image is queued for reading. */
export async function allRead({ app }: Pick<Pinfold, 'app'>): Promise<void> {
  for (;;) {
    const { promise, resolve } = Promise.withResolvers<void>()
    const stop = app.images.read.subscribe(resolve)
    const left = await app.db.get(sql`SELECT 1 AS found FROM image_reads LIMIT 1`)
    if (left) await promise
    stop()
    if (!left) return
  }
}
