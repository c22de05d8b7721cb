// Selection among several SBOMs of an image: some are read, and the others are reported as a coverage gap.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { readImages } from '#domains/registry/images/read-images.job.ts'
import { envelopeOf, keysOf, statementAbout } from '../support/attest.ts'
import { runJob } from '../support/background-jobs.ts'
import { pushLayers, pushSbom } from '../support/images.ts'
import type { Json } from '../support/pinfold.ts'
import { type Descriptor, imageOf, startRegistry, type TestRegistry, types } from '../support/registry.ts'

let registry: TestRegistry
const repo = 'acme/app'

before(async () => {
  registry = await startRegistry()
  await registry.seed.repo(registry.org.uid, { name: 'app' })
})
after(() => registry[Symbol.asyncDispose]())

const cyclone = 'application/vnd.cyclonedx+json'
const inToto = 'application/vnd.in-toto+json'
const dsse = 'application/vnd.dsse.envelope.v1+json'
const keys = keysOf.ecdsa!()
const bom = (name: string, purl = `pkg:npm/${name}@1.0.0`): Json => ({
  ...{ bomFormat: 'CycloneDX', specVersion: '1.6' },
  components: [{ type: 'library', name, purl }],
})
const provenance = (digest: string, run: number) => statementAbout(digest, { run }, 'https://slsa.dev/provenance/v1')

let images = 0
const newImage = (): Promise<Descriptor> =>
  pushLayers(registry.pusher, repo, [
    {
      'etc/os-release': 'ID=debian\nVERSION_ID=12\n',
      'var/lib/dpkg/status': 'Package: a\nVersion: 1\n',
      n: `${images++}`,
    },
  ])

/** Pushes a manifest that refers to the image. */
async function refer(subject: Descriptor, artifactType: string, layers: readonly [document: Json, type: string][]) {
  const config = await registry.pusher.pushBlob(repo, '{}', types.empty)
  const pushed: Descriptor[] = []
  for (const [document, type] of layers) {
    pushed.push(await registry.pusher.pushBlob(repo, JSON.stringify(document), type))
  }
  await registry.pusher.pushManifest(repo, imageOf(config, pushed, { artifactType, subject }))
}

async function read({ digest }: Descriptor): Promise<{ names: string[]; gaps: string[] }> {
  await runJob(registry.app, readImages)
  const row = await registry.app.db.get<{ packages: string; gaps: string }>(
    sql`SELECT p.packages, c.gaps FROM image_contents c JOIN package_lists p ON p.hash = c.packages
         WHERE c.digest = ${digest}`,
  )
  const names = (JSON.parse(row!.packages) as string[][]).map(([, name]) => name!)
  return { names, gaps: (JSON.parse(row!.gaps) as Json[]).map(({ message }) => String(message)) }
}

test('reads each SBOM among the layers of a manifest', async () => {
  const [two, mixed, unnamed] = [await newImage(), await newImage(), await newImage()]
  await refer(two, cyclone, [
    [bom('left'), cyclone],
    [bom('right'), cyclone],
  ])
  await refer(mixed, cyclone, [
    [bom('left'), cyclone],
    [provenance(mixed.digest, 0), inToto],
  ])
  await refer(unnamed, cyclone, [
    [bom('left'), 'application/json'],
    [provenance(unnamed.digest, 0), inToto],
  ])
  assert.deepEqual(await read(two), { names: ['a', 'left', 'right'], gaps: [] })
  assert.deepEqual(await read(mixed), { names: ['a', 'left'], gaps: [] })
  assert.deepEqual(await read(unnamed), { names: ['a', 'left'], gaps: [] })
})

test('reports a coverage gap if too many newer attestations precede an SBOM', async () => {
  const gaps = ['some attestations were not read: the image has too many referrers']
  const [plain, sealed] = [await newImage(), await newImage()]
  await refer(plain, cyclone, [[bom('left'), cyclone]])
  for (let run = 0; run < 10; run++) await refer(plain, inToto, [[provenance(plain.digest, run), inToto]])
  assert.deepEqual(await read(plain), { names: ['a'], gaps })

  const envelope = (statement: Json) => envelopeOf(statement, [keys])
  await refer(sealed, dsse, [[envelope(statementAbout(sealed.digest, bom('left'), 'https://cyclonedx.org/bom')), dsse]])
  for (let run = 0; run < 10; run++) await refer(sealed, dsse, [[envelope(provenance(sealed.digest, run)), dsse]])
  assert.deepEqual(await read(sealed), { names: ['a'], gaps })
})

test('reports no coverage gap for SBOMs older than the newest SBOM with packages', async () => {
  const image = await newImage()
  for (let i = 0; i < 12; i++) await refer(image, cyclone, [[bom(`n${i}`), cyclone]])
  assert.deepEqual(await read(image), { names: ['a', 'n11'], gaps: [] })
})

test('reports a coverage gap for packages of another distribution in an SBOM', async () => {
  const [image, same] = [await newImage(), await newImage()]
  const ubuntu = bom('openssl', 'pkg:deb/ubuntu/openssl@3.0.2-0ubuntu1.1?distro=ubuntu-22.04')
  await pushSbom(registry.pusher, repo, image, JSON.stringify(ubuntu), cyclone)
  assert.deepEqual(await read(image), {
    names: ['a'],
    gaps: ['not compared with the advisories of debian 12: 1 package of ubuntu 22.04 in an SBOM'],
  })
  const debian = bom('openssl', 'pkg:deb/debian/openssl@3.0.11-1')
  await pushSbom(registry.pusher, repo, same, JSON.stringify(debian), cyclone)
  assert.deepEqual(await read(same), { names: ['a', 'openssl'], gaps: [] })
})
