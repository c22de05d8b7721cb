import { accessSync, constants, statSync } from 'node:fs'
import { enableCompileCache, getCompileCacheDir } from 'node:module'
import { isAbsolute, join, relative } from 'node:path'
import type { Port } from '#api/port/open-port.ts'
import type { Server } from '#api/server.ts'
import type { App } from '#app.ts'
import type { Config } from '#config.ts'
import { readFact, removeFact, writeFact } from '#db/facts.ts'
import { requireKnown } from '#db/migrate.ts'
import { migrationIds } from '#db/migration-ids.ts'
import { liveNode } from '#db/nodes.ts'
import { takeServeLock } from '#db/sqlite/serve-lock.ts'
import { programFile } from '#lib/files/assets.ts'
import { makeFolder } from '#lib/files/folders.ts'
import { ownNetwork } from '#lib/net/own-network.ts'
import { exitCodes } from '../framework/cli-error.ts'
import type { Command, Terminal } from '../framework/command.ts'
import { configOf, settingOptions } from '../framework/settings.ts'
import type { DemoPeer } from './demo/peer.ts'
import { keepSmall, releaseMemory } from './heap.ts'

export const serve: Command = {
  details: `Prints "ready" and the URL when the server accepts requests, then the address of the console. Logs are on standard error: JSON
lines, or readable lines on a terminal.
While PostgreSQL is unavailable or read-only, the server waits and answers 503.
SIGTERM, SIGINT and SIGHUP stop the server. /readyz answers 503 for PINFOLD_LAMEDUCK_MS. Then running requests and event
deliveries can finish within PINFOLD_DRAIN_MS. SIGUSR2 reloads the certificate files.
Settings without an option are environment variables: see "pinfold server config".`,
  options: [
    ...settingOptions('listen', 'url', 'data', 'database', 'blobs', 'tlsCert', 'tlsKey', 'logLevel'),
    { flags: '--demo', summary: 'Add an example organization to an empty server' },
  ],
  async run(terminal, options) {
    if (terminal.ownsProcess) keepSmall()
    const demo = options.demo === true ? await import('./demo/peer.ts') : undefined
    const configured = configOf(terminal, options)
    const asDemo = demo?.demoConfig(configured, terminal.env) ?? configured
    const hasPeer = demo !== undefined && (await demo.mayHavePeer(asDemo))
    const config = hasPeer ? demo.withPeer(asDemo) : asDemo
    // The lock is taken before the database is opened. Otherwise a newer version, started by mistake, would migrate the database
    // of a running server.
    using _alone = lockDataFolder(config)
    keepCompiled(terminal.env, config.data)
    let asked: Promise<void> | undefined
    const untilSignaled = () => {
      asked ??= terminal.untilSignaled()
      return asked
    }
    const { startWhenAvailable } = await import('./start-when-available.ts')
    const started = await startWhenAvailable(config, untilSignaled, startAll)
    // A signal ended the process while it waited for the database.
    if (!started) return exitCodes.ok
    const { app, server, workers, isFirst } = started
    await using _closing = { [Symbol.asyncDispose]: () => app.close() }
    using _rejections = logRejections(app)
    server.open()
    if (terminal.ownsProcess) process.on('SIGUSR2', () => void server.reloadCertificate())
    await using peer = hasPeer ? await demo.startPeer(app) : undefined
    const filled = demo !== undefined && (await addDemo(terminal, app, server, peer))
    // A program that reads the `ready` line may send requests at once.
    const end = untilSignaled()
    terminal.print(`ready ${server.url}`)
    app.log.release()
    // The server already accepts requests, so a failure of the next steps must not end it.
    await warnOfNames(app).catch((error: unknown) => app.log.warn('names of organizations were not checked', { error }))
    for (const one of config.formerNames) app.log.warn('setting has a deprecated name', one)
    app.log.info('serving', { url: server.url, engine: app.db.engine, metrics: server.metricsUrl })
    await printEntrance(terminal, app, server.url)
    if (peer) terminal.print(`Webhooks of the demo arrive at ${peer.url}/`)
    if (isFirst) terminal.print(firstSteps(server.url, config, filled))
    setTimeout(releaseMemory, 1000).unref()
    await end
    app.log.info('leaving', { ms: config.lameduckMs })
    await server.leave(config.lameduckMs)
    app.log.info('draining')
    // Requests in flight may wait for a job, so the jobs are stopped last. Requests and jobs share the drain time.
    const until = performance.now() + config.drainMs
    await server.close()
    await workers.close(Math.max(0, until - performance.now()))
    return exitCodes.ok
  },
}

