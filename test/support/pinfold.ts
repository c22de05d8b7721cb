// Starts a server on a free port, and calls it. The database is SQLite, or the PostgreSQL of PINFOLD_TEST_DATABASE.
import { randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startServer } from '#api/server.ts'
import { type Config, readConfig } from '#config.ts'
import { sql } from '#db/sql.ts'
import { deliverEvents, sweepSubscriptions } from '#domains/events/events.job.ts'
import { maskOf } from '#domains/iam/access/capabilities.ts'
import type { Identity } from '#domains/iam/identities/identities.model.ts'
import { insertIdentity } from '#domains/iam/identities/identities.store.ts'
import { writeRegistryEvents } from '#domains/outbox/registry-events.job.ts'
import { operatorUid, signAccessToken } from '#issuer/access-token.ts'
import { jobsOfCommands, startWorkers, type WorkersOptions } from '#workers.ts'
import { createApp } from '../../src/create-app.ts'
import { databaseFile } from '../../src/open-database.ts'
import { bucketSettings } from './bucket.ts'
import { askHttp, headersOf } from './http.ts'
import { copyOfPostgres, copyOfSqlite, dropDatabase } from './migrated.ts'
import { answerOfVendor, bodyToVendor, pathToVendor, vendorSettings } from './vendor.ts'

export type Json = Record<string, any>
export type Answer = { status: number; headers: Headers; text: string; body: Json }
export type Client = {
  token: string | undefined
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
  get(path: string): Promise<Answer>
  post(path: string, body?: unknown): Promise<Answer>
  patch(path: string, body?: unknown): Promise<Answer>
  delete(path: string): Promise<Answer>
}
export type TokenOptions = {
  audience?: string
  issuer?: string
  lifetime?: number
  now?: Date
  cap?: Record<string, number[]>
}

/** Uids of the built-in roles that tests use most. */
export const roleUids = {
  owner: '4e13a874c5dfc25fa6c8f963f7172906b675d5eb',
  editor: '83b1aa4bc019baf7baed3bd95a9bf0e5d9ffed54',
  viewer: 'fb8cf4f24fcd591a8e895de6931ca2bca2198e6b',
  console_viewer: '9d1801bc4fc175ad7d7d40cc163260e49b3c4de3',
  operator: '0d0fcd23ba11ba9ae9af494459be5c9872701241',
  pull: '902b87b2d467e207feddc9515e32fd39b33f05eb',
  push: '1d170348733a558be7e883527d0d7e4c60e3ce20',
}

export const onPostgres = Boolean(process.env.PINFOLD_TEST_DATABASE)

