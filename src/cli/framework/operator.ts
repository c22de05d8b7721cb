// API client for commands of the operator. Calls the running server or, if none runs, starts one in the process of the command.
// The user needs access to the data folder, or the database URL and the master key.
import { join } from 'node:path'
import type { App } from '#app.ts'
import { baseUrl } from '#config/basics.ts'
import type { Config } from '#config.ts'
import { codes } from '#lib/errors.ts'
import { makeFolder } from '#lib/files/folders.ts'
import { ownNetwork } from '#lib/net/own-network.ts'
import { operatorUid } from '#lib/uid.ts'
import { ApiError, type Body, send } from './api-client.ts'
import { type Lists, listPages, type Query } from './api-reader.ts'
import { CliError, exitCodes } from './cli-error.ts'
import type { OptionSpec, Options, Terminal } from './command.ts'
import { configOf, settingOptions } from './settings.ts'

/** Options of commands that use `withOperator`. */
export const operatorOptions: readonly OptionSpec[] = settingOptions('data', 'database')

/** Text for the help of commands that use `withOperator`. */
export const operatorDetails = `Calls the server that runs on the data folder. If none runs, opens the data folder itself. With a database URL, calls the
server of PINFOLD_API. If PINFOLD_API is not set, opens the database itself. The command has all permissions and needs no
sign-in: access to the data folder, or to the database URL and the master key, is enough.`

export type OperatorApi = Lists & {
  /** URL at which clients reach the running server. Undefined if none runs. */
  url(): Promise<string | undefined>
  /** Sends a request to a path of the API and returns the JSON of the response. Throws ApiError. */
  get(path: string): Promise<Body>
  post(path: string, body: object): Promise<Body>
}

/** Time after which a command creates a new operator token, since a long command outlasts one token. */
const renewMs = 20 * 60_000

type Issuer = Pick<App, 'db' | 'keyring' | 'clock'>
type Target = { app: Issuer; origin: string; audience: string; ownMachine: boolean; url: OperatorApi['url'] }

/**
 * Runs `work` with the operator's rights, and closes everything afterwards. With `served`, throws NeverServed if no server has
 * ever run on the data folder or the database. Nothing is created then.
 */
export async function withOperator<T>(
  terminal: Terminal,
  options: Options,
  work: (api: OperatorApi) => Promise<T>,
  { served = false }: { served?: boolean } = {},
): Promise<T> {
  // Without this `await`, the resources would be closed before the work has ended.
  await using opened = new AsyncDisposableStack()
  const config = { ...configOf(terminal, options), logLevel: 'warn' as const }
  const remote = config.database === '' ? '' : baseUrl(terminal.env.PINFOLD_API ?? '', 'PINFOLD_API')
  if (served && remote === '') await requireServed(config)
  const lock = config.database === '' ? await lockOf(config) : undefined
  if (lock) opened.defer(() => lock.release())

  const serves = config.database === '' ? lock === undefined : remote !== ''
  if (!serves) {
    const { createApp } = await import('#create-app.ts')
    const here = opened.adopt(await createApp(config), (one) => one.close())
    if (!here.db.shared) await forgetAddress(here)
    return await work(apiOf({ ...(await startLocalServer(here, opened)), url: () => urlOfOther(here, config) }))
  }
  const [{ openIssuer }, { readFact }] = await Promise.all([import('#open-issuer.ts'), import('#db/facts.ts')])
  const issuer = await openIssuer(config).catch((error: Error) => {
    throw error.name === 'NotServedYet' && remote === '' ? busy(config.data) : error
  })
  const app = opened.adopt(issuer, (one) => one.close())
  const url = await readFact(app.db, 'url')
  if (remote !== '') {
    const audience = url ?? remote
    return await work(apiOf({ app, origin: remote, audience, ownMachine: false, url: async () => audience }))
  }
  const local = localServer(await localFacts(app, config), terminal.env.PINFOLD_API ?? '')
  if (!url || !local) throw busy(config.data)
  return await work(apiOf({ app, ...local, audience: url, url: async () => url }, () => busy(config.data)))
}

