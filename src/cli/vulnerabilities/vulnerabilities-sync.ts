// Brings what is known of vulnerabilities up to date, one source after the other. One that fails keeps what it said.
import { mkdirSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createOutgoing, type Outgoing, OutgoingError } from '#lib/net/outgoing.ts'
import { allPrivateAddresses } from '#lib/net/private-addresses.ts'
import { type Source, sourceNamed } from '#sources/definitions.ts'
import { fetchSource, type Read } from '#sources/fetch.ts'
import { WrongRecord } from '#sources/values.ts'
import { type Outcome, type Problem, sayRefused, sendSome } from '../imports/import-batches.ts'
import { sourceUrl } from '../imports/library-sources.ts'
import { CliError, type Command, exitCodes, type Options, outputOption, type Terminal } from '../shape/command.ts'
import { type OperatorApi, operatorDetails, operatorOptions, withOperator } from '../shape/operator.ts'
import { plain } from '../shape/plain-text.ts'
import { configOf } from '../shape/settings.ts'
import { recordRules, toRecord } from './source-records.ts'

export const vulnerabilitiesSync: Command = {
  name: 'sync',
  summary: 'Take in what sources of vulnerabilities say now',
  details: `Reads the sources that PINFOLD_VULNERABILITY_SOURCES names, or those of --source: osv/ECOSYSTEM, secdb/BRANCH/REPOSITORY of
Alpine, or debian-tracker. Only what has changed is read where a source tells, and all of it with --full. A source that
cannot be read keeps what it said before, and the others are read; the exit code is 1 then, and when a record is wrong, which
is left out and named. A mirror may be at any address; http is asked on this machine only.

${operatorDetails}`,
  options: [
    ...operatorOptions,
    { flags: '--source <name>', summary: 'A source, such as osv/PyPI; may be repeated', repeat: true },
    { flags: '--mirror <url>', summary: 'Where copies of the sources are, instead of PINFOLD_VULNERABILITY_MIRROR' },
    { flags: '--full', summary: 'Read all of each source, also what has not changed' },
    outputOption,
  ],
  async run(terminal, options) {
    const config = configOf(terminal.env, options)
    const given = options.mirror === undefined ? config.vulnerabilityMirror : String(options.mirror)
    const mirror = given === '' ? undefined : sourceUrl(given, '--mirror')
    const names = (options.source as readonly string[] | undefined) ?? config.vulnerabilitySources
    const sources = [...new Set(names)].map((name) => {
      const source = sourceNamed(name, mirror?.href ?? '')
      if (!source)
        throw new CliError(
          exitCodes.usage,
          `${name} is no source: give osv/ECOSYSTEM, secdb/BRANCH/REPOSITORY or debian-tracker`,
        )
      return source
    })
    // What stays on this machine nobody else can read.
    const stays = mirror !== undefined && /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(mirror.hostname)
    const outgoing = createOutgoing({ allowed: allPrivateAddresses, allowHttp: stays })
    mkdirSync(config.data, { recursive: true, mode: 0o700 })
    const sync = { outgoing, data: config.data, full: options.full === true }
    return withOperator(terminal, options, (api) => syncAll(terminal, options, api, sources, sync))
  },
}

type Sync = { outgoing: Outgoing; data: string; full: boolean }
/** What is known of the last reading. */
type Last = { name: string; fingerprint: string; buildTime?: string }
type Result = { name: string; error: string; refused: readonly Problem[]; withdrawn: number; counts: Outcome['counts'] }

async function syncAll(terminal: Terminal, options: Options, api: OperatorApi, sources: readonly Source[], sync: Sync) {
  const { sources: listed = [] } = await api.get('/control/v1/vulnerabilitySources')
  const known = new Map((listed as Last[]).map((one) => [one.name, one]))
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
      terminal.print(JSON.stringify({ ...result, refused: result.refused.length }))
    } else terminal.print(plain(`${source.name}: ${toldOf(result)}`))
  }
  return failed ? exitCodes.failed : exitCodes.ok
}

function toldOf({ error, counts, withdrawn, refused }: Result): string {
  if (error !== '') return `failed, and keeps what it said: ${error}`
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
  { outgoing, data, fingerprint, buildTime: lastBuild }: Sync & Required<Pick<Last, 'fingerprint' | 'buildTime'>>,
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
    const fetched = await fetchSource(source, { outgoing, folder, fingerprint, buildTime: lastBuild })
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
    // A record that is wrong now is not one that was taken back, and the next run is to look again.
    const whole = outcome.refused.length === 0
    return await finish({ fingerprint: whole ? next : '', ...built, complete: complete && whole }, '')
  } catch (error) {
    if (!(error instanceof OutgoingError) && !(error instanceof WrongRecord)) throw error
    return await finish({}, messageOf(error))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

function messageOf(error: OutgoingError | WrongRecord): string {
  return error instanceof OutgoingError && error.status !== undefined ? `the answer was ${error.status}` : error.message
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
