// Repository with images that have the same packages, and signed statements about their vulnerabilities.
import { readReports } from '#domains/scanning/signers/read-reports.job.ts'
import { envelopeOf, type Keys, pemOf, pushAttestations, statementAbout } from './attest.ts'
import { runJob } from './background-jobs.ts'
import { ok } from './expect.ts'
import { type Client, type Json, roleUids } from './pinfold.ts'
import { type RegistryClient, startRegistry, type TestRegistry } from './registry.ts'
import { apkLayer, pushAndScan, readSource, recordAbout } from './scanning.ts'

export const zlib = 'pkg:apk/alpine/zlib@1.2.11-r0'
export const openssl = 'pkg:apk/alpine/openssl@3.1.0-r0'
/** Vulnerabilities of each image: one in zlib, two in openssl. */
export const all = ['CVE-2026-1', 'CVE-2026-2', 'CVE-2026-3']
export const without = (...names: string[]): string[] => all.filter((one) => !names.includes(one))

export const said = (name: string, status: string, products: readonly string[], more: Json = {}): Json => ({
  ...{ vulnerability: { name }, status, products: products.map((id) => ({ '@id': id })), ...more },
})
export const vex = (statements: readonly Json[], timestamp = '2026-02-01T00:00:00Z'): Json => ({
  ...{ '@context': 'https://openvex.dev/ns/v0.2.0', author: 'Acme', timestamp, version: 1, statements },
})

export class SignedImages {
  readonly registry: TestRegistry
  readonly repo: string
  owner!: Client
  pusher!: RegistryClient
  readonly #clock: { now: Date }
  readonly ownerUid: string

  constructor(registry: TestRegistry, repo: string, clock: { now: Date }, ownerUid: string) {
    this.registry = registry
    this.repo = repo
    this.#clock = clock
    this.ownerUid = ownerUid
  }

  async moveTo(time: string): Promise<void> {
    this.#clock.now = new Date(time)
    this.owner = await this.registry.as(this.ownerUid)
    this.pusher = await this.registry.registryAs(this.ownerUid)
  }

  image(name: string, tag?: string): Promise<string> {
    const layer = { ...apkLayer('alpine', '3.19.1', ['zlib 1.2.11-r0', 'openssl 3.1.0-r0']), 'etc/name': name }
    return pushAndScan(this.registry, 'acme/app', layer, tag)
  }

  readAll = () => runJob(this.registry.app, readReports)
  at = (digest: string): string => `/registry/v2/repos/${this.repo}/digests/${digest}`

  /** Vulnerabilities of an image that no statement hides. */
  async counted(digest: string): Promise<string[]> {
    const { items } = ok(await this.owner.get(`/registry/v1/vuln_reports?digest=${digest}`))
    return items[0].vulnerabilities.map(({ id }: Json) => id).sort()
  }

  /** The newest first. */
  async reportsOf(digest: string): Promise<Json[]> {
    return ok(await this.owner.get(`${this.at(digest)}/scanReports`)).reports
  }

  trust(keys: Keys, more: Json = {}, scope = this.repo, client = this.owner) {
    return client.post(`/registry/v2/vexSigners/${scope}`, {
      ...{ name: 'Acme security', publicKey: pemOf(keys), reason: 'they build it' },
      ...{ expireTime: new Date(this.#clock.now.getTime() + 30 * 86_400_000).toISOString(), ...more },
    })
  }

  /** Trusts a signer. The server then reads the existing documents again. */
  async trusted(keys: Keys, more: Json = {}, scope = this.repo): Promise<Json> {
    const made = ok(await this.trust(keys, more, scope))
    await this.readAll()
    return made
  }

  /** Pushes a signed document in the form of an attestation. The server does not read it yet. */
  push(digest: string, keys: Keys, document: Json, predicateType?: string): Promise<string> {
    const envelope = envelopeOf(statementAbout(digest, document, predicateType), [keys])
    return pushAttestations(this.pusher, 'acme/app', digest, [envelope], predicateType)
  }

  /** Pushes a signed OpenVEX document, and waits until the server has read it. */
  async says(digest: string, keys: Keys, statements: readonly Json[], time?: string): Promise<void> {
    await this.push(digest, keys, vex(statements, time))
    await this.readAll()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.registry[Symbol.asyncDispose]()
  }
}

export async function startSignedImages(settings: Parameters<typeof startRegistry>[0] = {}): Promise<SignedImages> {
  const clock = { now: new Date('2026-03-01T08:00:00Z') }
  const registry = await startRegistry({ clock: () => clock.now, ...settings })
  const repo = (await registry.seed.repo(registry.org.uid, { name: 'app' })).uid
  const owner = (await registry.seed.member(registry.org.uid, roleUids.owner)).uid
  const images = new SignedImages(registry, repo, clock, owner)
  await images.moveTo(clock.now.toISOString())
  await images.image('first')
  await readSource(registry.app, 'Alpine:v3.19', [
    recordAbout('CVE-2026-1', 'Alpine:v3.19', 'zlib', '1.2.13-r0'),
    recordAbout('CVE-2026-2', 'Alpine:v3.19', 'openssl', ''),
    recordAbout('ALPINE-3', 'Alpine:v3.19', 'openssl', '', { aliases: ['CVE-2026-3'] }),
  ])
  return images
}