/** Error for a data folder or database on which no server has ever run. Most often the user meant another one. */
export class NeverServed extends CliError {
  override name = 'NeverServed'
  constructor({ database, data }: Config, why: string) {
    const start = database === '' ? `pinfold serve --data ${data}` : 'pinfold serve'
    const hint = `start the server with ${start}, or give the data folder of the running server with --data`
    super(exitCodes.unavailable, `${why}\n${hint}`)
  }
}

async function requireServed(config: Config): Promise<void> {
  const { notServedYet } = await import('#open-database.ts')
  const why = await notServedYet(config)
  if (why !== undefined) throw new NeverServed(config, why)
}

/** URL of another running server that uses the same database. Undefined if there is none. */
async function urlOfOther({ db }: App, { leaseMs }: Config): Promise<string | undefined> {
  const { liveNode } = await import('#db/nodes.ts')
  return db.shared ? (await liveNode(db, () => true, leaseMs))?.url : undefined
}

type OperatorToken = {
  /** Public URL of a server, and the origin at which this command calls it. */
  url: string
  origin: string
  /** True if the origin is on this machine, so the token does not leave the machine. */
  ownMachine: boolean
  token: string
}

/**
 * Creates an operator token, valid for one hour, for the server that runs on the data folder or database of the settings. Throws
 * CliError if no server runs there, or if the address of the server is unknown. A stored address is not enough: another program
 * may listen there now and would get the token. Creates no files and leaves nothing open.
 */
export async function operatorToken(terminal: Terminal, options: Options): Promise<OperatorToken> {
  const config = { ...configOf(terminal, options), logLevel: 'warn' as const }
  const where = config.database === '' ? `the data folder ${config.data}` : 'the database'
  const none = (why: string) => new NeverServed(config, why)
  const [{ openIssuer }, { readFact }] = await Promise.all([import('#open-issuer.ts'), import('#db/facts.ts')])
  const app = await openIssuer(config).catch((error: Error) => {
    throw error.name === 'NotServedYet' ? none(error.message) : error
  })
  await using _closing = { [Symbol.asyncDispose]: () => app.close() }
  const url = await readFact(app.db, 'url')
  if (!url) throw none(`no server has used ${where} yet`)
  const at =
    config.database === '' ? await findRunningServer() : { origin: remoteOf(terminal, options, url), ownMachine: false }
  if (!at) throw none(`no server runs on ${where}`)
  const { signAccessToken } = await import('#issuer/sign-token.ts')
  const named = { issuer: url, subject: operatorUid, audience: url, now: app.clock() }
  return { url, ...at, token: await signAccessToken(app.keyring, named) }

  async function findRunningServer() {
    const { isServeLockFree } = await import('#db/sqlite/serve-lock.ts')
    if (isServeLockFree(join(config.data, 'serve.lock'))) return undefined
    return localServer(await localFacts(app, config), String(options.api ?? terminal.env.PINFOLD_API ?? ''))
  }
}

async function localFacts({ db }: Pick<App, 'db'>, { data }: Config): Promise<LocalFacts> {
  const { readFact } = await import('#db/facts.ts')
  return { origin: await readFact(db, 'local_url'), network: await readFact(db, 'local_network'), data }
}

/**
 * The server of a database may run on another machine, so its stored URL is used only with https, where a certificate proves it.
 */
function remoteOf({ env }: Terminal, { api }: Options, url: string): string {
  const remote = api ? baseUrl(String(api), '--api') : baseUrl(env.PINFOLD_API ?? '', 'PINFOLD_API')
  if (remote !== '' || url.startsWith('https:')) return remote || url
  const why = `the database names the server ${url}, which is not https, so another program may listen there`
  throw new CliError(
    exitCodes.config,
    `no token was sent: ${why}\ngive the URL of the server with --api or PINFOLD_API`,
  )
}

