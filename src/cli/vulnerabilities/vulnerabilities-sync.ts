// Brings what is known of vulnerabilities up to date, one source after the other. One that fails keeps what it said.
import { mkdirSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createOutgoing, OutgoingError } from '#lib/net/outgoing.ts'
import { fetchPacked, type PackedSource, readBundle } from '#sources/bundle.ts'
import type { Source } from '#sources/definitions.ts'
import { type Fetched, fetchSource, type Read } from '#sources/fetch.ts'
import { WrongRecord } from '#sources/values.ts'
import { type Outcome, type Problem, sayRefused, sendSome } from '../imports/import-batches.ts'
import { CliError, type Command, exitCodes, type Options, outputOption, type Terminal } from '../shape/command.ts'
import { type OperatorApi, operatorDetails, operatorOptions, withOperator } from '../shape/operator.ts'
import { jsonText, plain } from '../shape/plain-text.ts'
import { configOf } from '../shape/settings.ts'
import { type BundlePlace, bundlePlace } from './bundle-places.ts'
import { registryCredentials } from './registry-credentials.ts'
import { messageOf, requireSource, sourceOptions, sourcesOf } from './source-options.ts'
import { recordRules, toRecord } from './source-records.ts'

export const vulnerabilitiesSync: Command = {
  name: 'sync',
  summary: 'Take in what sources of vulnerabilities say now',
  details: `Reads the sources that PINFOLD_VULNERABILITY_SOURCES names, or those of --source: osv/ECOSYSTEM, secdb/BRANCH/REPOSITORY of
Alpine, or debian-tracker. Only what has changed is read where a source tells, and all of it with --full. A source that
cannot be read keeps what it said before, and the others are read; the exit code is 1 then, and when a record is wrong, which
is left out and named. A mirror may be at any address; http is asked on this machine only.

With --from all sources of a bundle that pinfold vulnerabilities pack made are read, or those of --source, and nothing else is
asked. A layer that is not what its digest says keeps that source as it was. See pack about the password for a registry.

${operatorDetails}`,
  options: [
    ...operatorOptions,
    ...sourceOptions,
    { flags: '--from <place>', summary: 'A bundle that pack made: a folder such as ./bundle, or HOST/PATH:TAG' },
    { flags: '--full', summary: 'Read all of each source, also what has not changed' },
    outputOption,
  ],
  async run(terminal, options) {
    if (options.from !== undefined && options.mirror !== undefined) {
      throw new CliError(exitCodes.usage, 'give --from or --mirror, not both')
    }
    const { data } = configOf(terminal.env, options)
    const { sources, fetch } =
      options.from === undefined ? bySources(terminal, options) : await byBundle(terminal, options)
    mkdirSync(data, { recursive: true, mode: 0o700 })
    const sync = { fetch, data, full: options.full === true }
    return withOperator(terminal, options, (api) => syncAll(terminal, options, api, sources, sync))
  },
}

type Last = { fingerprint: string; buildTime: string }
type Fetch = (source: Source, last: Last & { folder: string }) => Promise<Fetched>
type Way = { sources: readonly Source[]; fetch: Fetch }

function bySources(terminal: Terminal, options: Options): Way {
  const { sources, way } = sourcesOf(terminal, options)
  const outgoing = createOutgoing(way)
  return { sources, fetch: (source, last) => fetchSource(source, { outgoing, ...last }) }
}

/** A bundle says which sources it has; --source picks some of them. */
async function byBundle(terminal: Terminal, options: Options): Promise<Way> {
  const place = await bundlePlace(String(options.from), (registry) => registryCredentials(terminal, options, registry))
  const packed = await readPlace(place)
  const names = (options.source as readonly string[] | undefined) ?? packed.map(({ name }) => name)
  return {
    sources: [...new Set(names)].map((name) => ({ ...requireSource(name, ''), url: place.url })),
    async fetch({ name }, { folder, fingerprint }) {
      const one = packed.find((found) => found.name === name)
      if (!one) throw new WrongRecord('is not in the bundle')
      return fetchPacked(one, place, { file: join(folder, 'layer'), fingerprint })
    },
  }
}

async function readPlace(place: BundlePlace): Promise<PackedSource[]> {
  try {
    return await readBundle(await place.manifest(), place)
  } catch (error) {
    throw error instanceof WrongRecord ? new CliError(exitCodes.failed, `${place.url}: ${error.message}`) : error
  }
}

