// Commands that list, describe, create, update and delete tags.
import type { TagJson } from '#gen/pinfold/registry/v2/tags_pb.ts'
import { isDigest } from '#lib/digest.ts'
import { codes } from '#lib/errors.ts'
import { plain } from '#lib/terminal/plain-text.ts'
import { parentOf } from '#lib/uid.ts'
import { ApiError } from '../framework/api-client.ts'
import { apiCommand } from '../framework/api-pages.ts'
import type { ApiReader, Query } from '../framework/api-reader.ts'
import { type CliError, failure, usageError } from '../framework/cli-error.ts'
import type { Command, Commands, OptionSpec, Options } from '../framework/command.ts'
import { listCommand } from '../framework/list-command.ts'
import { namesOf } from '../framework/names.ts'
import {
  type Columns,
  confirm,
  listFormats,
  type Named,
  oneFormats,
  outputOf,
  printList,
  printOne,
  type View,
  v1,
  yesOption,
} from '../framework/outputs.ts'
import { findTag, imageNamed, noTag } from './image-names.ts'
import { sinceOf } from './image-options.ts'
import { proof, proofPolicy } from './tag-proofs.ts'

type Tag = Named & TagJson & { digest: string }

const columns: Columns<Tag> = {
  TAG: ({ name }) => name,
  DIGEST: ({ digest }) => digest,
  UPDATED: ({ updateTime }) => updateTime,
}
const state: Columns<Tag> = { STATE: ({ deprecated }) => (deprecated ? 'end of life' : '') }

/** Columns for these tags. A column that is empty for all of the tags is left out. */
const viewOf = (tags: readonly Tag[]): View<Tag> => ({
  word: 'TAG',
  columns: tags.some(({ deprecated }) => deprecated) ? { ...columns, ...state } : columns,
  more: { CREATED: ({ createTime }) => createTime, UID: ({ uid }) => uid },
  label: ({ name }) => name,
  at: ({ uid, name }, names) => `${names.path(parentOf(uid))}:${name}`,
  // JSON has the member names of both API versions, since scripts use either.
  json: (tag) => ({ ...tag, ...v1({ updateTime: 'lastUpdated' })(tag) }),
})

const tagArgument = { name: '<image>', summary: 'Image with its tag, such as acme/team/app:1.0' }

const list = listCommand({
  details: 'By default, hides tags of referrers (signatures, SBOMs, attestations), dated tags and package epochs.',
  arguments: [{ name: '<image>', summary: 'Repository: ORG/NAME, ORG/FOLDER/NAME or a uid' }],
  options: [
    { flags: '--prefix <text>', summary: 'Only tags whose names begin with this text; sorted by name' },
    { flags: '--part <text>', summary: 'Only tags whose names contain this text; sorted by name' },
    { flags: '--digest <digest>', summary: 'Only tags that have this digest now' },
    { flags: '--updated-within <time>', summary: 'Only tags that were updated within this time, such as 12h or 7d' },
    { flags: '--show-referrers', summary: 'Include tags of referrers: sha256-…' },
    { flags: '--show-dates', summary: 'Include dated tags, such as 1.0-20260801' },
    { flags: '--show-epochs', summary: 'Include package epochs, such as 1.0-r3' },
    { flags: '--active-only', summary: 'Exclude tags of versions at their end of life' },
    outputOf(listFormats),
  ],
  async run(api, options, terminal) {
    const flag = (name: string) => (options[name] === true ? 'true' : undefined)
    const filters: Query = {
      order_by: 'update_time desc',
      digest: options.digest as string | undefined,
      updated_since: sinceOf(options.updatedWithin),
      include_referrers: flag('showReferrers'),
      include_dates: flag('showDates'),
      include_epochs: flag('showEpochs'),
    }
    const { repo } = await imageNamed(api, options.image)
    const { path, query } = listOf(repo, filters, options)
    const keep = options.activeOnly === true ? ({ deprecated }: Tag) => !deprecated : undefined
    const { items: shown, more } = await api.selected<Tag>(path, 'tags', query, keep)
    // Only the format `tree` shows the path of the repository, so other formats do not read the names.
    const repos = options.output === 'tree' ? [repo] : []
    printList(
      terminal,
      options.output,
      viewOf(shown),
      shown,
      await namesOf(api, { groups: repos.map(parentOf), repos }),
    )
    return { more }
  },
})

/** API path and query that list all tags, or search tags by name. A search sorts its results by relevance. */
function listOf(repo: string, filters: Query, { prefix, part }: Options): { path: string; query: Query } {
  if (prefix === undefined && part === undefined) {
    return { path: '/registry/v2/tags', query: { 'uidp.children_of': repo, ...filters } }
  }
  const { order_by: _, digest, updated_since, ...shown } = filters
  if (digest !== undefined || updated_since !== undefined) {
    throw usageError(
      '--prefix and --part cannot be combined with --digest and --updated-within; give only one of these pairs',
    )
  }
  const query = { prefix: prefix as string | undefined, part: part as string | undefined, ...shown }
  return { path: `/registry/v2/repos/${repo}/tags`, query }
}

async function tagOf(api: ApiReader, options: Options) {
  const { path, tag, repo } = await imageNamed(api, options.image)
  if (tag === undefined) throw usageError(`the tag is missing; give it as ${path}:TAG`)
  return { path, tag, repo, found: await findTag<Tag>(api, repo, tag) }
}

