// Content of a recorded server: the demo, and an example of every change that users have made since. A real server makes all of
// it, through its public interfaces.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startIssuer } from '../support/fake-issuer.ts'
import { fixture } from '../support/fixtures.ts'
import { type Client, clientOf, type Json, roleUids } from '../support/pinfold.ts'
import { type Env, project, run, startProcess, type TestStorage, tokenOf } from '../support/process.ts'
import { startReceiver } from '../support/receiver.ts'
import { type RegistryClient, registryClient } from '../support/registry.ts'
import { pushEverything } from './images.ts'

const listen = '127.0.0.1:27610'
const issuerPort = 27611
const audience = 'client-id-of-pinfold'

/** URL and trusted issuers of the recorded server. A server that opens a copy needs the same. */
export const settings: Env = {
  PINFOLD_URL: `http://${listen}`,
  PINFOLD_OIDC_PROVIDERS: JSON.stringify([{ issuer: `http://127.0.0.1:${issuerPort}`, audience }]),
  PINFOLD_ALLOW_PRIVATE_ADDRESSES: 'on',
  PINFOLD_ALLOW_INSECURE_ISSUERS: 'on',
  PINFOLD_ALLOW_INSECURE_SINKS: 'on',
  PINFOLD_TERMS_DOCUMENTS: JSON.stringify([
    { id: 'terms-of-service.v1', label: 'Terms of service', url: 'https://example.com/terms' },
    { id: 'privacy.v2', label: 'Privacy', url: 'https://example.com/privacy' },
  ]),
}

/** Callers of the questions, by uid, and their credentials. */
export type People = {
  callers: Record<string, string>
  person: { issuer: string; subject: string; audience: string }
  pullToken: { user: string; password: string }
  /** The path of an upload that was not finished. */
  upload: string
}

/** A recorded server while it is filled: the operator's client, and a way to be somebody else. */
type Scene = {
  storage: TestStorage
  api: Client
  as(identity: string): Promise<Client>
  registryAs(identity?: string): Promise<RegistryClient>
  uid: Record<string, string>
}

/** Fills the storage. No server runs afterwards. */
export async function fill(storage: TestStorage): Promise<People> {
  await using issuer = await startIssuer('RS256', '', issuerPort)
  await using sink = await startReceiver(({ json }) =>
    json.body.description === 'refused' ? { status: 400 } : undefined,
  )
  const people = await inStint(storage, { PINFOLD_DELIVERY_GIVE_UP_MS: '1' }, ['--demo'], async (scene) => {
    await shareAccess(scene)
    const person = await register(scene, issuer)
    await describeTheRest(scene, issuer.url)
    await deliver(scene, sink.url)
    return { callers: callersOf(scene, person.uid), person: { issuer: issuer.url, subject: person.subject, audience } }
  })
  sink.answer(() => ({ status: 500 }))
  return inStint(storage, { PINFOLD_DELIVERY_RETRY_MIN_MS: '3600000' }, [], async (scene) => {
    await keepWaiting(scene, sink.url)
    const pullToken = await makePullToken(scene)
    await importAll(scene)
    const pusher = await scene.registryAs(scene.uid['ledger releases'])
    await made(scene.api, 'POST', '/control/v1/quotas:set', {
      organization: scene.uid.acme,
      limits: [{ name: 'uploads', limit: '5000' }],
    })
    const upload = await pushEverything(scene.api, pusher, await scene.registryAs(), scene.uid)
    await copyRepo(scene)
    // Images are read in the background, and events sent; nothing says when all is done.
    await sleep(3000)
    const callers = { ...people.callers, 'pull token': pullToken.user }
    return { ...people, callers, pullToken, upload }
  })
}

/** One run of the server, from its start to its end. */
async function inStint<T>(
  storage: TestStorage,
  env: Env,
  args: readonly string[],
  work: (scene: Scene) => Promise<T>,
): Promise<T> {
  await using server = await startProcess(storage, { listen, args, env: { ...settings, ...env } })
  const tokenFor = (...more: string[]) => tokenOf({ ...storage, env: { ...storage.env, ...settings } }, more)
  const api = clientOf(server.url, await tokenFor())
  const result = await work({
    storage,
    api,
    as: async (identity) => clientOf(server.url, await tokenFor('--identity', identity)),
    registryAs: async (identity) =>
      registryClient(
        server.url,
        await tokenFor('--audience', 'registry', ...(identity ? ['--identity', identity] : [])),
      ),
    uid: await uidsOf(api),
  })
  server.kill('SIGTERM')
  const { code } = await server.exited
  if (code !== 0) throw new Error(`the server ended with ${code}: ${server.output.stderr}`)
  return result
}

/** The uids of the demo by name: groups, repos as `payments/jdk`, identities and roles. */
async function uidsOf(api: Client): Promise<Record<string, string>> {
  const uid: Record<string, string> = {}
  const names = new Map<string, string>()
  for (const [path, plural] of [
    ['/iam/v2/groups', 'groups'],
    ['/iam/v2/identities', 'identities'],
    ['/iam/v2/roles', 'roles'],
    ['/registry/v2/repos', 'repos'],
  ] as const) {
    const { body } = await api.get(`${path}?page_size=200&order_by=uid`)
    for (const one of body[plural] as Json[]) {
      if (plural === 'groups') names.set(one.uid, one.name)
      const parent = names.get(one.uid.slice(0, one.uid.lastIndexOf('/')))
      uid[plural === 'repos' ? `${parent}/${one.name}` : one.name] = one.uid
    }
  }
  return uid
}