type Sync = { fetch: Fetch; data: string; full: boolean }
type Known = { name: string; fingerprint: string; buildTime?: string }
type Result = { name: string; error: string; refused: readonly Problem[]; withdrawn: number; counts: Outcome['counts'] }

async function syncAll(terminal: Terminal, options: Options, api: OperatorApi, sources: readonly Source[], sync: Sync) {
  const { sources: listed = [] } = await api.get('/control/v1/vulnerabilitySources')
  const known = new Map((listed as Known[]).map((one) => [one.name, one]))
  let failed = false
  for (const source of sources) {
    terminal.status?.(`${source.name} …`)
    const { fingerprint = '', buildTime = '' } = known.get(source.name) ?? {}
    const last = sync.full ? { fingerprint: '', buildTime: '' } : { fingerprint, buildTime }
    const result = await syncOne(terminal, api, source, { ...sync, ...last })
    terminal.status?.('')
    failed ||= result.error !== '' || result.refused.length > 0
    sayRefused(terminal, result.refused)
    if (options.output === 'json') {
      terminal.print(jsonText({ ...result, refused: result.refused.length }))
    } else terminal.print(plain(`${source.name}: ${toldOf(result)}`))
  }
  return failed ? exitCodes.failed : exitCodes.ok
}

function toldOf({ error, counts, withdrawn, refused }: Result): string {
  if (error !== '' && refused.length === 0) return `failed, and keeps what it said: ${error}`
  const { created = 0, updated = 0, unchanged = 0 } = counts
  const wrong = refused.length > 0 ? `; ${refused.length} problems, see above` : ''
  return `${created} new, ${updated} changed, ${unchanged} as before, ${withdrawn} withdrawn${wrong}`
}

const atOnce = 500
const mostProblems = 10_000

async function syncOne(
  terminal: Terminal,
  api: OperatorApi,
  source: Source,
  { fetch, data, fingerprint, buildTime: lastBuild }: Sync & Last,
): Promise<Result> {
  const { name, url, licence, ecosystems } = source
  const { run } = await api.post('/control/v1/vulnerabilitySources:begin', {
    source: { name, url, licence, ecosystems },
  })
  const rules = recordRules(run)
  const outcome: Outcome = { counts: {}, refused: [] }
  const finish = async (end: object, error: string): Promise<Result> => {
    const { withdrawn = 0 } = await api.post('/control/v1/vulnerabilitySources:finish', { run, ...end, error })
    return { name, error, withdrawn: Number(withdrawn), ...outcome }
  }
  const folder = await mkdtemp(join(data, 'sync-'))
  try {
    const fetched = await fetch(source, { folder, fingerprint, buildTime: lastBuild })
    let done = 0
    for await (const some of batched(fetched.records, atOnce)) {
      if (outcome.refused.length > mostProblems) throw new WrongRecord(`more than ${mostProblems} records are wrong`)
      const problems = some.flatMap((one) => ('problem' in one ? [one] : []))
      outcome.refused.push(
        ...problems.map(({ at, problem }) => ({ file: at, line: 0, field: '', description: problem })),
      )
      await sendSome(
        api,
        rules,
        some.flatMap((one) => ('record' in one ? [toRecord(one.record, name)] : [])),
        outcome,
      )
      done += some.length
      terminal.status?.(`${name}: ${done} records …`)
    }
    const { fingerprint: next, buildTime, complete } = fetched
    const built = buildTime === '' ? {} : { buildTime }
    // A record that is wrong now is not one that was taken back, and what is left out must not look as if it was read.
    const wrong = outcome.refused.length
    if (wrong > 0) return await finish({}, `${wrong} ${wrong === 1 ? 'record is' : 'records are'} wrong`)
    return await finish({ fingerprint: next, ...built, complete }, '')
  } catch (error) {
    if (!(error instanceof OutgoingError) && !(error instanceof WrongRecord)) throw error
    return await finish({}, messageOf(error))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function* batched(reads: AsyncIterable<Read>, most: number): AsyncGenerator<Read[]> {
  let some: Read[] = []
  for await (const one of reads) {
    some.push(one)
    if (some.length < most) continue
    yield some
    some = []
  }
  if (some.length > 0) yield some
}
