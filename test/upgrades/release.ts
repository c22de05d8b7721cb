// A recorded server in the repository: how it is packed after recording, and how a test opens a copy of it.
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import pg from 'pg'
import { extract, pack } from 'tar-stream'
import { onPostgres } from '../support/pinfold.ts'
import { type Env, project, type TestStorage } from '../support/process.ts'
import type { Answers } from './ask.ts'
import type { People } from './scene.ts'

/** Record of a release on one engine, besides its data. */
export type Release = People & {
  /** When it was recorded, which is the time that copies are asked at. */
  now: string
  settings: Env
  /** Dump of the database on PostgreSQL. With SQLite the database is in the data folder. */
  masterKey: string
  /** Short names of long uids and digests in the file, so that people can read it. */
  names: Record<string, string>
  answers: Answers
}

const folder = join(project, 'test/data/upgrades')
const engine = onPostgres ? 'postgres' : 'sqlite'
/** The schema in a dump, which becomes that of the copy. */
const dumped = 'recorded_release'

/** The names of all releases, oldest first. */
export const releases = (): string[] => readdirSync(folder).sort()

const fileOf = (name: string, file: string): string => join(folder, name, engine, file)

export function readRelease(name: string): Release {
  const names = JSON.parse(readFileSync(fileOf(name, 'names.json'), 'utf8')) as Record<string, string>
  const text = readFileSync(fileOf(name, 'expected.json'), 'utf8')
  return {
    ...JSON.parse(
      renamed(
        text,
        Object.entries(names).map(([short, long]) => [`{${short}}`, long]),
      ),
    ),
    names,
  }
}

export function writeRelease(name: string, { names, ...release }: Release): void {
  // The longest first, since a uid begins with those of the groups above.
  const longest = Object.entries(names).sort(([, a], [, b]) => b.length - a.length)
  const text = renamed(
    JSON.stringify(release),
    longest.map(([short, long]) => [long, `{${short}}`]),
  )
  writeFileSync(fileOf(name, 'names.json'), `${pretty(names)}\n`)
  writeFileSync(fileOf(name, 'expected.json'), `${pretty(JSON.parse(text))}\n`)
}

function renamed(text: string, names: readonly (readonly [from: string, to: string])[]): string {
  return names.reduce((done, [from, to]) => done.replaceAll(from, to), text)
}

/** Stores the data of a storage on which no server runs. */
export async function packStorage(name: string, storage: TestStorage): Promise<void> {
  mkdirSync(dirname(fileOf(name, 'x')), { recursive: true })
  // The lock file belongs to a process, and the rest was only there to be imported.
  const kept = globSync('{pinfold.db*,master.key,blobs/**}', { cwd: storage.data }).filter((path) =>
    statSync(join(storage.data, path)).isFile(),
  )
  const archive = pack()
  for (const path of kept.sort()) {
    archive.entry({ name: path, mtime: new Date(0), mode: 0o600 }, readFileSync(join(storage.data, path)))
  }
  archive.finalize()
  writeFileSync(fileOf(name, 'data.tar.zst'), compressed(await buffer(archive)))
  if (onPostgres) writeFileSync(fileOf(name, 'database.sql.zst'), compressed(dumpOf(storage.database)))
}

const compressed = (content: Buffer | string): Buffer => {
  const { ZSTD_c_compressionLevel: level, ZSTD_c_windowLog: window } = constants
  return zstdCompressSync(content, { params: { [level]: 22, [window]: 24 } })
}

/** The schema as statements that any client can send: without the commands of psql and the settings of one version. */
function dumpOf(database: string): string {
  const url = new URL(database)
  const schema = url.searchParams.get('schema')!
  url.search = ''
  const program = globSync('/usr/lib/postgresql/*/bin/pg_dump').sort().at(-1) ?? 'pg_dump'
  const options = ['--schema', schema, '--no-owner', '--no-privileges', '--inserts', '--rows-per-insert=200']
  const text = execFileSync(program, [...options, url.href], { encoding: 'utf8', maxBuffer: 2 ** 28 })
  return text
    .split('\n')
    .filter((line) => line !== '' && !/^(?:--|\\|SET |SELECT pg_catalog\.set_config)/.test(line))
    .join('\n')
    .replaceAll(schema, dumped)
}

/** Unpacks the recorded data of an earlier Pinfold release into a new folder, and a new schema on PostgreSQL. */
export async function copyOf(name: string) {
  const { masterKey, settings } = readRelease(name)
  return copyIn(join(folder, name, engine), masterKey, settings)
}

/** A copy of what the oldest commit has left behind, of which no answers were recorded. */
export async function copyOfOldest() {
  return copyIn(join(project, 'test/data/oldest', engine), '11'.repeat(32))
}

/** In a folder and a schema of its own: what `args` and `env` make every command use. */
async function copyIn(recorded: string, masterKey: string, settings: Env = {}) {
  const data = mkdtempSync(join(tmpdir(), 'pinfold-upgrade-'))
  const schema = `t_${randomBytes(8).toString('hex')}`
  const server = process.env.PINFOLD_TEST_DATABASE ?? ''
  const database = onPostgres ? `${server}${server.includes('?') ? '&' : '?'}schema=${schema}` : ''
  const query = async (text: string) => {
    const client = new pg.Client({ connectionString: server })
    await client.connect()
    await client.query(text).finally(() => client.end())
  }
  await unpack(readFileSync(join(recorded, 'data.tar.zst')), data)
  const dump = join(recorded, 'database.sql.zst')
  if (existsSync(dump)) await query(zstdDecompressSync(readFileSync(dump)).toString().replaceAll(dumped, schema))
  return {
    data,
    database,
    masterKey,
    env: { ...settings, ...(onPostgres ? { PINFOLD_MASTER_KEY: masterKey } : {}) } as Env,
    args: ['--data', data, ...(onPostgres ? ['--database', database] : [])],
    async [Symbol.asyncDispose]() {
      if (onPostgres) await query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)
      rmSync(data, { recursive: true, force: true })
    },
  }
}

export type Copy = Awaited<ReturnType<typeof copyOf>>

async function unpack(archive: Buffer, into: string): Promise<void> {
  const entries = extract()
  entries.end(zstdDecompressSync(archive))
  for await (const entry of entries) {
    const path = join(into, entry.header.name)
    if (relative(into, path).startsWith('..')) throw new Error(`${entry.header.name} leads out of the folder`)
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    writeFileSync(path, await buffer(entry), { mode: 0o600 })
  }
}

/** JSON to read and compare: members on lines of their own, but what is short on one. */
function pretty(value: unknown, indent = ''): string {
  const line = JSON.stringify(value)
  const isShort = line.length + indent.length <= 200
  if (value === null || typeof value !== 'object' || isShort) return line
  const inner = `${indent}  `
  const [open, close] = Array.isArray(value) ? '[]' : '{}'
  const members = Array.isArray(value)
    ? value.map((one) => pretty(one, inner))
    : Object.entries(value)
        .filter(([, member]) => member !== undefined)
        .map(([key, member]) => `${JSON.stringify(key)}: ${pretty(member, inner)}`)
  return `${open}\n${members.map((text) => inner + text).join(',\n')}\n${indent}${close}`
}
