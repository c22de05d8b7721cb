// Commands for proofs of tag history: get them, and verify them.
import { readFileSync } from 'node:fs'
import { isDigest } from '#lib/digest.ts'
import { isRepoPath, isTagName } from '#lib/oci-names.ts'
import { PolicyError, parsePolicy } from '#lib/tlog/policy.ts'
import { type Claim, NotProved, type Proved, provedBy } from '#lib/tlog/tag-proof.ts'
import { rootOf } from '#lib/uid.ts'
import { apiCommand } from '../framework/api-pages.ts'
import type { ApiReader } from '../framework/api-reader.ts'
import { CliError, exitCodes, failure, usageError } from '../framework/cli-error.ts'
import type { Options, Terminal } from '../framework/command.ts'
import { httpCall } from '../framework/http-call.ts'
import { jsonText, plain } from '../framework/plain-text.ts'
import { imageOf, momentOf, timeOf } from './image-options.ts'

const timeoutMs = 60_000

async function textAt({ origin, token }: ApiReader, path: string, missing = ''): Promise<string> {
  const headers = { authorization: `Bearer ${token}` }
  const { status, text } = await httpCall(new URL(path, origin), { method: 'GET', headers, timeoutMs })
  if (status === 200) return text.replace(/\n$/, '')
  // The path itself is not there where the server serves no proofs.
  if (missing !== '' && status === 404 && text.includes(' was not found')) throw failure(missing)
  const code =
    status === 401 || status === 403 ? exitCodes.refused : status >= 500 ? exitCodes.unavailable : exitCodes.failed
  throw new CliError(code, plain(text.trim()))
}

export const proof = apiCommand({
  details: `pinfold verify says what it proves, with the policy that pinfold images tags proof-policy prints.`,
  arguments: [{ name: '<image>', summary: 'With its tag, such as acme/team/app:1.0' }],
  options: [{ flags: '--at <time>', summary: 'As of this time: 2026-11-01, or 2026-11-01T12:00:00Z; now without it' }],
  check: (options) => void timeOf(options, '--at'),
  async run(api, options, terminal) {
    const at = timeOf(options, '--at')
    const { path, tag, repo } = await imageOf(api, options)
    if (tag === undefined) throw usageError(`${path} names no tag: ${path}:TAG does`)
    const query = at === undefined ? '' : `?at=${encodeURIComponent(at)}`
    const where = `/ledger/${rootOf(repo)}/repos/${repo}/tags/${encodeURIComponent(tag)}/proof${query}`
    const missing = `${path}:${tag} was not found${at === undefined ? '' : ` at ${at}`}`
    terminal.print(
      await textAt(api, where, `${missing}\npinfold images history ${path}:${tag} says what it was, and when`),
    )
  },
})

export const proofPolicy = apiCommand({
  details:
    'Get it once, over a connection that you trust, and keep it: one that comes along with a proof says nothing.',
  arguments: [{ name: '<image>', summary: 'Any image of the organisation, such as acme/team/app' }],
  options: [],
  async run(api, options, terminal) {
    const { repo } = await imageOf(api, options)
    terminal.print(await textAt(api, `/ledger/${rootOf(repo)}/policy`))
  },
})

/** Exit code if only the start of the assignment is proved. */
const openCode = 3

/** Checks a proof without a network connection. */
export function verifyProof(terminal: Terminal, image: string, options: Options): number {
  const { at, proof: file, policy } = options
  if (at === undefined || file === undefined || policy === undefined) {
    throw usageError('the proof of an image takes --at, --proof and --policy')
  }
  const claim: Claim = { ...referenceOf(image), at: momentOf(String(at), '--at') }
  try {
    const proved = provedBy(read(String(file), '--proof'), parsePolicy(read(String(policy), '--policy')), claim)
    tell(terminal, claim, proved, options)
    return proved.until === '' && options.open !== true ? openCode : exitCodes.ok
  } catch (error) {
    if (error instanceof PolicyError) throw new CliError(exitCodes.config, plain(error.message), error)
    if (error instanceof NotProved) throw failure(`not proved: ${plain(error.message)}`, error)
    throw error
  }
}

/** `[host/]acme/team/app:tag@digest`. */
function referenceOf(image: string): Omit<Claim, 'at'> {
  const [, name = '', tag = '', digest = ''] = /^([^@]*):([^:/@]*)@(.*)$/.exec(image) ?? []
  const [first = '', ...rest] = name.split('/')
  const isHost = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost')
  const path = isHost ? rest.join('/') : name
  if (isRepoPath(path) && isTagName(tag) && isDigest(digest)) return { host: isHost ? first : '', path, tag, digest }
  const why = 'name it with tag and digest, as in registry.example.com/acme/app:1.0@sha256:…'
  throw usageError(`${plain(image)} is not what a proof is about: ${why}`)
}

function read(file: string, flag: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw usageError(`${flag}: ${(error as Error).message}`, error)
  }
}

const kinds = {
  live: 'written as it happened',
  import: 'imported: the times are those that somebody told the server',
  backfill: 'written before the log began, and added to it then',
}

function tell(terminal: Terminal, claim: Claim, proved: Proved, { output }: Options): void {
  if (output === 'json') return void terminal.print(jsonText({ ...claim, ...proved }, 2))
  const { origin, from, until, kind, size, witnesses } = proved
  terminal.print(`${claim.path}:${claim.tag} pointed to ${claim.digest}`)
  terminal.print(`from ${from} until ${until === '' ? 'a time that the proof does not tell' : until}`)
  terminal.print(`by the log ${plain(origin)} of ${size} entries, ${kinds[kind]}`)
  for (const { name, seconds } of witnesses) {
    terminal.print(`seen by ${plain(name)} on ${new Date(seconds * 1000).toISOString()}`)
  }
  if (until === '')
    terminal.say('pinfold: that it has not moved again is not proved; a later proof for this time can show it')
}
