// Tags: where they point, and where they shall.
import { isDigest } from '#lib/digest.ts'
import { codes } from '#lib/errors.ts'
import { parentOf } from '#lib/uid.ts'
import { ApiError } from '../shape/api-client.ts'
import { callerOptions } from '../shape/api-pages.ts'
import type { Query } from '../shape/api-reader.ts'
import {
  CliError,
  type Command,
  type Commands,
  exitCodes,
  type OptionSpec,
  type Options,
  type Terminal,
} from '../shape/command.ts'
import { namesOf } from '../shape/names.ts'
import {
  type Columns,
  confirm,
  type Item,
  listFormats,
  oneFormats,
  outputOf,
  printList,
  printOne,
  type View,
  yesOption,
} from '../shape/outputs.ts'
import { plain } from '../shape/plain-text.ts'
import { v1 } from '../shape/v1-names.ts'
import { limitOf, limitOption } from '../shape/verbs.ts'
import { imageOf, sinceOf } from './image-options.ts'
import { proof, proofPolicy } from './tag-proofs.ts'

type Tag = Item & {
  name: string
  digest: string
  updateTime: string
  createTime?: string
  deprecated?: boolean
}

const columns: Columns<Tag> = {
  TAG: ({ name }) => name,
  DIGEST: ({ digest }) => digest,
  UPDATED: ({ updateTime }) => updateTime,
}
const state: Columns<Tag> = { STATE: ({ deprecated }) => (deprecated ? 'end of life' : '') }

/** How tags are shown; a column of what none of them is would be empty. */
const viewOf = (tags: readonly Tag[]): View<Tag> => ({
  word: 'TAG',
  columns: tags.some(({ deprecated }) => deprecated) ? { ...columns, ...state } : columns,
  more: { CREATED: ({ createTime = '' }) => createTime, UID: ({ uid }) => uid },
  label: ({ name }) => name,
  at: ({ uid, name }, names) => `${names.path(parentOf(uid))}:${name}`,
  // Scripts read these by the names of either version.
  json: (tag) => ({ ...tag, ...v1({ updateTime: 'lastUpdated' })(tag) }),
})

const tagArgument = { name: '<image>', summary: 'With its tag, such as acme/team/app:1.0' }

const list: Command = {
  details: 'Tags of signatures and other referrers, dated tags and package epochs are hidden unless asked for.',
  arguments: [{ name: '<image>', summary: 'Such as acme/team/app, or the uid of its repo' }],
  options: [
    { flags: '--prefix <text>', summary: 'Only those whose names begin with this, by name' },
    { flags: '--part <text>', summary: 'Only those whose names have this anywhere in them, by name' },
    { flags: '--digest <digest>', summary: 'Only those that point to it now' },
    { flags: '--updated-within <time>', summary: 'Only those that moved or changed since, such as 12h or 7d' },
    { flags: '--show-referrers', summary: 'Also those of referrers, sha256-…' },
    { flags: '--show-dates', summary: 'Also dated ones, such as 1.0-20260801' },
    { flags: '--show-epochs', summary: 'Also package epochs, such as 1.0-r3' },
    { flags: '--active-only', summary: 'Not those that have reached their end of life' },
    limitOption,
    outputOf(listFormats),
    ...callerOptions,
  ],
  async run(terminal, options) {
    const flag = (name: string) => (options[name] === true ? 'true' : undefined)
    const limit = limitOf(options)
    const filters: Query = {
      order_by: 'update_time desc',
      digest: options.digest as string | undefined,
      updated_since: sinceOf(options.updatedWithin),
      include_referrers: flag('showReferrers'),
      include_dates: flag('showDates'),
      include_epochs: flag('showEpochs'),
    }
    const { api, repo } = await imageOf(terminal, options)
    const { path, query } = listOf(repo, filters, options)
    const { items, more } = await api.list<Tag>(path, 'tags', query, limit)
    const shown = options.activeOnly === true ? items.filter(({ deprecated }) => !deprecated) : items
    // Nothing else shows where they are.
    const repos = options.output === 'tree' ? [repo] : []
    printList(terminal, options.output, viewOf(shown), shown, await namesOf(api, repos.map(parentOf), [], repos))
    if (more) terminal.say('pinfold: there is more; --limit shows it')
    return exitCodes.ok
  },
}

/** Where tags are listed, and where they are found by their names, which has an order of its own. */
function listOf(repo: string, filters: Query, { prefix, part }: Options): { path: string; query: Query } {
  if (prefix === undefined && part === undefined) {
    return { path: '/registry/v2/tags', query: { 'uidp.children_of': repo, ...filters } }
  }
  const { order_by: _, digest, updated_since, ...shown } = filters
  if (digest !== undefined || updated_since !== undefined) {
    throw new CliError(exitCodes.usage, '--prefix and --part do not go with --digest and --updated-within')
  }
  const query = { prefix: prefix as string | undefined, part: part as string | undefined, ...shown }
  return { path: `/registry/v2/repos/${repo}/tags`, query }
}