async function made(client: Client, method: 'POST' | 'PATCH' | 'DELETE', path: string, body?: Json): Promise<Json> {
  const answer = await client.call(method, path, method === 'DELETE' ? undefined : (body ?? {}))
  if (answer.status !== 200) throw new Error(`${method} ${path} answered ${answer.status} ${answer.text}`)
  return answer.body
}

/** A role of its own, and bindings of one identity at several levels. */
async function shareAccess({ api, as, uid }: Scene): Promise<void> {
  const owner = await as(uid['admin pipeline']!)
  const capabilities = ['CAP_REPO_LIST', 'CAP_TAG_LIST', 'CAP_TAG_UPDATE', 'CAP_TAG_CREATE']
  const role = await made(owner, 'POST', `/iam/v2/roles/${uid.payments}`, { name: 'tag mover', capabilities })
  await made(owner, 'PATCH', `/iam/v2/roles/${role.uid}`, { description: 'Moves tags' })
  const claimMatch = { issuer: 'https://token.actions.githubusercontent.com', subject: 'repo:acme/rover' }
  const rover = await made(owner, 'POST', `/iam/v2/identities/${uid.acme}`, { name: 'rover', claimMatch })
  uid.rover = rover.uid
  for (const [group, roleUid] of [
    [uid.acme, roleUids.viewer],
    [uid.payments, role.uid],
    [uid.bases, roleUids.owner],
    [uid.web, roleUids.pull],
  ]) {
    await made(owner, 'POST', `/iam/v2/roleBindings/${group}`, { identityUid: rover.uid, roleUid })
  }
  const once = await made(owner, 'POST', `/iam/v2/roleBindings/${uid.data}`, {
    identityUid: rover.uid,
    roleUid: roleUids.push,
  })
  await made(owner, 'PATCH', `/iam/v2/roleBindings/${once.uid}`, { roleUid: roleUids.editor })
  await made(api, 'DELETE', `/iam/v2/roleBindings/${once.uid}`)
}

/** Creates two invitations. Jane registers with the first, and nobody has used the second. */
async function register({ api, uid }: Scene, issuer: Awaited<ReturnType<typeof startIssuer>>) {
  const invite = (group: string, roleUid: string, more: Json = {}) =>
    made(api, 'POST', `/iam/v2/groupInvites/${group}`, { roleUid, ttl: '86400s', ...more })
  const { code } = await invite(uid.payments!, roleUids.editor, { email: 'jane@example.com' })
  await invite(uid.web!, roleUids.viewer, { email: 'joe@example.com', singleUse: true })
  const subject = 'person-jane'
  const claims = { sub: subject, aud: audience, name: 'Jane Doe', email: 'Jane@example.com', email_verified: true }
  const client = clientOf(settings.PINFOLD_URL!, await issuer.token(claims))
  const { identity } = await made(client, 'POST', '/auth/v1/register', { code })
  return { subject, uid: identity as string }
}

/** A provider of identities with mappings, an association, terms, and a readme. */
async function describeTheRest({ api, as, uid }: Scene, issuer: string): Promise<void> {
  const provider = await made(api, 'POST', `/iam/v2/identityProviders/${uid.acme}`, {
    name: 'staff',
    description: 'Everybody who works here',
    defaultRole: roleUids.viewer,
    oidc: { issuer, clientId: 'pinfold', clientSecret: 'hidden words' },
  })
  for (const [externalGroupId, roleUid] of [
    ['engineers', roleUids.viewer],
    ['administrators', roleUids.owner],
  ]) {
    const body = { externalGroupId, roleUid, scope: uid.acme }
    await made(api, 'POST', `/iam/v2/externalGroupRoleMappings/${provider.uid}`, body)
  }
  const google = { projectId: 'example-project', projectNumber: '987654321' }
  const amazon = { account: '123456789012' }
  await made(api, 'POST', `/iam/v2/accountAssociations/${uid.acme}`, { name: 'clouds', amazon, google })
  const owner = await as(uid['admin pipeline']!)
  await made(owner, 'POST', `/iam/v2/terms/${uid.acme}`, { documentIds: ['terms-of-service.v1'] })
  await made(api, 'PATCH', `/registry/v2/repos/${uid['payments/jdk']}/readme`, { content: '# The JDK\n\nRuns it.\n' })
  await made(api, 'PATCH', `/registry/v2/repos/${uid['payments/php']}`, { description: 'Switched off' })
}

/** A repo that has all that another one has. */
async function copyRepo({ api, uid }: Scene): Promise<void> {
  const copy = await made(api, 'POST', `/registry/v2/repos/${uid.data}`, {
    name: 'copied',
    syncConfig: { source: uid['web/go'] },
  })
  for (;;) {
    const { status } = (await api.get(`/registry/v1/repos/${copy.uid}:syncstatus`)).body
    if (status === 'UNKNOWN') return
    await sleep(100)
  }
}

