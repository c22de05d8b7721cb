// Server whose costs are measured. It has a separate process, so its event loop and heap have no other work. It first runs the
// calls of the reference, so that requests find resources. The parent process sends commands as messages.

import { openApi } from '#api/entry-point.ts'
import { buildEndpoints } from '#api/methods.ts'
import { openEntryPoints } from '#api/server.ts'
import { services } from '#api/services.ts'
import { createEdge } from '#edge/arrival.ts'
import { newKeyPair, noteKey } from '#lib/tlog/notes.ts'
import { jobs } from '#workers.ts'
import { type Call, changes, deletions, reads } from '../../reference/calls.ts'
import { filled, run } from '../../reference/run-calls.ts'
import { startWorld, type World } from '../../reference/world.ts'
import { type Json, roleUids } from '../pinfold.ts'
import { groupSchema, scimClient, userSchema } from '../scim.ts'
import { localUpstreams } from '../upstream.ts'
import { noteHandlers } from './handled.ts'
import { type Cost, createMonitor } from './monitor.ts'

/** Call of the reference with the uids of this server. `token` belongs to the caller of the call. */
export type PlayedCall = { method: string; request: Json; token: string | undefined }

/** Data of the server that requests need. */
export type Facts = {
  port: number
  host: string
  url: string
  calls: PlayedCall[]
  /** Methods that each entry point declares for the metrics. */
  doors: { transport: string; methods: readonly string[] }[]
  /** Bearer tokens for the API. */
  tokens: { operator: string; owner: string; stranger: string }
  /** Bearer tokens for the registry. */
  registryTokens: { operator: string; stranger: string }
  /** Cookie of the operator's console session. */
  cookie: string
  /** SCIM endpoint of an identity provider, with the ids of a user and of a group. */
  scim: { path: string; token: string; user: string; group: string }
  /** Path of an unfinished upload. */
  upload: string
  organization: string
  /** Repository with images: its uid, two digests, and the size of the first image. */
  repo: { uid: string; name: string; digests: string[]; size: number }
  /** Digest of a blob of two bytes in that repository. */
  blob: string
}

export type Command = { type: 'begin'; exact: boolean } | { type: 'end' } | { type: 'reached' }
export type Report =
  | { type: 'facts'; facts: Facts }
  | { type: 'begun' }
  | { type: 'cost'; cost: Cost; handled: string[] }
  | { type: 'reached'; requests: { transport: string; method: string; code: string }[] }

const tell = (report: Report): void => void process.send!(report)

/** Replaces the upstream of the reference by a port of this machine on which nothing listens. */
function withUpstream([method, template, ...rest]: Call): Call {
  const text = JSON.stringify(template).replaceAll('https://registry.example.com', 'https://127.0.0.1:1')
  return [method, JSON.parse(text), ...rest]
}

async function play(world: World): Promise<PlayedCall[]> {
  const played: PlayedCall[] = []
  const note = async ([method, template, , caller]: Call): Promise<void> => {
    const request = (await filled(world, template)) as Json
    played.push({ method, request, token: await world.tokenOf(caller ?? 'operator') })
  }
  for (const call of [...changes, ...reads].map(withUpstream)) {
    await note(call)
    await run(world, call, {})
  }
  // Deletions are only recorded here, since the test sends them. If a deletion needs a resource that only an earlier one creates,
  // its request is empty.
  for (const call of deletions) {
    await note(call).catch(() => played.push({ method: call[0], request: {}, token: undefined }))
  }
  return played
}

async function openScim(world: World): Promise<Facts['scim']> {
  const { operator, org, seed } = world.pinfold
  const issuer = await world.find('issuer')
  const provider = await seed.provider(org.uid, issuer, { name: 'provisioned' })
  const path = `/iam/v2/identityProviders/${provider.uid}`
  const { body } = await operator.post(`${path}:generateScimToken`, {})
  await operator.post(`${path}:setScimEnabled`, { enabled: true, etag: body.etag })
  const client = scimClient(body.endpointUrl, body.token)
  const made = await client.post('/Users', { schemas: [userSchema], userName: 'ada' })
  const user = made.body.id as string
  const team = await client.post('/Groups', { schemas: [groupSchema], displayName: 'team', members: [{ value: user }] })
  return { path: new URL(body.endpointUrl).pathname, token: body.token, user, group: team.body.id as string }
}