const describe = apiCommand({
  arguments: [tagArgument],
  options: [outputOf(oneFormats)],
  async run(api, options, terminal) {
    const { path, tag, found } = await tagOf(api, options)
    if (!found) throw noTag(path, tag)
    printOne(terminal, options.output, viewOf([found]), found, await namesOf(api, {}))
  },
})

const resolve = apiCommand({
  arguments: [tagArgument],
  options: [],
  async run(api, options) {
    const { path, tag, found } = await tagOf(api, options)
    if (!found) throw noTag(path, tag)
    return { text: found.digest }
  },
})

const ifOption: OptionSpec = {
  flags: '--if <digest>',
  summary: 'Update the tag only if it still has this digest: sha256:…',
}

function expected(options: Options): string | undefined {
  const from = options.if as string | undefined
  if (from === undefined || isDigest(from)) return from
  throw usageError(`--if takes a digest such as sha256:…, not ${plain(from)}`)
}

function headersOf(there: boolean, from: string | undefined): Record<string, string> | undefined {
  if (!there) return { 'if-none-match': '*' }
  return from === undefined ? undefined : { 'if-match': `"${from}"` }
}

function isMismatch(error: unknown): boolean {
  return error instanceof ApiError && error.code === codes.ABORTED.number
}

function elsewhere(path: string, tag: string, found: Tag | undefined): CliError {
  const now = found ? `it has the digest ${plain(found.digest)} now` : 'it no longer exists'
  return failure(`${path}:${tag} was not updated: ${now}\npinfold tags history ${path}:${tag} shows who changed it`)
}

/**
 * Creates the command that points a tag at a digest, or at the digest of another tag. If `there` is true, the tag must exist
 * already.
 */
const point = (there: boolean): Command =>
  apiCommand({
    arguments: [tagArgument, { name: '<to>', summary: 'New digest: sha256:…, or another tag of the repository' }],
    options: there ? [ifOption] : [],
    check: expected,
    async run(api, options) {
      const from = expected(options)
      const { path, tag, repo, found } = await tagOf(api, options)
      if (there && !found) throw noTag(path, tag)
      if (!there && found) {
        const hint = `to update it: pinfold tags update ${path}:${tag} DIGEST`
        throw failure(`no tag was created: ${path}:${tag} already exists, with the digest ${found.digest}\n${hint}`)
      }
      const to = String(options.to)
      const digest = isDigest(to) ? to : (await tagOf(api, { ...options, image: `${path}:${to}` })).found?.digest
      if (digest === undefined) throw noTag(path, to)
      // The header refuses the update if another user has changed the tag since it was read.
      const headers = headersOf(there, from)
      await api
        .call('POST', `/registry/v2/tags/${repo}`, { name: tag, digest }, headers)
        .catch(async (error: unknown) => {
          throw headers && isMismatch(error) ? elsewhere(path, tag, (await tagOf(api, options)).found) : error
        })
      return { text: `${path}:${tag} ${digest}` }
    },
  })

/** Points a tag to a digest that it had before, with a reason. Refuses the restore if the tag was updated meanwhile. */
const restore = apiCommand({
  details: 'The tag history and the audit log record the reason. Also creates a deleted tag again.',
  arguments: [tagArgument, { name: '<digest>', summary: 'Digest that the tag had before: sha256:…' }],
  options: [
    { flags: '--reason <text>', summary: 'Reason of the restore (required)' },
    { ...ifOption, summary: 'Restore the tag only if it still has this digest: sha256:…' },
  ],
  check(options) {
    expected(options)
    if (options.reason === undefined) throw usageError('the reason is missing; give it with --reason TEXT')
    if (!isDigest(String(options.digest))) {
      throw usageError(
        `${plain(String(options.digest))} is not a digest; pinfold tags history IMAGE lists former digests`,
      )
    }
  },
  async run(api, options) {
    const { path, tag, repo, found } = await tagOf(api, options)
    const [digest, reason] = [String(options.digest), String(options.reason)]
    const headers = headersOf(found !== undefined, expected(options) ?? found?.digest)
    const to = `/registry/v2/repos/${repo}/restoredTags/${encodeURIComponent(tag)}`
    await api.call('POST', to, { digest, reason }, headers).catch(async (error: unknown) => {
      throw isMismatch(error) ? elsewhere(path, tag, (await tagOf(api, options)).found) : error
    })
    return { text: `${path}:${tag} ${digest}` }
  },
})

const remove = apiCommand({
  arguments: [tagArgument],
  options: [yesOption],
  async run(api, options, terminal) {
    const { path, tag, found } = await tagOf(api, options)
    if (!found) throw noTag(path, tag)
    await confirm(terminal, options.yes, `delete the tag ${tag} of ${path}, which has the digest ${found.digest}`)
    await api.call('DELETE', `/registry/v2/tags/${found.uid}`)
    terminal.say(`deleted ${path}:${tag}`)
  },
})

export const tags: Commands = {
  list,
  describe,
  digest: resolve,
  create: point(false),
  update: point(true),
  restore,
  delete: remove,
  proof,
  'proof-policy': proofPolicy,
}