function callersOf({ uid }: Scene, person: string): Record<string, string> {
  return {
    owner: uid['admin pipeline']!,
    auditor: uid['yearly audit']!,
    rover: uid.rover!,
    pusher: uid['ledger releases']!,
    puller: uid['main cluster']!,
    releaser: uid['payments on call']!,
    stranger: uid['catalog builds']!,
    person,
  }
}

/** A subscription whose deliveries have arrived, but for one that was given up. */
async function deliver({ api, uid }: Scene, sink: string): Promise<void> {
  const { uid: subscription } = await made(api, 'POST', `/events/v2/subscriptions/${uid.web}`, { sink })
  for (const description of ['one', 'refused', 'two']) {
    await made(api, 'PATCH', `/registry/v2/repos/${uid['web/node']}`, { description })
  }
  await made(api, 'POST', `/events/v2/subscriptions/${subscription}:rotateSecret`)
  for (;;) {
    const { body } = await api.get(`/events/v2/subscriptions/${subscription}/deliveries`)
    const states = (body.deliveries as Json[]).map(({ state }) => state)
    if (states.length >= 3 && !states.includes('WAITING')) return
    await sleep(50)
  }
}

/** A subscription whose sink fails, and one that is paused. */
async function keepWaiting({ api, uid }: Scene, sink: string): Promise<void> {
  const failing = await made(api, 'POST', `/events/v2/subscriptions/${uid.data}`, { sink })
  const paused = await made(api, 'POST', `/events/v2/subscriptions/${uid.platform}`, { sink })
  const types = ['dev.pinfold.api.platform.registry.*']
  await made(api, 'PATCH', `/events/v2/subscriptions/${paused.uid}/settings`, { types })
  await made(api, 'POST', `/events/v2/subscriptions/${paused.uid}:pause`, { reason: 'the receiver moves' })
  await made(api, 'PATCH', `/registry/v2/repos/${uid['data/ruby']}`, { description: 'Nobody hears of this' })
  await made(api, 'PATCH', `/registry/v2/repos/${uid['edge/nginx']}`, { description: 'Nor of this' })
  for (;;) {
    const { body } = await api.get(`/events/v2/subscriptions/${failing.uid}/deliveries`)
    if ((body.deliveries as Json[]).some(({ attemptCount }) => attemptCount > 0)) return
    await sleep(50)
  }
}

async function makePullToken({ api, storage, uid }: Scene): Promise<People['pullToken']> {
  const env = {
    PINFOLD_API: settings.PINFOLD_URL!,
    PINFOLD_TOKEN: api.token!,
    HOME: storage.data,
    XDG_CONFIG_HOME: storage.data,
  }
  const args = ['--in', uid.payments!, '--name', 'old machine', '--ttl', '8760h', '-o', 'json']
  const { code, stdout, stderr } = await run(['tokens', 'pull', 'create', ...args], { env })
  if (code !== 0) throw new Error(`no pull token: ${stderr}`)
  const { identity, password } = JSON.parse(stdout) as Json
  return { user: identity, password }
}

/** Advisories, vulnerabilities, libraries and the history of tags, as the operator's commands take them in. */
async function importAll({ storage, uid }: Scene): Promise<void> {
  const file = (name: string, text: string): string => {
    const path = join(storage.data, name)
    writeFileSync(path, text)
    return path
  }
  const samples = join(project, 'examples')
  const record = (month: number, letter: string) => ({
    updateTimestamp: `2025-0${month}-01T00:00:00Z`,
    digest: `sha256:${letter.repeat(64)}`,
  })
  const tags = [
    { image: 'python', tag: '3.12', history: [record(1, 'a'), record(2, 'b'), record(3, 'a')] },
    { image: 'python', tag: '2.7', listedAtEnd: false, history: [record(1, 'c')] },
    { image: 'perl', tag: 'latest', history: [record(4, 'd'), record(5, 'e')] },
  ]
  const packages = [
    { name: 'flask', versions: ['3.0.3', { version: '3.1.3', uploadTime: '2026-02-19T05:00:56.027Z', size: 7 }] },
    { name: 'jinja2', versions: ['3.1.6'] },
  ]
  const osv = fixture('../../examples/advisories/go.jsonl').toString().split('\n').slice(0, 4).join('\n')
  for (const [what, ...from] of [
    ['advisories', join(samples, 'advisories/git.advisories.yaml')],
    ['advisories', join(project, 'test/data/advisories/zlib.advisories.yaml'), '--in', uid.acme!],
    ['osv', file('go.jsonl', osv)],
    ['libraries', file('python.json', JSON.stringify({ ecosystem: 'python', packages }))],
    ['tag-history', file('history.json', JSON.stringify({ tags })), '--in', uid.data!],
  ] as const) {
    const args = ['import', what, ...storage.args, ...from]
    const { code, stderr } = await run(args, { env: { ...storage.env, ...settings } })
    if (code !== 0) throw new Error(`import ${what}: ${stderr}`)
  }
}