/** With `deliver`, the server sends events to subscriptions. Without it, events stay in the queue. */
export async function startPinfold(
  overrides: Partial<Config> &
    Pick<WorkersOptions, 'jobs'> & {
      clock?: () => Date
      /** Monotonic clock in milliseconds, by which cached values expire. */
      monotonic?: () => number
      deliver?: boolean
    } = {},
) {
  const { clock, monotonic, deliver, jobs, ...settings } = overrides
  const folder = mkdtempSync(join(tmpdir(), 'pinfold-test-'))
  const name = `t_${randomBytes(8).toString('hex')}`
  const isOwn = settings.database !== undefined || settings.data !== undefined
  const database = onPostgres && !isOwn ? await copyOfPostgres(process.env.PINFOLD_TEST_DATABASE!, name) : ''
  const config: Config = {
    ...readConfig({}),
    // Clients of a test run on the thread of the server, so budgets for main-thread time would count their work too.
    ...{ budgetCallerPercent: 100, budgetOrganizationPercent: 100 },
    ...(process.env.PINFOLD_TEST_BLOBS === 'versitygw' ? await bucketSettings() : {}),
    listen: { host: '127.0.0.1', port: 0 },
    data: folder,
    database,
    masterKey: onPostgres ? randomBytes(32).toString('hex') : '',
    logLevel: 'error',
    drainMs: 1000,
    blobTrashSeconds: 0,
    vulnerabilitySyncHours: 0,
    migrateAtStart: true,
    // All requests of tests come from one address, so the rate limit for addresses is off.
    requestsPerSource: 10_000_000,
    refusalsPerSource: 10_000_000,
    ...vendorSettings,
    ...settings,
  }
  // If a test provides the data folder, it is not deleted.
  if (config.database === '' && !existsSync(databaseFile(config))) await copyOfSqlite(databaseFile(config))
  const app = await createApp(config, clock, monotonic)
  const server = await startServer(app)
  const { url } = server
  const ofEvents = deliver ? [deliverEvents, writeRegistryEvents, sweepSubscriptions] : []
  const workers = await startWorkers(app, { server, jobs: jobs ?? [...jobsOfCommands, ...ofEvents] })
  const port = Number(new URL(url).port) || config.listen.port || server.port

  const tokenFor = (subject: string, options: TokenOptions = {}) => {
    const narrowing =
      options.cap && new Map(Object.entries(options.cap).map(([scope, numbers]) => [scope, maskOf(numbers)]))
    return signAccessToken(app.keyring, {
      issuer: options.issuer ?? url,
      subject,
      audience: options.audience ?? url,
      now: options.now ?? app.clock(),
      ...(options.lifetime === undefined ? {} : { lifetime: options.lifetime }),
      ...(narrowing ? { narrowing } : {}),
    })
  }
  const operator = clientOf(`http://127.0.0.1:${port}`, await tokenFor(operatorUid))
  const as = async (subject: string, options?: TokenOptions) =>
    clientOf(`http://127.0.0.1:${port}`, await tokenFor(subject, options))

  return {
    app,
    url,
    port,
    /** Port that the server listens on. The URL has another port if a test uses a proxy. */
    listenPort: server.port,
    metricsUrl: server.metricsUrl,
    operator,
    anonymous: clientOf(`http://127.0.0.1:${port}`, undefined),
    tokenFor,
    as,
    withToken: (token: string) => clientOf(`http://127.0.0.1:${port}`, token),
    seed: {
      ...seedsOf(operator),
      /** Creates a user with an account but without any rights, as after a registration. */
      async person(named: Partial<Identity> = {}): Promise<{ uid: string }> {
        const uid = randomBytes(20).toString('hex')
        const now = app.clock().toISOString()
        const times = { lastSeenTime: now, createTime: now, updateTime: now }
        const texts = { name: 'somebody', description: '', company: '', email: '', emailUnverified: '' }
        const claimMatch = { issuer: 'https://people.example.com', subject: uid }
        await app.db.tx((tx) => insertIdentity(tx, { uid, ...texts, claimMatch, ...times, ...named }))
        return { uid }
      },
    },
    /** Types of all events so far, oldest first. */
    async events(): Promise<string[]> {
      const rows = await app.db.all<{ type: string }>(sql`SELECT type FROM events_outbox ORDER BY id`)
      return rows.map((row) => row.type)
    },
    /** Changes the endpoint URL of a subscription directly in the database. The API does not allow this. */
    async point(subscription: string, sink: string): Promise<void> {
      await app.db.tx((tx) => tx.run(sql`UPDATE subscriptions SET sink = ${sink} WHERE uid = ${subscription}`))
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([server.close(), workers.close()])
      await app.close()
      if (database !== '') await dropDatabase(process.env.PINFOLD_TEST_DATABASE!, name)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export type Pinfold = Awaited<ReturnType<typeof startPinfold>>

export function clientOf(base: string, token: string | undefined): Client {
  const call: Client['call'] = async (method, path, body, headers = {}) => {
    const sent = body === undefined ? undefined : bodyToVendor(typeof body === 'string' ? body : JSON.stringify(body))
    const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` }
    const answer = await askHttp(base + pathToVendor(method, path), method, { ...authorization, ...headers }, sent)
    const text = answerOfVendor(answer.text, method, path)
    return {
      status: answer.status,
      get headers() {
        return headersOf(answer)
      },
      text,
      // A body that begins like JSON may be something else, such as the bytes of a tile.
      body: text.startsWith('{') && /\bjson\b/.test(answer.type) ? (JSON.parse(text) as Json) : {},
    }
  }
  return {
    token,
    call,
    get: (path) => call('GET', path),
    post: (path, body) => call('POST', path, body ?? {}),
    patch: (path, body) => call('PATCH', path, body ?? {}),
    delete: (path) => call('DELETE', path),
  }
}

/** Creates resources through the public API. If a call fails, the test fails with the message of the server. */
function seedsOf(operator: Client) {
  let count = 0
  const unique = (word: string) => `${word}-${count++}`
  const made = async (path: string, body: Json): Promise<Json> => {
    const answer = await operator.post(path, body)
    if (answer.status !== 200) throw new Error(`seed ${path} failed: ${answer.text}`)
    return answer.body
  }
  const claimMatch = () => ({ issuer: 'https://issuer.example.com', subject: unique('subject') })
  return {
    group: (parent = '', body: Json = {}) => made(`/iam/v2/groups/${parent}`, { name: unique('group'), ...body }),
    identity: (parent: string, body: Json = {}) =>
      made(`/iam/v2/identities/${parent}`, { name: unique('identity'), claimMatch: claimMatch(), ...body }),
    role: (parent: string, capabilities: string[], body: Json = {}) =>
      made(`/iam/v2/roles/${parent}`, { name: unique('role'), capabilities, ...body }),
    binding: (group: string, identityUid: string, roleUid: string) =>
      made(`/iam/v2/roleBindings/${group}`, { identityUid, roleUid }),
    repo: (parent: string, body: Json = {}) => made(`/registry/v2/repos/${parent}`, { name: unique('repo'), ...body }),
    /** Creates an identity provider of the organization. Its issuer must be reachable. */
    provider: (org: string, issuer: string, body: Json = {}) => {
      const oidc = { issuer, clientId: 'pinfold', clientSecret: 'hidden words' }
      return made(`/iam/v2/identityProviders/${org}`, {
        name: unique('provider'),
        defaultRole: roleUids.viewer,
        oidc,
        ...body,
      })
    },
    mapping: (provider: string, roleUid: string, externalGroupId = unique('external')) =>
      made(`/iam/v2/externalGroupRoleMappings/${provider}`, {
        externalGroupId,
        roleUid,
        scope: provider.slice(0, 40),
      }),
    /** Creates an invitation, and returns it with its code. */
    invite: (group: string, roleUid: string, body: Json = {}) =>
      made(`/iam/v2/groupInvites/${group}`, { roleUid, ttl: '3600s', ...body }),
    association: (group: string, body: Json = {}) =>
      made(`/iam/v2/accountAssociations/${group}`, { name: unique('association'), ...body }),
    subscription: (group: string, sink = 'https://hooks.example.com/') =>
      made(`/events/v2/subscriptions/${group}`, { sink }),
    /** Creates an identity in `group`, with the role on this group. */
    async member(group: string, role: string): Promise<Json> {
      const identity = await this.identity(group)
      await this.binding(group, identity.uid, role)
      return identity
    },
  }
}
