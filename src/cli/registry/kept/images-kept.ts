// Reasons why a manifest is kept, and the way to delete it anyway.
import { isDigest } from '#lib/digest.ts'
import { apiCommand } from '../../framework/api-pages.ts'
import type { ApiReader } from '../../framework/api-reader.ts'
import { failure, usageError } from '../../framework/cli-error.ts'
import { outputOption } from '../../framework/command.ts'
import { confirm, yesOption } from '../../framework/outputs.ts'
import { registryOf } from '../../framework/session.ts'
import { findImage, findTag, imageNameOf } from '../image-names.ts'

type Kept = { reason?: string; until?: string; rule?: string; tags?: string[]; keptWith?: string; digest: string }
type Named = { repo: string; path: string; digest: string }

/** `acme/app@sha256:…` or `acme/app:tag`; without either the digest is empty. */
async function manifestNamed(api: ApiReader, text: string): Promise<Named> {
  const at = text.indexOf('@')
  const digest = at < 0 ? '' : text.slice(at + 1)
  if (at >= 0 && !isDigest(digest)) throw usageError(`${digest} is no digest: sha256: and 64 hex digits`)
  const { path, tag } = imageNameOf(at < 0 ? text : text.slice(0, at), registryOf(api.session))
  const repo = await findImage(api, path)
  if (digest !== '' || tag === undefined) return { repo, path, digest }
  const found = (await findTag(api, repo, tag))?.digest ?? ''
  if (found === '') throw failure(`${path} has no tag ${tag} that points to something`)
  return { repo, path, digest: found }
}

const words: Record<string, string> = {
  PROMISED: 'its date',
  HELD: 'a hold',
  IMMUTABLE: 'a tag that never moves',
  LAST: 'it is one of the last that its tags have had',
  LISTED: 'the index of a tag lists it',
  UNDECIDED: 'more would have to be looked at to say that nothing does',
}

export const imagesKept = apiCommand({
  arguments: [{ name: '<manifest>', summary: 'Such as acme/team/app:1.0, or acme/team/app@sha256:…' }],
  options: [outputOption],
  async run(api, options) {
    const { repo, digest } = await manifestNamed(api, String(options.manifest))
    if (digest === '') throw usageError('name a manifest by its tag or its digest')
    const kept = (await api.call('GET', `/registry/v2/repos/${repo}/promises/${digest}`)) as Kept
    return { json: kept, rows: rowsOf(digest, kept) }
  },
})

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

export const imagesBreakPromises = apiCommand({
  details: `The audit log has the reason. What a hold keeps stays: release that first.`,
  arguments: [{ name: '<image>', summary: 'Such as acme/team/app@sha256:…, or acme/team/app for all of it' }],
  options: [{ flags: '--reason <text>', summary: 'Why', required: true }, yesOption, outputOption],
  async run(api, options, terminal) {
    const { repo, path, digest } = await manifestNamed(api, String(options.image))
    const what = digest === '' ? `${path} with all that it has` : `${digest} of ${path}, with its tags`
    await confirm(terminal, options.yes, `delete ${what}`)
    const body = { reason: options.reason, ...(digest === '' ? {} : { digest }) }
    const broken = await api.call('POST', `/registry/v2/repos/${repo}:breakPromises`, body)
    return { json: broken, text: `deleted ${what}` }
  },
})
