// The server that the calls of the reference are made at, with what no call can make: images, people and a sink.
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from '#db/sql.ts'
import { sequenceLedgers } from '#domains/ledger/ledger.job.ts'
import { readImages } from '#domains/registry/images/read-images.job.ts'
import { indexNames } from '#domains/search/index-names.job.ts'
import { signAccessToken } from '#issuer/access-token.ts'
import { startWorkers } from '#workers.ts'
import { runJob } from '../support/background-jobs.ts'
import { startClouds } from '../support/fake-clouds.ts'
import { startIssuer } from '../support/fake-issuer.ts'
import { allRead, alpine, pushLayers, pushSbom } from '../support/images.ts'
import { type Json, roleUids } from '../support/pinfold.ts'
import { localSinks, startReceiver } from '../support/receiver.ts'
import { startRegistry } from '../support/registry.ts'

export type World = Awaited<ReturnType<typeof startWorld>>
export type Who = 'operator' | 'person' | 'outsider' | 'visitor' | 'newcomer' | 'newcomer1'

const audience = 'client-id-of-pinfold'
const sbom = JSON.stringify({
  spdxVersion: 'SPDX-2.3',
  SPDXID: 'SPDXRef-DOCUMENT',
  name: 'app',
  creationInfo: { created: '2026-01-02T03:04:05Z', creators: ['Tool: maker-1.0'] },
  packages: [{ SPDXID: 'SPDXRef-a', name: 'musl', versionInfo: '1.2.3-r0', licenseDeclared: 'MIT' }],
  relationships: [
    { spdxElementId: 'SPDXRef-DOCUMENT', relatedSpdxElement: 'SPDXRef-a', relationshipType: 'DESCRIBES' },
  ],
})