async function cookieOf({ pinfold }: World): Promise<string> {
  const { body } = await pinfold.operator.post('/control/v1/consoleCodes')
  const answer = await fetch(`${pinfold.url}/ui/enter`, {
    method: 'POST',
    redirect: 'manual',
    headers: { 'content-type': 'application/x-www-form-urlencoded', origin: pinfold.url },
    body: new URLSearchParams({ code: body.code }),
  })
  const cookie = answer.headers.getSetCookie().find((one) => one.startsWith('pinfold='))
  if (cookie === undefined) throw new Error(`no session: ${answer.status} ${await answer.text()}`)
  return cookie.split(';')[0]!
}

async function factsOf(world: World): Promise<Facts> {
  const { pinfold } = world
  const { app, url, org, seed } = pinfold
  const endpoints = buildEndpoints(services)
  const doors = openEntryPoints(openApi(createEdge(app, url), endpoints), endpoints)
  const scim = await openScim(world)
  const cookie = await cookieOf(world)
  const calls = await play(world)
  const { host } = new URL(url)
  const digest = await world.find('digest')
  const head = await pinfold.registryOperator.ok(200, 'HEAD', `acme/app/manifests/${digest}`)
  const begun = await pinfold.registryOperator.ok(202, 'POST', 'acme/app/blobs/uploads/')
  const owner = await seed.member(org.uid, roleUids.owner)
  const stranger = await seed.identity(org.uid)
  const of = (uid: string, audience: string) => pinfold.tokenFor(uid, { audience, lifetime: 24 * 60 * 60 })
  return {
    ...{ port: pinfold.port, host, url, calls, scim, cookie, organization: org.uid },
    blob: (await pinfold.registryOperator.pushBlob('acme/app', '{}')).digest,
    upload: new URL(String(begun.headers.location), url).pathname,
    doors: doors.map(({ name, methods }) => ({ transport: name, methods })),
    tokens: {
      operator: pinfold.operator.token!,
      owner: await of(owner.uid, url),
      stranger: await of(stranger.uid, url),
    },
    registryTokens: {
      operator: pinfold.registryOperator.token!,
      stranger: await of(stranger.uid, host),
    },
    repo: {
      uid: await world.find('app'),
      name: 'acme/app',
      digests: [digest, await world.find('older')],
      size: Number(head.headers['content-length']),
    },
  }
}

const log = noteKey('log.example.com', 'log', newKeyPair().publicKey)
/** Budgets for main-thread time would refuse the measured requests. The value 100 percent disables them. */
const noBudgets = { budgetCallerPercent: 100, budgetOrganizationPercent: 100 }
const handledSince = noteHandlers()
const world = await startWorld({
  ...noBudgets,
  ...localUpstreams,
  witnessLogs: [log],
  transparencyLog: 'public',
  securityContact: 'mailto:security@example.com',
  jobs: jobs.filter(({ name }) => !name.startsWith('images.')),
})
// Rate limits would refuse requests before the work that is measured.
Object.assign(world.pinfold.app.limits, { check() {}, look() {} })
const monitor = createMonitor()
process.on('message', (command: Command) => {
  if (command.type === 'begin') {
    handledSince()
    monitor.begin(command)
    tell({ type: 'begun' })
  } else if (command.type === 'end') {
    void monitor.end().then((cost) => tell({ type: 'cost', cost, handled: handledSince() }))
  } else {
    void reached().then((requests) => tell({ type: 'reached', requests }))
  }
})
process.once('disconnect', () => process.exit())
const facts = await factsOf(world)
// Reading a large pushed image between two requests would count as memory of the second one.
await world.stopReading()
tell({ type: 'facts', facts })

async function reached() {
  const found = await world.pinfold.app.metrics.registry.getSingleMetric('pinfold_request_duration_seconds')!.get()
  return found.values
    .filter((value) => (value as { metricName?: string }).metricName?.endsWith('_count'))
    .map(({ labels }) => labels as { transport: string; method: string; code: string })
}
