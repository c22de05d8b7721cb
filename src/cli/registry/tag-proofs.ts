// Commands that get and verify proofs of tag history.
import { readFileSync } from 'node:fs'
import { isDigest } from '#lib/digest.ts'
import { isRepoPath, isTagName } from '#lib/oci-names.ts'
import { jsonText, plain } from '#lib/terminal/plain-text.ts'
import { PolicyError, parsePolicy } from '#lib/tlog/policy.ts'
import { type Claim, NotProved, type Proved, provedBy } from '#lib/tlog/tag-proof.ts'
import { rootOf } from '#lib/uid.ts'
import { apiCommand } from '../framework/api-pages.ts'
import type { ApiReader } from '../framework/api-reader.ts'
import { CliError, exitCodes, failure, usageError } from '../framework/cli-error.ts'
import type { Options, Terminal } from '../framework/command.ts'
import { httpCall } from '../framework/http-call.ts'
import { imageNamed } from './image-names.ts'
import { momentOf, timeOf } from './image-options.ts'

const timeoutMs = 60_000

async function textAt({ origin, token }: ApiReader, path: string, missing = ''): Promise<string> {
  const headers = { authorization: `Bearer ${token}` }
  const { status, text } = await httpCall(new URL(path, origin), { method: 'GET', headers, timeoutMs })
  if (status === 200) return text.replace(/\n$/, '')
  // If the server has no proofs, the path does not exist, and the 404 has this text.
  if (missing !== '' && status === 404 && text.includes(' was not found')) throw failure(missing)
  const code =
    status === 401 || status === 403 ? exitCodes.refused : status >= 500 ? exitCodes.unavailable : exitCodes.failed
  throw new CliError(code, plain(text.trim()))
}

export const proof = apiCommand({
  details: `Store the output in a file. pinfold tags verify verifies it offline, with the public keys that pinfold tags proof-policy prints.`,
  arguments: [{ name: '<image>', summary: 'Image with its tag, such as acme/team/app:1.0' }],
  options: [{ flags: '--at <time>', summary: 'Time of the proof: 2026-11-01, or 2026-11-01T12:00:00Z; default: now' }],
  check: (options) => void timeOf(options, '--at'),
  async run(api, options, terminal) {
    const at = timeOf(options, '--at')
    const { path, tag, repo } = await imageNamed(api, options.image)
    if (tag === undefined) throw usageError(`the tag is missing; give it as ${path}:TAG`)
    const query = at === undefined ? '' : `?at=${encodeURIComponent(at)}`
    const where = `/ledger/${rootOf(repo)}/repos/${repo}/tags/${encodeURIComponent(tag)}/proof${query}`
    const missing = `no proof was found: ${path} had no tag ${tag}${at === undefined ? '' : ` at ${at}`}`
    terminal.print(
      await textAt(api, where, `${missing}\npinfold tags history ${path}:${tag} shows its digests with their times`),
    )
  },
})

export const proofPolicy = apiCommand({
  details:
    'Get the keys once, over a connection that you trust, and keep them. Keys that somebody sends along with a proof prove nothing.',
  arguments: [{ name: '<image>', summary: 'Any image of the organization, such as acme/team/app' }],
  options: [],
  async run(api, options, terminal) {
    const { repo } = await imageNamed(api, options.image)
    terminal.print(await textAt(api, `/ledger/${rootOf(repo)}/policy`))
  },
})

/** Exit code if the proof shows when the assignment began, but not how long it lasted. */
const openCode = 3

/** Verifies a proof without a network connection. */
export function verifyProof(terminal: Terminal, image: string, options: Options): number {
  const { at, proof: file, policy } = options
  if (at === undefined || file === undefined || policy === undefined) {
    throw usageError('nothing was verified: give --at, --proof and --policy')
  }
  const claim: Claim = { ...referenceOf(image), at: momentOf(String(at), '--at') }
  try {
    const proved = provedBy(read(String(file), '--proof'), parsePolicy(read(String(policy), '--policy')), claim)
    printVerified(terminal, claim, proved, options)
    return proved.until === '' && options.open !== true ? openCode : exitCodes.ok
  } catch (error) {
    if (error instanceof PolicyError) throw new CliError(exitCodes.config, plain(error.message), error)
    if (error instanceof NotProved)
      throw failure(`the proof is not valid for this image: ${plain(error.message)}`, error)
    throw error
  }
}

/** Parts of `[host/]acme/team/app:tag@digest`. */
function referenceOf(image: string): Omit<Claim, 'at'> {
  const [, name = '', tag = '', digest = ''] = /^([^@]*):([^:/@]*)@(.*)$/.exec(image) ?? []
  const [first = '', ...rest] = name.split('/')
  const isHost = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost')
  const path = isHost ? rest.join('/') : name
  if (isRepoPath(path) && isTagName(tag) && isDigest(digest)) return { host: isHost ? first : '', path, tag, digest }
  const why = 'give the image with tag and digest, such as registry.example.com/acme/app:1.0@sha256:…'
  throw usageError(`nothing was verified, because ${plain(image)} has no tag or no digest: ${why}`)
}

function read(file: string, flag: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw usageError(`${flag}: ${(error as Error).message}`, error)
  }
}

const kinds = {
  live: 'written when the tag was updated',
  import: 'imported with the times of the importer, which the server did not verify',
  backfill: 'recorded before the log began, and added when it began',
}

function printVerified(terminal: Terminal, claim: Claim, proved: Proved, { output }: Options): void {
  if (output === 'json') return void terminal.print(jsonText({ ...claim, ...proved }, 2))
  const { origin, from, until, kind, size, witnesses } = proved
  terminal.print(`${claim.path}:${claim.tag} had the digest ${claim.digest}`)
  terminal.print(`from ${from} until ${until === '' ? 'a time that is not in the proof' : until}`)
  terminal.print(
    `according to the transparency log ${plain(origin)} with ${size} entries; the entry was ${kinds[kind]}`,
  )
  for (const { name, seconds } of witnesses) {
    terminal.print(`cosigned by the witness ${plain(name)} at ${new Date(seconds * 1000).toISOString()}`)
  }
  if (until !== '') return
  terminal.say('pinfold: the proof does not show whether the tag was updated before this time')
  terminal.say('pinfold: get a newer proof with pinfold tags proof --at, or give --open to accept this one')
}