/** `overrides` are settings of the server, and the jobs that it runs. */
export async function startWorld(overrides: Parameters<typeof startRegistry>[0] = {}) {
  const stack = new AsyncDisposableStack()
  const clouds = stack.use(await startClouds())
  const issuer = stack.use(await startIssuer())
  const receiver = stack.use(await startReceiver())
  const registry = stack.use(
    await startRegistry({
      ...localSinks,
      allowInsecureIssuers: true,
      allowPrivateAddresses: true,
      oidcProviders: [{ issuer: issuer.url, audience }],
      termsDocuments: [{ id: 'terms-of-service.v1', label: 'Terms of service', url: 'https://example.com/terms' }],
      awsStsUrl: clouds.url,
      googleStsUrl: clouds.url,
      googleIamUrl: clouds.url,
      azureLoginUrl: clouds.url,
      ...overrides,
    }),
  )
  const reader = await startWorkers(registry.app, { jobs: [readImages] })
  stack.defer(() => reader.close())
  // The DNS record of each email domain exists.
  registry.app.dns.resolveTxt = async () => {
    const rows = await registry.app.db.all<{ token: string }>(sql`SELECT token FROM email_domains`)
    return rows.map(({ token }) => [`pinfold-verification=${token}`])
  }
  const { seed, operator, pusher } = registry
  const org = registry.org.uid as string
  const app = await seed.repo(org, { name: 'app' })
  const older = await pushLayers(pusher, 'acme/app', [alpine('alpine-3.10')], 'latest')
  const image = await pushLayers(pusher, 'acme/app', [alpine('alpine-3.10'), { 'etc/motd': 'hello' }], 'latest')
  await pushSbom(pusher, 'acme/app', image, sbom)
  await allRead(registry)
  const person = await seed.person({ name: 'ada' })
  const builder = await seed.identity(org, { claimMatch: { issuer: issuer.url, subject: 'repo:acme/app' } })
  // Roles that the operator binds need no consent. Terms are accepted for a whole organization.
  const partners = await seed.group('', { name: 'partners' })
  for (const group of [org, partners.uid]) {
    const owner = await registry.as((await seed.member(group, roleUids.owner)).uid)
    const binding = { identityUid: person.uid, roleUid: roleUids.viewer }
    const { status, text } = await owner.post(`/iam/v2/roleBindings/${group}`, binding)
    assert.equal(status, 200, text)
  }

  // People with an address of this domain can ask for access.
  const company = await seed.group('', { name: 'acme.example', verified: true, kind: 'ORG_KIND_CUSTOMER' })
  const newcomers = { newcomer: await seed.person({ name: 'grace' }), newcomer1: await seed.person({ name: 'alan' }) }
  const newcomer = (who: keyof typeof newcomers) => {
    const email = `${who}@acme.example`
    const claims = { email, email_verified: true, upstream: { email, name: who, picture: '' } }
    const session = { uid: '', organization: '', authTime: 0 }
    const subject = newcomers[who].uid
    const { url: audience, app: server } = registry
    const now = server.clock()
    return signAccessToken(server.keyring, { issuer: audience, audience, subject, now, claims, session })
  }

  // Switching SCIM on takes two.
  await seed.member(org, roleUids.owner)

  const get = async (path: string): Promise<Json> => {
    const { status, body, text } = await operator.get(path)
    assert.equal(status, 200, text)
    return body
  }
  const pending = async () => {
    const client = await registry.as(person.uid)
    const { body } = await client.get('/control/v1/pendingBindings')
    return body.pendingBindings[0].uid as string
  }
  const delivery = async () => {
    await pusher.pushImage('acme/app', 'pushed')
    for (let tries = 0; tries < 100; tries++) {
      const { deliveries } = await get(`/events/v2/subscriptions/${saved.subscription!.uid}/deliveries`)
      if (deliveries[0]?.state === 'DELIVERED') return deliveries[0].uid as string
      await sleep(50)
    }
    throw new Error('nothing was delivered')
  }
  const request = async () => (await get(`/control/v1/accessRequests/${company.uid}`)).accessRequests[0].uid as string
  const saved: Record<string, Json> = {}
  /** Values that are looked up or created for the first call that needs them. */
  const sources: Record<string, () => Promise<string> | string> = {
    org: () => org,
    app: () => app.uid,
    digest: () => image.digest,
    older: () => older.digest,
    viewer: () => roleUids.viewer,
    person: () => person.uid,
    issuer: () => issuer.url,
    url: () => registry.url,
    builder: () => builder.uid,
    yearAhead: () => new Date(Date.now() + 365 * 86_400_000).toISOString(),
    weekAhead: () => new Date(Date.now() + 7 * 86_400_000).toISOString(),
    dayAgo: () => new Date(Date.now() - 86_400_000).toISOString(),
    pending,
    // Once the first is accepted.
    pending2: pending,
    delivery,
    company: () => company.uid,
    request,
    // Once the first is answered.
    request2: request,
    pushToken1: () => saved.pushToken!.pushToken.uid,
    pushToken2: async () => (await operator.post(`/control/v1/pushTokens/${org}`, { name: 'cron' })).body.pushToken.uid,
    advisory: async () => (await get('/vulnerabilities/v2/advisories')).advisories[0].uid,
    artifact: async () => (await get('/libraries/v2/artifacts?ecosystems=ECOSYSTEM_PYTHON')).artifacts[0].uid,
    auditEntry: async () => saved.audit!.auditEntries[0].uid,
    invite2: async () => (await seed.invite(org, roleUids.viewer)).uid,
    mapping2: async () => (await seed.mapping(saved.provider!.uid, saved.role!.uid)).uid,
    mapping3: async () => (await seed.mapping(saved.provider1!.id, saved.role!.uid)).uid,
  }
  const found: Record<string, string> = {}

  return {
    pinfold: registry,
    saved,
    /** Stops the reading of pushed images. */
    stopReading: () => reader.close(),
    async find(path: string): Promise<string> {
      const [name, member] = path.split('.') as [string, string?]
      const answer = saved[name]
      if (answer) return answer[member ?? ('uid' in answer ? 'uid' : 'id')] as string
      found[name] ??= await sources[name]!()
      return found[name]
    },
    async tokenOf(who: Who): Promise<string | undefined> {
      if (who === 'operator') return operator.token
      if (who === 'person') return registry.tokenFor(person.uid)
      if (who === 'newcomer' || who === 'newcomer1') return newcomer(who)
      if (who === 'visitor') return issuer.token({ sub: 'visitor', aud: audience })
      return issuer.token({ sub: 'repo:acme/app', aud: registry.url })
    },
    /** Nothing is sent to the sink that the examples name. */
    async done(method: string, response: Json): Promise<void> {
      if (/Subscriptions(?:Service)?\/Create/.test(method))
        await registry.point(response.uid ?? response.id, receiver.url)
      // There is a log then that can get another key.
      if (/LedgersService\/ResumeLedgerLogs/.test(method)) await runJob(registry.app, sequenceLedgers)
      if (/ReposService\/CreateRepo/.test(method)) await runJob(registry.app, indexNames)
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}