/** Starts everything, but does not answer requests yet. If a step fails, closes everything. */
async function startAll(config: Config, takePort: () => Port | undefined) {
  const [{ createApp }, { bindServer }, { startWorkers }, { listenProblem }] = await Promise.all([
    import('#create-app.ts'),
    import('#api/server.ts'),
    import('#workers.ts'),
    import('./start-when-available.ts'),
  ])
  await using failing = new AsyncDisposableStack()
  const app = failing.adopt(await createApp(config), (open) => open.close())
  // The stored address of the former server is removed, so commands do not call it before this server is ready.
  if (!app.db.shared) await app.db.tx((tx) => removeFact(tx, 'local_url'))
  const isFirst = (await readFact(app.db, 'url')) === undefined
  const bound = await bindServer(app, takePort()).catch((error: unknown) => {
    throw listenProblem(error, config.listen)
  })
  const server = failing.adopt(bound, (open) => open.close())
  const workers = failing.adopt(
    await startWorkers(app, { server, mayServe: () => checkOtherServer(app, server) }),
    (open) => open.close(0),
  )
  await app.db.tx(async (tx) => {
    await writeFact(tx, 'url', server.url)
    // With PostgreSQL there may be several servers. Each stores its address in the table `nodes`.
    if (app.db.shared) return
    await writeFact(tx, 'local_url', server.localUrl)
    await writeFact(tx, 'local_network', ownNetwork())
  })
  failing.move()
  return { app, server, workers, isFirst }
}

/** Adds the example company to an empty server. Returns false if the server has organizations already. */
async function addDemo(terminal: Terminal, app: App, server: Server, peer: DemoPeer | undefined): Promise<boolean> {
  const { fillDemo } = await import('./demo/fill.ts')
  const isFilled = peer !== undefined && (await fillDemo(app, server, peer.url))
  if (isFilled) await peer.keepPort()
  if (!isFilled) terminal.say('pinfold: the example organization was not added: the server already has organizations')
  return isFilled
}

/** Warns of organizations whose name has the form of a view. A pull with such a name uses the organization, not the view. */
async function warnOfNames({ db, log }: App): Promise<void> {
  const { organizationsNamedAsViews } = await import('#domains/iam/groups/groups.service.ts')
  const names = await organizationsNamedAsViews(db)
  if (names.length > 0)
    log.warn('organizations have the names of views, and pulls with these names use the organizations', { names })
}

/**
 * Prints the address of the console, and the command that signs in as the operator. On a terminal, prints the link too. The link is
 * a secret, so it is not written to files or logs.
 */
async function printEntrance(terminal: Terminal, app: App, url: string): Promise<void> {
  terminal.print(`console ${url}/ui/`)
  terminal.print(`To open the console as the operator, run: ${consoleCommand(app.config)}`)
  if (!terminal.isSeen) return
  const { createConsoleCode } = await import('#domains/iam/sessions/sessions.service.ts')
  const made = await createConsoleCode({ app, log: app.log }).catch(() => undefined)
  if (made) terminal.print(`or open this link once, within 5 minutes: ${url}/ui/enter#${made.code}`)
}

/**
 * Caches compiled code for the next start, unless the program has a cache already. The cache is in the data folder, since the
 * folders of the program may be read-only, as in the container image.
 */
function keepCompiled({ NODE_COMPILE_CACHE }: Terminal['env'], data: string): void {
  if (NODE_COMPILE_CACHE === '' || getCompileCacheDir() !== undefined || !isWritableFolder(data)) return
  enableCompileCache(join(data, 'compiled'))
}

/** Time to wait for the lock, since commands take it briefly to check whether a server runs. */
const lockWaitMs = 200

/**
 * Takes the lock of the data folder, which only one server may use. With PostgreSQL, several servers may run, so there is no
 * lock.
 */
function lockDataFolder({ database, data }: Config): Disposable {
  if (database !== '') return { [Symbol.dispose]: () => {} }
  try {
    makeFolder(data)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new Error(`the data folder ${data} cannot be created: ${code}; choose another with --data`, { cause: error })
  }
  const lock = lockOf(data)
  if (!lock)
    throw new Error(
      `another server uses the data folder ${data}; stop it first, or use PostgreSQL to run several servers`,
    )
  return { [Symbol.dispose]: () => lock.release() }
}

