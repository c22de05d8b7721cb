// Command that updates the data of vulnerability sources, one after the other. If a source fails, its former data is kept.
import { mkdirSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { ListVulnerabilitySourcesResponseJson } from '#gen/pinfold/control/scanning/v1/sources_pb.ts'
import { createOutgoing } from '#lib/net/outgoing.ts'
import { jsonText, plain } from '#lib/terminal/plain-text.ts'
import { fetchPacked, type PackedSource, readBundle } from '#sources/bundle.ts'
import type { Source } from '#sources/definitions.ts'
import { type Fetched, fetchSource } from '#sources/fetch.ts'
import { type RecordSink, type Refused, type Synced, syncSource } from '#sources/sync-source.ts'
import { WrongRecord } from '#sources/values.ts'
import { ApiError } from '../framework/api-client.ts'
import { exitCodes, failure, usageError } from '../framework/cli-error.ts'
import { type Command, type Options, outputOption, type Terminal } from '../framework/command.ts'
import { type OperatorApi, operatorDetails, operatorOptions, withOperator } from '../framework/operator.ts'
import { configOf } from '../framework/settings.ts'
import {
  type Import,
  type ImportRecord,
  type Outcome,
  type Problem,
  printProblems,
  sendSome,
} from '../imports/import-batches.ts'
import { type BundleLocation, bundleLocation } from './bundle-locations.ts'
import { registryCredentials, requireSource, sourceOptions, sourcesOf } from './source-options.ts'

export const vulnerabilitiesSync: Command = {
  details: `Reads the data sources of PINFOLD_VULNERABILITY_SOURCES, or those of --source: osv/ECOSYSTEM, secdb/BRANCH/REPOSITORY of Alpine,
debian-tracker, kev or epss. The default, auto, reads what the packages of stored images need. Reads only changes if the source supports that; --full reads everything.
A source that cannot be read keeps its former data, and the others are still read. Invalid records are left out and listed. In
both cases the exit code is 1. A mirror can have any address; http is only allowed on this machine.

With --from, reads a bundle of pinfold vulnerabilities pack instead, and sends no other requests. If a layer does not match its
digest, that source keeps its former data. pinfold vulnerabilities pack --help explains the password for a registry.

${operatorDetails}`,
  options: [
    ...operatorOptions,
    ...sourceOptions,
    {
      flags: '--from <bundle>',
      summary: 'Bundle of pinfold vulnerabilities pack: a folder such as ./bundle, or HOST/PATH:TAG',
    },
    { flags: '--full', summary: 'Read all records of each source, not only changes' },
    outputOption,
  ],
  async run(terminal, options) {
    if (options.from !== undefined && options.mirror !== undefined) {
      throw usageError('--from and --mirror cannot be combined; give only one of them')
    }
    const { data } = configOf(terminal, options)
    // Checks the options before it opens the database.
    const bundle = options.from === undefined ? undefined : await byBundle(terminal, options)
    if (!bundle) sourcesOf(terminal, options)
    mkdirSync(data, { recursive: true, mode: 0o700 })
    return withOperator(terminal, options, async (api) => {
      const known = (await api.get('/control/v1/vulnerabilitySources')) as ListVulnerabilitySourcesResponseJson
      const { sources, fetch } = bundle ?? bySources(terminal, options, known.needed ?? [])
      if (sources.length === 0) terminal.say(nothingNeeded)
      return syncAll(terminal, options, api, sources, { fetch, data, full: options.full === true, known })
    })
  },
}

type Last = { fingerprint: string; buildTime: string }
type Fetch = (source: Source, last: Last & { folder: string }) => Promise<Fetched>
type Way = { sources: readonly Source[]; fetch: Fetch }

const nothingNeeded =
  'pinfold: no data source was read, because no stored image has known packages; push an image, or name data sources with --source'

function bySources(terminal: Terminal, options: Options, needed: readonly string[]): Way {
  const { sources, way } = sourcesOf(terminal, options, needed)
  const outgoing = createOutgoing(way)
  return { sources, fetch: (source, last) => fetchSource(source, { outgoing, ...last }) }
}

/** Reads the sources from a bundle. `--source` selects some of its sources. */
async function byBundle(terminal: Terminal, options: Options): Promise<Way> {
  const location = await bundleLocation(String(options.from), (registry) =>
    registryCredentials(terminal, options, registry),
  )
  const packed = await readLocation(location)
  const names = (options.source as readonly string[] | undefined) ?? packed.map(({ name }) => name)
  return {
    sources: [...new Set(names)].map((name) => ({ ...requireSource(name, ''), url: location.url })),
    async fetch({ name }, { folder, fingerprint }) {
      const one = packed.find((found) => found.name === name)
      if (!one) throw new WrongRecord('is not in the bundle')
      return fetchPacked(one, location, { file: join(folder, 'layer'), fingerprint })
    },
  }
}

async function readLocation(location: BundleLocation): Promise<PackedSource[]> {
  try {
    return await readBundle(await location.manifest(), location)
  } catch (error) {
    throw error instanceof WrongRecord ? failure(`${location.url}: ${error.message}`) : error
  }
}

type Sync = { fetch: Fetch; data: string; full: boolean; known: ListVulnerabilitySourcesResponseJson }
type Result = Synced & { name: string }

async function syncAll(terminal: Terminal, options: Options, api: OperatorApi, sources: readonly Source[], sync: Sync) {
  const known = new Map((sync.known.sources ?? []).map((one) => [one.name, one]))
  let failed = false
  for (const source of sources) {
    terminal.status?.(`${source.name} …`)
    const { fingerprint = '', buildTime = '' } = known.get(source.name) ?? {}
    const last = sync.full ? { fingerprint: '', buildTime: '' } : { fingerprint, buildTime }
    const result = await syncOne(terminal, api, source, { ...sync, ...last })
    terminal.status?.('')
    failed ||= result.error !== '' || result.refused.length > 0
    printProblems(terminal, result.refused.map(toProblem))
    if (options.output === 'json') {
      terminal.print(jsonText({ ...result, refused: result.refused.length }))
    } else terminal.print(plain(`${source.name}: ${resultText(result)}`))
  }
  return failed ? exitCodes.failed : exitCodes.ok
}

const toProblem = ({ at, field, problem }: Refused): Problem => ({ file: at, line: 0, field, description: problem })

function resultText({ error, counts: { created, updated, unchanged }, withdrawn, refused }: Result): string {
  if (error !== '' && refused.length === 0) return `failed, and keeps its former data: ${error}`
  const wrong = refused.length > 0 ? `; ${refused.length} problems, see above` : ''
  return `${created} new, ${updated} changed, ${unchanged} unchanged, ${withdrawn} withdrawn${wrong}`
}

async function syncOne(
  terminal: Terminal,
  api: OperatorApi,
  source: Source,
  { fetch, data, ...last }: Sync & Last,
): Promise<Result> {
  const { name } = source
  const folder = await mkdtemp(join(data, 'sync-'))
  try {
    const sink = await apiSink(api, source)
    const onProgress = (done: number) => terminal.status?.(`${name}: ${done} records …`)
    return { name, ...(await syncSource(() => fetch(source, { ...last, folder }), sink, { onProgress })) }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Starts a run for a source at the server. */
async function apiSink(api: OperatorApi, { name, url, licence, ecosystems }: Source): Promise<RecordSink> {
  const source = { name, url, licence, ecosystems }
  const { run } = await api.post('/control/v1/vulnerabilitySources:begin', { source })
  const put = async (rules: Import, given: readonly ImportRecord[], onRefused: (one: Refused) => void) => {
    const outcome: Outcome = { counts: {}, refused: [] }
    await ofReading(() => sendSome(api, rules, given, outcome))
    for (const { file, field, description } of outcome.refused) onRefused({ at: file, field, problem: description })
    return { created: 0, updated: 0, unchanged: 0, ...outcome.counts }
  }
  return {
    put: (records, onRefused) => {
      const given = records.map((one) => toRecord(one, name))
      return put(recordRules(run), given, onRefused)
    },
    putRanks: (ranks, onRefused) => {
      const given = ranks.map((one) => toRank(one, name))
      return put(rankRules(run), given, onRefused)
    },
    async finish({ buildTime, ...end }) {
      const body = { run, ...end, ...(buildTime === '' ? {} : { buildTime }) }
      const { withdrawn = 0 } = await ofReading(() => api.post('/control/v1/vulnerabilitySources:finish', body))
      return { withdrawn: Number(withdrawn) }
    },
  }
}

/** Converts errors of the server that concern only this run, for example because a second run has replaced it. */
async function ofReading<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof ApiError && error.violations.length > 0) throw new WrongRecord(error.message)
    throw error
  }
}

