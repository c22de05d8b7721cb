// Command that shows why a manifest cannot be deleted yet, and how to delete it anyway.
import type { PromiseJson } from '#gen/pinfold/control/registry/v1/retention_pb.ts'
import { isDigest } from '#lib/digest.ts'
import { apiCommand } from '../../framework/api-pages.ts'
import type { ApiReader } from '../../framework/api-reader.ts'
import { usageError } from '../../framework/cli-error.ts'
import { outputOption } from '../../framework/command.ts'
import { confirm, yesOption } from '../../framework/outputs.ts'
import { findTag, imageNamed, noTag } from '../image-names.ts'

type Named = { repo: string; path: string; digest: string }

/** Reads `acme/app@sha256:…` or `acme/app:tag`. For an image with neither, the digest is empty. */
async function manifestNamed(api: ApiReader, text: string): Promise<Named> {
  const at = text.indexOf('@')
  const digest = at < 0 ? '' : text.slice(at + 1)
  if (at >= 0 && !isDigest(digest)) throw usageError(`${digest} is not a valid digest: give sha256: and 64 hex digits`)
  const { path, tag, repo } = await imageNamed(api, at < 0 ? text : text.slice(0, at))
  if (digest !== '' || tag === undefined) return { repo, path, digest }
  const found = (await findTag(api, repo, tag))?.digest ?? ''
  if (found === '') throw noTag(path, tag)
  return { repo, path, digest: found }
}

const words: Record<string, string> = {
  PROMISED: 'the date that a retention policy guarantees',
  HELD: 'a legal hold',
  IMMUTABLE: 'an immutable tag',
  LAST: 'a retention policy: it is one of the last digests of its tags',
  LISTED: 'a tag protection rule: the index of a protected tag lists it',
  UNDECIDED: 'unknown: the check would have to read too many records, so it is not deleted',
}

export const imagesKept = apiCommand({
  arguments: [{ name: '<manifest>', summary: 'Manifest: acme/team/app:1.0 or acme/team/app@sha256:…' }],
  options: [outputOption],
  async run(api, options) {
    const { repo, digest } = await manifestNamed(api, String(options.manifest))
    if (digest === '') throw usageError('give the manifest with its tag or digest: ORG/NAME:TAG or ORG/NAME@sha256:…')
    const kept = (await api.call('GET', `/registry/v2/repos/${repo}/promises/${digest}`)) as PromiseJson
    return { json: kept, rows: rowsOf(digest, kept) }
  },
})

function rowsOf(digest: string, { reason, until = '', rule = '', tags = [], keptWith = '' }: PromiseJson): string[][] {
  const by = words[reason ?? '']
  return [
    ['digest', digest],
    [
      'protected by',
      by ??
        (tags.length > 0
          ? 'tags only: deletion plans skip manifests with tags, but users with permission can delete this one'
          : 'nothing'),
    ],
    ['until', by === undefined ? '' : until || 'no end date'],
    ['policy', rule],
    ['part of', keptWith === digest ? '' : keptWith],
    ['tags', tags.join(' ')],
  ].filter(([, value]) => value !== '')
}

export const imagesBreakPromises = apiCommand({
  details: `Deletes also before the date that a retention policy guarantees. The reason is written to the audit log. A manifest under a legal
hold is not deleted: release the hold first, with pinfold holds release.`,
  arguments: [
    {
      name: '<image>',
      summary: 'Manifest, such as acme/team/app@sha256:…, or a whole repository, such as acme/team/app',
    },
  ],
  options: [
    { flags: '--reason <text>', summary: 'Reason, for the audit log', required: true },
    yesOption,
    outputOption,
  ],
  async run(api, options, terminal) {
    const { repo, path, digest } = await manifestNamed(api, String(options.image))
    const what =
      digest === '' ? `the repository ${path} with all its tags and manifests` : `${digest} of ${path}, with its tags`
    await confirm(terminal, options.yes, `delete ${what}`)
    const body = { reason: options.reason, ...(digest === '' ? {} : { digest }) }
    const broken = await api.call('POST', `/registry/v2/repos/${repo}:breakPromises`, body)
    return { json: broken, text: `deleted ${what}` }
  },
})
