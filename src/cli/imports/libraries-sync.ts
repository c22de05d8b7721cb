// Command that copies libraries from an index, in the order of their names. The server stores the progress with the libraries, so
// the same command continues after an interruption.
import { hash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { chunks } from '#lib/chunks.ts'
import { createOutgoing, OutgoingError } from '#lib/net/outgoing.ts'
import { hostOf, privateAddresses } from '#lib/net/private-addresses.ts'
import { CliError, exitCodes, failure, usageError } from '../framework/cli-error.ts'
import { type Command, type Options, outputOption, type Terminal } from '../framework/command.ts'
import { type OperatorApi, operatorDetails, operatorOptions, withOperator } from '../framework/operator.ts'
import { progressOf } from '../framework/progress.ts'
import { type ImportRecord, type Outcome, type Problem, printProblems, report, sendSome } from './import-batches.ts'
import { importRules } from './library-record.ts'
import { type LibrarySource, mavenRepository, mayPass, problemWith, pythonIndex, sourceUrl } from './library-sources.ts'

const defaultLimit = 1000
const atOnce = 8
const namesPerBatch = 64
const attempts = 3
const pauseMs = 500

export const librariesSync: Command = {
  details: `Adds new versions, and never deletes versions. After an interruption, the same command continues where it stopped. Libraries that the
source does not have, or with invalid data, are left out and listed; the exit code is then 1. The source can have any address;
http is only allowed on this machine.

${operatorDetails}`,
  options: [
    ...operatorOptions,
    {
      flags: '--python-index <url>',
      summary: 'URL of a Python package index with the JSON API (PEP 691), such as https://packages.example.com/simple',
    },
    {
      flags: '--maven-repository <url>',
      summary: 'URL of a Maven repository, such as https://packages.example.com/maven2',
    },
    {
      flags: '--name <name>',
      summary: 'Library to import: a Python package, or GROUP:ARTIFACT of Java; may be repeated',
      repeat: true,
    },
    { flags: '--names <file>', summary: 'File with a library on each line; # begins a comment' },
    { flags: '--all', summary: 'Import all packages of the Python package index' },
    {
      flags: '--limit <number>',
      summary: `With --all: maximum number of libraries, in the order of their names; default: ${defaultLimit}`,
    },
    { flags: '--remediated', summary: 'Mark all versions as builds in which vulnerabilities were fixed' },
    { flags: '--authorization <file>', summary: 'File with the value of the Authorization header for the source' },
    { flags: '--restart', summary: 'Start again from the beginning after an interruption' },
    outputOption,
  ],
  async run(terminal, options) {
    const source = await sourceOf(options)
    const names = await namesOf(terminal, options, source)
    const asked = options.all === true ? ['all', limitOf(options)] : names
    const id = hash('sha256', JSON.stringify([options.pythonIndex, options.mavenRepository, options.remediated, asked]))
    return withOperator(terminal, options, (api) => sync(terminal, options, api, { source, names, id }))
  },
}

type Sync = { source: LibrarySource; names: readonly string[]; id: string }

async function sync(terminal: Terminal, options: Options, api: OperatorApi, { source, names, id }: Sync) {
  const rules = importRules(id)
  const run = options.restart === true ? {} : await api.get(`/control/v1/artifactImportRuns/${id}`)
  const after = String(run.after ?? '')
  if (after !== '') terminal.say(`continuing after ${after}, where an earlier run was interrupted`)

  const left = names.filter((name) => name > after)
  const outcome: Outcome = { counts: {}, refused: [] }
  {
    using bar = progressOf(terminal, 'libraries', names.length)
    let done = names.length - left.length
    bar.at(done)
    try {
      for (const some of chunks(left, namesPerBatch)) {
        const fetched = await fetchAll(source, some, options.remediated === true)
        for (const one of fetched) if ('description' in one) outcome.refused.push(one)
        const records = fetched.filter((one) => 'body' in one)
        await sendSome(api, rules, records, outcome)
        done += some.length
        bar.at(done)
      }
      await api.post(rules.path, { run: { id, after: '' } })
    } catch (error) {
      printProblems(terminal, outcome.refused)
      throw error
    }
  }
  return report(terminal, options, rules, outcome)
}

/** Returns a record or a problem for each name, in the order of the names. A library without versions is left out. */
async function fetchAll(source: LibrarySource, names: readonly string[], remediated: boolean) {
  const found: (ImportRecord | Problem | undefined)[] = []
  const queue = names.entries()
  let stopped = false
  const worker = async () => {
    for (const [i, name] of queue) {
      if (stopped) return
      try {
        found[i] = await fetchOne(source, name, remediated)
      } catch (error) {
        stopped = true
        throw error
      }
    }
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
  return found.filter((one) => one !== undefined)
}

async function fetchOne(source: LibrarySource, name: string, remediated: boolean) {
  const file = source.pathOf(name)
  try {
    const record = await patiently(() => source.fetch(name))
    const versions = remediated ? record.versions.map((version) => ({ ...version, remediated })) : record.versions
    if (versions.length === 0) return undefined
    const one: ImportRecord = { id: name, file, body: { ...record, versions }, lineOf: () => 0 }
    return one
  } catch (error) {
    const problem = problemWith(error)
    if (problem) return { file, line: 0, ...problem } satisfies Problem
    throw error instanceof OutgoingError ? brokenOff(error, file) : error
  }
}

function brokenOff(error: OutgoingError, path: string): CliError {
  const { reason, status } = error
  const refused = reason === 'status' && (status === 401 || status === 403)
  const told = reason === 'status' ? `the source answered with status ${status}` : error.message
  const code = refused ? exitCodes.refused : mayPass(error) ? exitCodes.unavailable : exitCodes.failed
  return new CliError(
    code,
    `${path}: ${told}\nthe import stopped; run the same command again to continue from there`,
    error,
  )
}

async function patiently<T>(ask: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await ask()
    } catch (error) {
      if (!mayPass(error) || attempt === attempts) throw error
      await sleep(pauseMs * attempt)
    }
  }
}

