// What keeps a manifest, and the way to delete it all the same.
import { isDigest } from '#lib/digest.ts'
import { apiReader, callerOptions } from '../../shape/api-pages.ts'
import type { ApiReader } from '../../shape/api-reader.ts'
import { CliError, type Command, exitCodes, outputOption, type Terminal } from '../../shape/command.ts'
import { confirm, yesOption } from '../../shape/outputs.ts'
import { jsonText, plain, table } from '../../shape/plain-text.ts'
import { registryOf } from '../../shape/session.ts'
import { findImage, imageNameOf } from '../image-names.ts'

type Kept = { reason?: string; until?: string; rule?: string; tags?: string[]; keptWith?: string; digest: string }
type Named = { repo: string; path: string; digest: string }

/** `acme/app@sha256:…` or `acme/app:tag`; without either the digest is empty. */
async function manifestNamed(api: ApiReader, text: string): Promise<Named> {
  const at = text.indexOf('@')
  const digest = at < 0 ? '' : text.slice(at + 1)
  if (at >= 0 && !isDigest(digest))
    throw new CliError(exitCodes.usage, `${digest} is no digest: sha256: and 64 hex digits`)
  const { path, tag } = imageNameOf(at < 0 ? text : text.slice(0, at), registryOf(api.session))
  const repo = await findImage(api, path)
  return { repo, path, digest: digest === '' && tag !== undefined ? await digestOf(api, repo, path, tag) : digest }
}

async function digestOf(api: ApiReader, repo: string, path: string, tag: string): Promise<string> {
  const query = {
    'uidp.children_of': repo,
    name: tag,
    include_referrers: 'true',
    include_dates: 'true',
    include_epochs: 'true',
  }
  const { items } = await api.list<{ digest?: string }>('/registry/v2/tags', 'tags', query)
  const digest = items[0]?.digest ?? ''
  if (digest === '') throw new CliError(exitCodes.failed, `${path} has no tag ${tag} that points to something`)
  return digest
}

const words: Record<string, string> = {
  PROMISED: 'its date',
  HELD: 'a hold',
  IMMUTABLE: 'a tag that never moves',
  LAST: 'it is one of the last that its tags have had',
  LISTED: 'the index of a tag lists it',
  UNDECIDED: 'more would have to be looked at to say that nothing does',
}

export const imagesKept: Command = {
  arguments: [{ name: '<manifest>', summary: 'Such as acme/team/app:1.0, or acme/team/app@sha256:…' }],
  options: [outputOption, ...callerOptions],
  async run(terminal, options) {
    const api = await apiReader(terminal, options)
    const { repo, digest } = await manifestNamed(api, String(options.manifest))
    if (digest === '') throw new CliError(exitCodes.usage, 'name a manifest by its tag or its digest')
    const kept = (await api.call('GET', `/registry/v2/repos/${repo}/promises/${digest}`)) as Kept
    if (options.output === 'json') terminal.print(jsonText(kept, 2))
    else for (const line of table(rowsOf(digest, kept))) terminal.print(line)
    return exitCodes.ok
  },
}

function rowsOf(digest: string, { reason = '', until = '', rule = '', tags = [], keptWith = '' }: Kept): string[][] {
  const by = words[reason]
  return [
    ['digest', digest],
    [
      'kept by',
      by ?? (tags.length > 0 ? 'nothing but its tags: no plan deletes it, whoever may delete it can' : 'nothing'),
    ],
    ['until', by === undefined ? '' : until || 'without an end'],
    ['rule', rule],
    ['with', keptWith === digest ? '' : keptWith],
    ['tags', tags.join(' ')],
  ].filter(([, value]) => value !== '')
}

export const imagesBreakPromises: Command = {
  details: `The audit log has the reason. What a hold keeps stays: release that first.`,
  arguments: [{ name: '<image>', summary: 'Such as acme/team/app@sha256:…, or acme/team/app for all of it' }],
  options: [{ flags: '--reason <text>', summary: 'Why', required: true }, yesOption, outputOption, ...callerOptions],
  async run(terminal, options) {
    const api = await apiReader(terminal, options)
    const { repo, path, digest } = await manifestNamed(api, String(options.image))
    const what = digest === '' ? `${path} with all that it has` : `${digest} of ${path}, with its tags`
    await confirm(terminal, options.yes, `delete ${what}`)
    const body = { reason: options.reason, ...(digest === '' ? {} : { digest }) }
    const broken = await api.call('POST', `/registry/v2/repos/${repo}:breakPromises`, body)
    return printBroken(terminal, options.output, broken, what)
  },
}

function printBroken(terminal: Terminal, output: unknown, broken: object, what: string): number {
  terminal.print(output === 'json' ? jsonText(broken, 2) : plain(`deleted ${what}`))
  return exitCodes.ok
}
