// Receiver of webhooks made with the CloudEvents SDK for Go, which gets deliveries of a real server. The program is built from
// the folder `cloud-events` and must be on the PATH.
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { startIssuer } from '../support/fake-issuer.ts'
import { type Json, roleUids } from '../support/pinfold.ts'
import { startRegistry } from '../support/registry.ts'

let passed = 0
let failed = 0

function expect(name: string, ok: boolean, seen: unknown): void {
  if (ok) passed++
  else failed++
  console.log(`${ok ? 'ok  ' : 'FAIL'} ${name}${ok ? '' : `\n${JSON.stringify(seen, null, 1)}`}`)
}

const receiver = spawn('cloud-events', { stdio: ['ignore', 'pipe', 'inherit'] })
const lines = createInterface({ input: receiver.stdout })[Symbol.asyncIterator]()
const sink = (await lines.next()).value as string
const seen: Json[] = []
const groupMade = 'dev.pinfold.api.iam.group.created.v1'

/** Waits for an event that matches, in any order of events. Fails the run after two minutes. */
async function until(type: string, source = ''): Promise<void> {
  const isIt = ({ Type, Source }: Json) => Type === type && String(Source).endsWith(source)
  const late = setTimeout(() => {
    console.log(`no ${type} of ${source || 'anybody'} has come: ${JSON.stringify(seen)}`)
    process.exit(1)
  }, 120_000)
  while (!seen.some(isIt)) seen.push(JSON.parse((await lines.next()).value as string) as Json)
  clearTimeout(late)
}

const issuer = await startIssuer()
const outside = { allowInsecureSinks: true, allowInsecureIssuers: true, allowPrivateAddresses: true }
const registry = await startRegistry({ deliver: true, ...outside })
try {
  const { operator, org, seed, url, pusher, puller } = registry
  await operator.post(`/events/v2/subscriptions/${org.uid}`, { sink })
  const identity = await seed.identity(org.uid, { claimMatch: { issuer: issuer.url, subject: 'job 1: "ü"' } })
  await seed.binding(org.uid, identity.uid, roleUids.owner)
  const token = await issuer.token({ sub: 'job 1: "ü"', aud: [url, 'other'] })
  const parameters = new URLSearchParams({ aud: url, identity: identity.uid })
  const exchanged = await registry.withToken(token).call('POST', `/sts/exchange?${parameters}`)
  const job = registry.withToken(exchanged.body.token as string)
  for (const version of ['v1', 'v2']) await job.post(`/iam/${version}/groups/${org.uid}`, { name: `team ${version}` })
  await pusher.pushImage('acme/app', 'v1')
  await puller.ok(200, 'GET', 'acme/app/manifests/v1')
  await registry.app.registryEvents.flush()
  await until('dev.pinfold.registry.push.v1')
  await until('dev.pinfold.registry.pull.v1')
  for (const version of ['v1', 'v2']) await until(groupMade, `/iam/${version}/groups`)

  for (const one of seen) expect(`the SDK takes ${one.Type} of ${one.Source}`, one.Wrong === '', one)
  const host = new URL(url).host
  const ofRegistry = seen.filter(({ Type }) => String(Type).includes('.registry.p'))
  expect(
    'events of the registry come from its host',
    ofRegistry.every(({ Source }) => Source === `//${host}`),
    ofRegistry,
  )
  const groups = seen.filter(({ Type }) => Type === groupMade)
  const act = { iss: issuer.url, sub: 'job 1: "ü"', aud: url }
  for (const [i, version] of ['v1', 'v2'].entries()) {
    const one = groups.find(({ Source }) => Source === `${url}/iam/${version}/groups`)
    expect(
      `a group made over ${version} tells by which token`,
      JSON.stringify(one?.Actor?.act ?? {}) === order(act),
      one,
    )
    expect(`and has its extensions (${i})`, one?.Extensions?.group === one?.Subject, one)
  }
} finally {
  receiver.kill()
  await registry[Symbol.asyncDispose]()
  await issuer[Symbol.asyncDispose]()
}

/** Go sorts the keys of a map when it writes JSON. */
function order(of: Record<string, string>): string {
  return JSON.stringify(Object.fromEntries(Object.entries(of).sort(([a], [b]) => (a < b ? -1 : 1))))
}

console.log(`${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1