async function sourceOf(options: Options): Promise<LibrarySource> {
  const { pythonIndex: python, mavenRepository: maven } = options as Record<string, string | undefined>
  if ((python === undefined) === (maven === undefined)) {
    throw usageError('nothing was imported: give either --python-index or --maven-repository')
  }
  const base = sourceUrl(python ?? maven ?? '', python === undefined ? '--maven-repository' : '--python-index')
  // HTTP without TLS is allowed only for a source on this machine.
  const stays = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(base.hostname)
  // The user chooses the host of the source, so this host may have a private address. Requests to other private addresses are
  // refused.
  const outgoing = createOutgoing({ allowed: privateAddresses([hostOf(base)]), allowHttp: stays })
  const authorization = options.authorization === undefined ? '' : await headerIn(String(options.authorization))
  return python === undefined
    ? mavenRepository(base, outgoing, authorization)
    : pythonIndex(base, outgoing, authorization)
}

async function namesOf(terminal: Terminal, options: Options, source: LibrarySource): Promise<string[]> {
  const names = options.name !== undefined || options.names !== undefined
  if (options.all === true ? names : options.limit !== undefined) {
    throw usageError('nothing was imported: --all cannot be combined with --name or --names, and --limit needs --all')
  }
  if (options.all === true) return await allNames(terminal, limitOf(options), source)
  const listed = options.names === undefined ? [] : (await textIn(String(options.names))).split('\n')
  const given = [...((options.name as readonly string[] | undefined) ?? []), ...listed]
  const written = given.map((line) => line.replace(/#.*/, '').trim()).filter((name) => name !== '')
  if (written.length === 0)
    throw usageError('nothing was imported: give libraries with --name or --names, or give --all')
  return [...new Set(written.map((name) => source.nameOf(name)))].sort()
}

async function allNames(terminal: Terminal, limit: number, source: LibrarySource): Promise<string[]> {
  if (!source.listNames)
    throw usageError(
      'nothing was imported: a Maven repository has no list of its libraries; give them with --name or --names',
    )
  try {
    const all = (await patiently(source.listNames)).sort()
    if (all.length > limit)
      terminal.say(`importing the first ${limit} of ${all.length} libraries; give a higher --limit for more`)
    return all.slice(0, limit)
  } catch (error) {
    const problem = problemWith(error)
    if (problem) {
      const { field, description } = problem
      throw failure(`the list of packages of the index: ${field === '' ? '' : `${field}: `}${description}`, error)
    }
    throw error instanceof OutgoingError ? brokenOff(error, 'the list of packages of the index') : error
  }
}

function limitOf({ limit }: Options): number {
  const number = Number(limit ?? defaultLimit)
  if (Number.isSafeInteger(number) && number > 0) return number
  throw usageError('--limit must be a whole number above 0')
}

async function headerIn(path: string): Promise<string> {
  const header = (await textIn(path)).trim()
  if (!/^[\x20-\x7e]+$/.test(header)) throw usageError(`${path}: must contain one line of printable ASCII characters`)
  return header
}

async function textIn(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    throw usageError(`${path}: cannot be read`, error)
  }
}