/** Record of a data source, with the member names of the API. */
type Given = {
  id: string
  publishTime: string
  modifyTime: string
  withdrawTime: string
  affected: readonly { qualifiers: object }[]
}

/** Import of the records of one run, for `sendSome`. */
export function recordRules(run: unknown): Import {
  return {
    what: 'records',
    path: '/control/v1/vulnerabilitySources:put',
    request: (records: readonly object[]) => ({ run, records }),
    member: 'records',
  }
}

/** Converts a record to the form of the API. */
export function toRecord<R extends Given>(record: R, file: string): ImportRecord {
  const { publishTime, modifyTime, withdrawTime, affected, ...rest } = record
  const body = {
    ...rest,
    ...(publishTime === '' ? {} : { publishTime }),
    ...(modifyTime === '' ? {} : { modifyTime }),
    ...(withdrawTime === '' ? {} : { withdrawTime }),
    affected: affected.map(({ qualifiers, ...one }) => ({ ...one, ...qualifiers })),
  }
  return { id: record.id, file: `${file}/${record.id}`, body, lineOf: () => 0 }
}

/** Import of the ranks of one run, for `sendSome`. */
function rankRules(run: unknown): Import {
  return {
    what: 'ranks',
    path: '/control/v1/vulnerabilitySources:putRanks',
    request: (ranks: readonly object[]) => ({ run, ranks }),
    member: 'ranks',
  }
}

/** Converts a rank to the form of the API. */
function toRank(rank: { cve: string }, file: string): ImportRecord {
  return { id: rank.cve, file: `${file}/${rank.cve}`, body: rank, lineOf: () => 0 }
}
