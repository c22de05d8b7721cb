// A pooler between the server and PostgreSQL, which assigns a connection to each transaction.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { suite, test } from 'node:test'
import { openDb } from '#db/open.ts'
import { requireNamedStatements } from '#db/postgres/pooler.ts'
import { isUnavailable } from '#db/unavailable.ts'
import { createStorage, run, startProcess, type TestStorage } from '../support/process.ts'
import { startWire } from '../support/wire.ts'

const database = process.env.PINFOLD_TEST_DATABASE ?? ''

/** The URL of a proxy. It acts like a pooler with one connection per client. */
function through(storage: TestStorage, port: number): string {
  const url = new URL(storage.database)
  Object.assign(url, { hostname: '127.0.0.1', port: String(port) })
  url.searchParams.delete('schema')
  url.searchParams.set('options', `-c search_path=${storage.schema}`)
  url.searchParams.set('pooled', 'true')
  return url.href
}

/** Assigns one connection to all clients in turn, and does not track statement names. */
async function startForgetful(to: { host: string; port: number }) {
  const server = createServer()
  const sockets = new Set<Socket>()
  const on = connect(to.port, to.host)
  sockets.add(on)
  let client: Socket | undefined
  let greeting = Buffer.alloc(0)
  /** True if `greeting` contains all bytes until the server is first ready for a query. */
  const isGreeted = () => greeting.at(-6) === 'Z'.charCodeAt(0)
  on.on('error', () => {}).on('data', (chunk: Buffer) => {
    if (!isGreeted()) greeting = Buffer.concat([greeting, chunk])
    client?.write(chunk)
  })
  server.on('connection', (socket) => {
    sockets.add(socket)
    client = socket
    socket
      .on('error', () => {})
      .once('data', (start: Buffer) => {
        if (isGreeted()) socket.write(greeting)
        else on.write(start)
        socket.on('data', (chunk: Buffer) => {
          if (chunk[0] !== 'X'.charCodeAt(0)) on.write(chunk)
        })
      })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Forwards the start of each connection, but no statement. */
async function startMute(to: { host: string; port: number }) {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    const on = connect(to.port, to.host)
    for (const one of [socket, on]) sockets.add(one.on('error', () => {}))
    on.pipe(socket)
    socket.on('data', (chunk: Buffer) => {
      // Parse or Query.
      if (!['P', 'Q'].includes(String.fromCharCode(chunk[0]!))) on.write(chunk)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

suite('pooler', { skip: database === '' && 'PINFOLD_TEST_DATABASE is not set' }, () => {
  const { hostname: host, port } = new URL(database || 'postgres://none')
  const target = { host, port: Number(port || 5432) }

  test('migrations bypass the pooler, and are refused without a direct URL', async () => {
    await using storage = await createStorage({ isEmpty: true })
    await storage.query(`CREATE SCHEMA ${storage.schema}`)
    const wire = await startWire(target)
    const pooled = { ...storage, args: ['--data', storage.data, '--database', through(storage, wire.port)] }
    const migrate = (direct?: string) =>
      run(['migrate', ...pooled.args], { env: { ...storage.env, ...(direct && { PINFOLD_DATABASE_DIRECT: direct }) } })
    try {
      const refused = await migrate()
      assert.equal(refused.code, 1)
      assert.match(refused.stderr, /migrations need a database session.*set PINFOLD_DATABASE_DIRECT/)
      const elsewhere = new URL(storage.database)
      elsewhere.searchParams.set('schema', 'pg_catalog')
      const wrong = await migrate(elsewhere.href)
      assert.match(wrong.stderr, /PINFOLD_DATABASE_DIRECT and PINFOLD_DATABASE have different databases or schemas/)
      assert.match((await migrate(through(storage, wire.port))).stderr, /PINFOLD_DATABASE_DIRECT.* remove pooled=true/)
      const done = await migrate(storage.database)
      assert.deepEqual([done.code, done.stdout], [0, 'the database is up to date\n'])
      // A server of this version has nothing to migrate.
      await using server = await startProcess(pooled)
      server.kill('SIGTERM')
      assert.equal((await server.exited).code, 0)
    } finally {
      wire.close()
    }
  })

  test('nothing that needs a database session uses the pooler', async () => {
    await using storage = await createStorage()
    const db = await openDb({ database: through(storage, target.port), file: '' })
    try {
      await assert.rejects(
        db.alone!(async () => {}),
        /need a database session/,
      )
    } finally {
      await db.close()
    }
  })

  test('refuses a pooler that confuses named statements, and names the fixed version', async () => {
    await using storage = await createStorage()
    await using forgetful = await startForgetful(target)
    const named = requireNamedStatements(through(storage, forgetful.port))
    await assert.rejects(named, /PgBouncer 1\.21 or later with max_prepared_statements above 0/)
    const wire = await startWire(target)
    await requireNamedStatements(through(storage, wire.port)).finally(() => wire.close())
  })

  test('the start checks end if a pooler accepts a connection and answers no statement', async () => {
    await using storage = await createStorage()
    await using mute = await startMute(target)
    const checked = requireNamedStatements(through(storage, mute.port), 50)
    await assert.rejects(checked, (error) => isUnavailable(error) && /did not answer within 0.05 s/.test(String(error)))
  })
})