function lockOf(data: string): { release(): void } | undefined {
  try {
    requireTemporaryFolder()
    return takeServeLock(join(data, 'serve.lock'), lockWaitMs)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === undefined || !['EACCES', 'EPERM', 'EROFS'].includes(code)) throw error
    const give = `make the user of the server its owner (uid ${process.getuid?.()}), or choose another with --data`
    throw new Error(`the data folder ${data} cannot be written: ${code}; ${give}`, { cause: error })
  }
}

/**
 * Throws if there is no folder for temporary files. SQLite writes large sorts to a file there. Without a folder, it would report
 * that the database is broken.
 */
function requireTemporaryFolder(): void {
  const folders = [process.env.SQLITE_TMPDIR, process.env.TMPDIR, '/var/tmp', '/usr/tmp', '/tmp', '.']
  if (folders.some((folder) => folder && isWritableFolder(folder))) return
  throw new Error(
    'SQLite needs a writable folder for temporary files, and there is none; set TMPDIR to a folder, such as a tmpfs',
  )
}

function isWritableFolder(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
    return statSync(folder).isDirectory()
  } catch {
    return false
  }
}

/**
 * Throws unless this server fits the database and its other servers. This server is already announced in the database. So a
 * server that starts later, or a command that replaces the master key or deletes data, notices it.
 */
async function checkOtherServer({ db, config, cipher }: App, { url }: Server): Promise<void> {
  // Another server may have run migrations after the database was opened and before this server was announced.
  await requireKnown(db, migrationIds())
  // Tokens contain the URL, so all servers of a database must have the same URL. It may change only while no other server runs.
  const other = db.shared ? await liveNode(db, (node) => node.url !== url, config.leaseMs) : undefined
  if (other) {
    throw new Error(
      `another server uses this database with the URL ${other.url}, and this one has ${url}; give both the same PINFOLD_URL, or stop the other one first`,
    )
  }
  if ((await readFact(db, 'master_key')) !== cipher.fingerprint) {
    throw new Error('the master key was replaced while the server started; start the server again with the new key')
  }
}

/** Program as a user of this folder types it. */
function programPath(): string {
  const program = programFile()
  return isAbsolute(program) ? relative(process.cwd(), program) : program
}

/** Command that prints a link to sign in to the console as the operator. */
function consoleCommand({ database, data }: Config): string {
  const pinfold = quote(programPath())
  return database ? `${pinfold} server console` : `${pinfold} server console --data ${quote(data)}`
}

/** Commands that a user can paste after the first start. They act as the operator, so they need no sign-in. */
function firstSteps(url: string, config: Config, demo: boolean): string {
  const pinfold = quote(programPath())
  // These two settings contain secrets, so only their names are printed.
  const secrets = [config.database && 'PINFOLD_DATABASE', config.masterKey && 'PINFOLD_MASTER_KEY'].filter(Boolean)
  const same = secrets.length > 0 ? `, with the same ${secrets.join(' and ')}` : ''
  const target = config.database ? '' : ` --data ${quote(config.data)}`
  const commands = demo
    ? ['orgs list', 'repos list --name python', 'repos list --limit 5']
    : ['orgs create first-steps', "repos create first-steps/web --description 'The shop'", 'repos list']
  const lines = [
    ...(config.database ? serverOf(url, config) : []),
    ...commands.map((one) => `${pinfold} ${one}${target}`),
  ]
  return `
First steps, in another terminal in this folder${same}:

${lines.map((line) => `  ${line}\n`).join('')}`
}

/** Variables that lead commands to the server of a shared database. Commands do not trust a self-signed certificate by default. */
function serverOf(url: string, { tlsCert }: Config): string[] {
  const trust = tlsCert === '' ? [] : [`export NODE_EXTRA_CA_CERTS=${quote(tlsCert)}`]
  return [`export PINFOLD_API=${quote(url)}`, ...trust]
}

function quote(text: string): string {
  return /^[A-Za-z0-9_./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}

/**
 * Logs and counts unhandled rejections until it is disposed. Without it, Node ends the process at the first one, so one faulty
 * request would end the requests of all clients. An uncaught exception still ends the process (decision 173).
 */
function logRejections({ log, metrics }: Pick<App, 'log' | 'metrics'>): Disposable {
  const note = (error: unknown): void => {
    metrics.unhandledRejections.inc()
    log.error('promise rejection was not handled', { error })
  }
  process.on('unhandledRejection', note)
  return { [Symbol.dispose]: () => void process.off('unhandledRejection', note) }
}
