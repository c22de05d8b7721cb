// Nested indexes and wrong descriptors, pushed to a real server before or after the content that they list.
import { oneOf, type Random } from '../support/random.ts'
import { type Descriptor, digestOf, imageOf, indexOf, startRegistry, types } from '../support/registry.ts'
import { mutate } from './mutate.ts'

const registry = await startRegistry({ sparseManifests: 'all' })
export const closeManifests = () => registry[Symbol.asyncDispose]()

type Known = { body: string; described: Descriptor; lists: readonly Descriptor[] }
type World = { name: string; known: Known[]; stored: Map<string, Known | Descriptor>; blobs: Descriptor[] }

const atOnce = 40
let count = 0
let world: World | undefined

/** Changes to a new repository from time to time, so that each repository stays small. */
async function worldNow(): Promise<World> {
  if (world && world.known.length < atOnce) return world
  const name = `acme/fuzz-${count++}`
  const blobs: Descriptor[] = []
  for (const text of ['{}', 'a layer', 'another layer'])
    blobs.push(await registry.pusher.pushBlob(name, text, types.config))
  const absent = { mediaType: types.layer, digest: digestOf('absent'), size: 6 }
  world = { name, known: [], stored: new Map(blobs.map((one) => [one.digest, one])), blobs: [...blobs, absent] }
  return world
}

function known(manifest: object, lists: readonly Descriptor[]): Known {
  const body = JSON.stringify(manifest)
  const { mediaType } = manifest as { mediaType: string }
  return { body, described: { mediaType, digest: digestOf(body), size: Buffer.byteLength(body) }, lists }
}

function push({ name }: World, { body, described }: Known) {
  const headers = { 'content-type': described.mediaType }
  return registry.pusher.call('PUT', `${name}/manifests/${digestOf(body)}`, { body, headers })
}

const sizeOf = (stored: Known | Descriptor): number => ('body' in stored ? stored.described.size : stored.size)
/** True if a size differs from the stored size, or from another size in the same manifest. */
function lies({ stored }: World, { lists }: Known): boolean {
  const said = new Map(lists.map(({ digest, size }) => [digest, size]))
  return lists.some(({ digest, size }) => {
    const one = stored.get(digest)
    return said.get(digest) !== size || (one !== undefined && sizeOf(one) !== size)
  })
}

function levelsOf(stored: World['stored'], digest: string): number {
  const one: Known | Descriptor | undefined = stored.get(digest)
  if (!one || !('body' in one) || one.described.mediaType !== types.index) return 0
  return 1 + Math.max(0, ...one.lists.map((entry: Descriptor) => levelsOf(stored, entry.digest)))
}

async function expectStatus(where: World, manifest: Known): Promise<void> {
  const { digest } = manifest.described
  const after = new Map(where.stored).set(digest, manifest)
  const isDeep = [...after.keys()].some((one) => levelsOf(after, one) > 2)
  const expected = !where.stored.has(digest) && (lies(where, manifest) || isDeep) ? 400 : 201
  const { status, bytes } = await push(where, manifest)
  if (status !== expected) throw new Error(`${status} and not ${expected}: ${bytes} for ${manifest.body}`)
  if (status === 201) where.stored.set(digest, manifest)
}

const lying = (random: Random, one: Descriptor): Descriptor =>
  random.below(4) === 0 ? { ...one, size: oneOf(random, [0, one.size + 1, 2 ** 50]) } : one

export const manifestTargets = {
  async nesting(random: Random) {
    const where = await worldNow()
    const lists = Array.from({ length: random.below(4) }, () => {
      return where.known.length === 0 ? where.blobs[0]! : oneOf(random, where.known).described
    })
    const entries = lists.filter(({ mediaType }) => mediaType !== types.config).map((one) => lying(random, one))
    where.known.push(known(indexOf(entries, { annotations: { nonce: `${random.below(1e9)}` } }), entries))
    await expectStatus(where, oneOf(random, where.known))
    const { repo } = await registry.app.paths.find(where.name)
    const { digest } = oneOf(random, where.known).described
    for (const what of ['architectures', 'size']) {
      const { status, text } = await registry.operator.get(`/registry/v2/repos/${repo!.uid}/digests/${digest}/${what}`)
      if (status !== 200 && status !== 404) throw new Error(`${status}: ${text}`)
    }
  },
  async descriptors(random: Random) {
    const where = await worldNow()
    const [config, ...layers] = Array.from({ length: 1 + random.below(4) }, () =>
      lying(random, oneOf(random, where.blobs)),
    )
    const image = known(imageOf(config!, layers), [config!, ...layers])
    where.known.push(image)
    await expectStatus(where, image)
    const { status, bytes } = await push(where, { ...image, body: mutate(random, image.body) })
    if (![201, 400, 415].includes(status)) throw new Error(`${status}: ${bytes}`)
  },
}