/** Every tag counts when it is named. */
const everyTag = { include_referrers: 'true', include_dates: 'true', include_epochs: 'true' }

async function tagOf(terminal: Terminal, options: Options) {
  const { api, path, tag, repo } = await imageOf(terminal, options)
  if (tag === undefined) throw new CliError(exitCodes.usage, `${path} names no tag: ${path}:TAG does`)
  const query = { 'uidp.children_of': repo, name: tag, ...everyTag }
  const { items } = await api.list<Tag>('/registry/v2/tags', 'tags', query, 1)
  return { api, path, tag, repo, found: items[0] }
}

function noTag(path: string, tag: string): CliError {
  return new CliError(
    exitCodes.failed,
    `there is no tag ${tag} of ${path}\npinfold images tags ${path} lists those that there are`,
  )
}

const describe: Command = {
  arguments: [tagArgument],
  options: [outputOf(oneFormats), ...callerOptions],
  async run(terminal, options) {
    const { api, path, tag, found } = await tagOf(terminal, options)
    if (!found) throw noTag(path, tag)
    printOne(terminal, options.output, viewOf([found]), found, await namesOf(api, [], []))
    return exitCodes.ok
  },
}

const resolve: Command = {
  arguments: [tagArgument],
  options: callerOptions,
  async run(terminal, options) {
    const { path, tag, found } = await tagOf(terminal, options)
    if (!found) throw noTag(path, tag)
    terminal.print(plain(found.digest))
    return exitCodes.ok
  },
}

const ifOption: OptionSpec = {
  flags: '--if <digest>',
  summary: 'Move it only if it points to this digest when it moves',
}

function expected(options: Options): string | undefined {
  const from = options.if as string | undefined
  if (from === undefined || isDigest(from)) return from
  throw new CliError(exitCodes.usage, `--if takes a digest, sha256:…, and not ${plain(from)}`)
}

function headersOf(there: boolean, from: string | undefined): Record<string, string> | undefined {
  if (!there) return { 'if-none-match': '*' }
  return from === undefined ? undefined : { 'if-match': `"${from}"` }
}

function isMismatch(error: unknown): boolean {
  return error instanceof ApiError && error.code === codes.ABORTED.number
}

function elsewhere(path: string, tag: string, found: Tag | undefined): CliError {
  const now = found ? `points to ${plain(found.digest)} now` : 'is not there any more'
  return new CliError(
    exitCodes.failed,
    `${path}:${tag} ${now}, and was not moved\npinfold images history ${path}:${tag} says who moved it`,
  )
}

/** Points a tag at a digest or at what another tag points to; `there` says whether the tag has to be there. */
const point = (there: boolean): Command => ({
  arguments: [tagArgument, { name: '<to>', summary: 'A digest, sha256:…, or another tag of the image' }],
  options: [...(there ? [ifOption] : []), ...callerOptions],
  async run(terminal, options) {
    const from = expected(options)
    const { api, path, tag, repo, found } = await tagOf(terminal, options)
    if (there && !found) throw noTag(path, tag)
    if (!there && found) {
      throw new CliError(
        exitCodes.failed,
        `${path}:${tag} is there, at ${found.digest}\npinfold images tags move moves it`,
      )
    }
    const to = String(options.to)
    const digest = isDigest(to) ? to : (await tagOf(terminal, { ...options, image: `${path}:${to}` })).found?.digest
    if (digest === undefined) throw noTag(path, to)
    // Somebody else may be at it at the same time.
    const headers = headersOf(there, from)
    await api
      .call('POST', `/registry/v2/tags/${repo}`, { name: tag, digest }, headers)
      .catch(async (error: unknown) => {
        throw headers && isMismatch(error) ? elsewhere(path, tag, (await tagOf(terminal, options)).found) : error
      })
    terminal.print(`${path}:${tag} ${digest}`)
    return exitCodes.ok
  },
})

const remove: Command = {
  arguments: [tagArgument],
  options: [yesOption, ...callerOptions],
  async run(terminal, options) {
    const { api, path, tag, found } = await tagOf(terminal, options)
    if (!found) throw noTag(path, tag)
    await confirm(terminal, options.yes, `delete the tag ${tag} of ${path}, which points to ${found.digest}`)
    await api.call('DELETE', `/registry/v2/tags/${found.uid}`)
    terminal.say(`deleted ${path}:${tag}`)
    return exitCodes.ok
  },
}

export const tags: Commands = {
  list,
  describe,
  resolve,
  create: point(false),
  move: point(true),
  delete: remove,
  proof,
  'proof-policy': proofPolicy,
}
