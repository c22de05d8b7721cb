// Images that are pushed to a recorded server, the same bytes every time.
import { alpine, pushLayers } from '../support/images.ts'
import type { Client, Json } from '../support/pinfold.ts'
import { type Descriptor, imageOf, indexOf, type RegistryClient, types } from '../support/registry.ts'

/** An image with one small layer, whose content is `word`. */
export async function pushSmall(
  client: RegistryClient,
  name: string,
  word: string,
  reference?: string,
  more: Json = {},
): Promise<Descriptor> {
  const { architecture = 'amd64', ...extra } = more
  const layer = await client.pushBlob(name, `the layer of ${word}`)
  const config = await client.pushBlob(name, JSON.stringify({ architecture, os: 'linux' }), types.config)
  return client.pushManifest(name, imageOf(config, [layer], extra), reference)
}

/**
 * Pushes as somebody who may push to `payments`, and as the operator everywhere; `uid` names what there is. Answers with
 * the path of an upload that was not finished.
 */
export async function pushEverything(
  api: Client,
  pusher: RegistryClient,
  operator: RegistryClient,
  uid: Record<string, string>,
): Promise<string> {
  await pushMoving(operator)
  await pushPlatforms(operator)
  await pushReferrers(pusher)
  await pushWithPackages(operator)
  await pushNested(operator)
  const base = await operator.pushBlob('acme/platform/bases/static', 'certificates and time zones')
  const mounted = `acme/payments/python/blobs/uploads/?mount=${base.digest}&from=acme/platform/bases/static`
  await operator.ok(201, 'POST', mounted)
  const config = await operator.pushBlob('acme/payments/python', '{}', types.config)
  await operator.pushManifest('acme/payments/python', imageOf(config, [base]), 'mounted')
  await pushSmall(operator, 'public/static', 'public', 'latest')
  await moveThroughApi(api, operator, uid)
  return startUpload(pusher)
}

/** A tag that is moved, moved back, deleted and made again, and one that stays deleted. */
async function pushMoving(client: RegistryClient): Promise<void> {
  const name = 'acme/platform/edge/nginx'
  for (const word of ['first', 'second', 'third', 'first']) await pushSmall(client, name, word, 'latest')
  await client.ok(202, 'DELETE', `${name}/manifests/latest`)
  await pushSmall(client, name, 'second', 'latest')
  await pushSmall(client, name, 'third', '1.26')
  await client.ok(202, 'DELETE', `${name}/manifests/1.26`)
  await pushSmall(client, name, 'third', '1.27')
}

/** An index with two platforms, once under a tag, and once more after one of them was built again. */
async function pushPlatforms(client: RegistryClient): Promise<void> {
  const name = 'acme/platform/bases/glibc-dynamic'
  const platform = async (architecture: string, word: string) => ({
    ...(await pushSmall(client, name, word, undefined, { architecture })),
    platform: { os: 'linux', architecture },
  })
  const arm = await platform('arm64', 'arm64 one')
  await client.pushManifest(name, indexOf([await platform('amd64', 'amd64 one'), arm]), 'latest')
  await client.pushManifest(name, indexOf([await platform('amd64', 'amd64 two'), arm]), 'latest')
}

/** A signature in both ways, under a tag and as a referrer, and an attestation. */
async function pushReferrers(client: RegistryClient): Promise<void> {
  const name = 'acme/payments/jdk'
  const image = await pushSmall(client, name, 'jdk', '21')
  await pushSmall(client, name, 'signature', `${image.digest.replace(':', '-')}.sig`)
  const { mediaType, digest, size } = image
  for (const [artifactType, word] of [
    ['application/vnd.example.signature', 'referring signature'],
    ['application/vnd.example.attestation', 'attestation'],
  ] as const) {
    const extra = { artifactType, subject: { mediaType, digest, size }, annotations: { about: word } }
    await pushSmall(client, name, word, undefined, extra)
  }
}

/** Pushes two Alpine images with package databases to one repository, as tags 3.10 and 3.3. */
async function pushWithPackages(client: RegistryClient): Promise<void> {
  const name = 'acme/platform/bases/alpine-base'
  await pushLayers(client, name, [alpine('alpine-2-packages')], '3.10')
  await pushLayers(client, name, [alpine('alpine-2016')], '3.3')
}

/** An index that lists an index, which is as deep as they may nest. */
async function pushNested(client: RegistryClient): Promise<void> {
  const name = 'acme/platform/bases/nested'
  const image = await pushSmall(client, name, 'nested')
  const inner = await client.pushManifest(
    name,
    indexOf([{ ...image, platform: { os: 'linux', architecture: 'amd64' } }]),
  )
  await client.pushManifest(name, indexOf([inner]), 'latest')
}

/** An upload that nobody has finished. */
async function startUpload(client: RegistryClient): Promise<string> {
  const { headers } = await client.ok(202, 'POST', 'acme/payments/php/blobs/uploads/')
  const { pathname } = new URL(String(headers.location), client.origin)
  await client.ok(202, 'PATCH', pathname, { body: 'the first half', headers: { 'content-range': '0-13' } })
  return pathname
}

/** Tags as the API makes, moves and deletes them, and a repo that is gone. */
async function moveThroughApi(api: Client, client: RegistryClient, uid: Record<string, string>): Promise<void> {
  const name = 'acme/web/go'
  const repo = uid['web/go']
  const images = [await pushSmall(client, name, 'go one'), await pushSmall(client, name, 'go two')]
  const assign = async (tag: string, { digest }: Descriptor): Promise<Json> => {
    const answer = await api.post(`/registry/v2/tags/${repo}`, { name: tag, digest })
    if (answer.status !== 200) throw new Error(`tag ${tag}: ${answer.text}`)
    return answer.body
  }
  await assign('stable', images[0]!)
  await assign('stable', images[1]!)
  await assign('stable', images[0]!)
  const { uid: gone } = await assign('gone', images[1]!)
  await api.delete(`/registry/v2/tags/${gone}`)

  const { uid: short } = (await api.post(`/registry/v2/repos/${uid.web}`, { name: 'short-lived' })).body
  await pushSmall(client, 'acme/web/short-lived', 'short', 'latest')
  await api.delete(`/registry/v2/repos/${short}`)
}