/** Starts a server in this process, on a free port that only this machine can reach. Only this process has a token for it. */
async function startLocalServer(app: App, opened: AsyncDisposableStack): Promise<Omit<Target, 'url'>> {
  const [{ startServer }, { jobsOfCommands, startWorkers }] = await Promise.all([
    import('#api/server.ts'),
    import('#workers.ts'),
  ])
  const config = { ...app.config, listen: { host: '127.0.0.1', port: 0 }, tlsCert: '', tlsKey: '' }
  const server = opened.adopt(await startServer({ ...app, config }), (one) => one.close())
  opened.adopt(await startWorkers(app, { jobs: jobsOfCommands }), (one) => one.close())
  return { app, origin: server.localUrl, audience: server.url, ownMachine: true }
}

function apiOf({ app, origin, audience, ownMachine, url }: Target, unreachable?: () => CliError): OperatorApi {
  let token = { text: '', until: 0 }
  const call = async (method: 'GET' | 'POST', path: string, body?: object) => {
    const now = app.clock()
    if (token.until <= now.getTime()) {
      const { signAccessToken } = await import('#issuer/sign-token.ts')
      const text = await signAccessToken(app.keyring, { issuer: audience, subject: operatorUid, audience, now })
      token = { text, until: now.getTime() + renewMs }
    }
    try {
      return await send(method, new URL(path, origin), token.text, { body, ownMachine })
    } catch (error) {
      const away = unreachable && error instanceof ApiError && error.code === codes.UNAVAILABLE.number && error.cause
      throw away ? unreachable() : error
    }
  }
  const get = (path: string) => call('GET', path)
  return {
    url,
    get,
    post: (path, body) => call('POST', path, body),
    operator: true,
    list: <T>(path: string, member: string, query: Query, limit = Number.POSITIVE_INFINITY) =>
      listPages<T>(get, { path, member, query, limit }),
  }
}

/** If no server runs, another program may listen at the stored address of the last server. */
async function forgetAddress({ db }: App): Promise<void> {
  const { removeFact } = await import('#db/facts.ts')
  await db.tx((tx) => removeFact(tx, 'local_url'))
}

/**
 * Takes the lock of the data folder before anything is opened, so no server can start on the folder. Returns `undefined` if a
 * running server has the lock.
 */
async function lockOf({ data }: Config): Promise<{ release(): void } | undefined> {
  const { takeServeLock } = await import('#db/sqlite/serve-lock.ts')
  makeFolder(data)
  return takeServeLock(join(data, 'serve.lock'))
}

/**
 * Error for a locked data folder on which no server answers. A server is starting, or another command like this one is running.
 */
function busy(data: string): CliError {
  return new CliError(
    exitCodes.unavailable,
    `the data folder ${data} is in use, but no server answers on it; try again in a few seconds`,
  )
}

type LocalServer = { origin: string; ownMachine: boolean }

/** Facts that the server has stored in the database of the data folder. */
type LocalFacts = { origin: string | undefined; network: string | undefined; data: string }

/**
 * Address of the server that runs on the data folder. Returns undefined if no server is ready. The stored address is valid only
 * on the server's own network: elsewhere, as in a container, another program may listen there and would get the operator's token.
 * `named` is the address of an option, or empty. Throws CliError if an address must be named and is not.
 */
function localServer({ origin, network, data }: LocalFacts, named: string): LocalServer | undefined {
  if (!origin) return undefined
  const here = ownNetwork()
  if (!network || here === '' || network === here) return { origin, ownMachine: true }
  if (named !== '') return { origin: baseUrl(named, '--api'), ownMachine: false }
  const what = `the server of the data folder ${data} runs in another network than this command, such as in a container`
  const next =
    'run the command where the server runs (docker exec CONTAINER pinfold …), or set PINFOLD_API to the URL of the server'
  throw new CliError(exitCodes.unavailable, `${what}\n${next}`)
}
