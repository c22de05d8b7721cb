import type { TagHistoryRecordJson, ToldTagHistoryRecordJson } from '#gen/pinfold/control/registry/v1/tag_history_pb.ts'
import type { Row } from '#lib/terminal/plain-text.ts'
import { apiCommand } from '../framework/api-pages.ts'
import type { ApiReader } from '../framework/api-reader.ts'
import { failure, usageError } from '../framework/cli-error.ts'
import { type Options, outputOption, type Terminal } from '../framework/command.ts'
import { limitOf, limitOption } from '../framework/list-command.ts'
import { registryOf } from '../framework/session.ts'
import { findDeletedImage } from './deleted-images.ts'
import { findImageIfVisible, imageNameOf } from './image-names.ts'
import { timeOf, withDigest } from './image-options.ts'

/** Record of the tag history, or of the history that an upstream reports. */
type Moved = TagHistoryRecordJson & ToldTagHistoryRecordJson

export const imagesHistory = apiCommand({
  details: `Shows the updates of a tag, newest first, with the time at which the server received them. Without a tag, shows the tag latest;
with --digest and no tag, shows every tag that had the digest.
The history of a deleted tag remains. The history of a deleted repository remains too: give its former path. This needs access to
the audit log of its organization or folder.`,
  arguments: [{ name: '<image>', summary: 'Image: acme/team/app:1.0, or acme/team/app@sha256:… instead of --digest' }],
  options: [
    { flags: '--all-tags', summary: 'Show the updates of all tags of the repository' },
    { flags: '--digest <digest>', summary: 'Show the tags that had this digest, and when' },
    { flags: '--start <time>', summary: 'Only updates at this time or later: 2026-08-01, or 2026-08-01T12:00:00Z' },
    { flags: '--end <time>', summary: 'Only updates before this time' },
    {
      flags: '--as-of <time>',
      summary: 'Only the digest of the tag at this time; exit code 1 if the tag did not exist',
    },
    {
      flags: '--told',
      summary: 'Show the tag history that the upstream of a mirror reports; this server has not verified it',
    },
    {
      flags: '--deleted',
      summary: 'Show the deleted repository that had this path, also if another repository has it now',
    },
    limitOption,
    outputOption,
  ],
  check: (options) => void optionsOf(options),
  async run(api, given, terminal) {
    const { options, start, end, asOf, limit } = optionsOf(given)
    const { at, tag, path } = await historyOf(terminal, api, options)
    if (options.allTags && tag !== undefined)
      throw usageError(`--all-tags cannot be combined with the tag ${tag}; leave out one of them`)
    const about = tag ?? (options.digest === undefined && !options.allTags ? 'latest' : undefined)
    // The API excludes the end of a time range, so one millisecond is added to include assignments at exactly this time.
    const before = asOf ? new Date(Date.parse(asOf) + 1).toISOString() : end
    const query = { tag: about, digest: options.digest as string | undefined, start_time: start, end_time: before }
    const { items, more } = await api.list<Moved>(at, 'records', query, limit)
    if (asOf) {
      const [last] = items
      if (!last || last.event === 'EVENT_DELETED') {
        const told =
          options.told === true
            ? ''
            : '\nif the repository is a mirror, --told shows the history that its upstream reports'
        throw failure(`${path} had no tag ${about} at ${asOf}${told}`)
      }
    }
    if (items.length === 0 && start === undefined && end === undefined) {
      const told = `the upstream of ${path} has reported no such history\npinfold mirrors create ${path} shows its upstream`
      throw failure(options.told === true ? told : neverWas(path, about, options.digest))
    }
    const newest = about === undefined ? [...items].sort((a, b) => (a.time! < b.time! ? 1 : -1)) : items
    return { json: newest, head: head(options), rows: newest.map(rowOf(options)), more: more && !asOf }
  },
})

/** Reads the options. Throws if two of them exclude each other. */
function optionsOf(given: Options) {
  const options = withDigest(given)
  const [start, end] = [timeOf(options, '--start'), timeOf(options, '--end')]
  const asOf = timeOf(options, '--as-of')
  if (asOf && (start || end || options.digest)) {
    throw usageError('--as-of cannot be combined with --start, --end or --digest')
  }
  if (options.allTags && (asOf || options.digest)) {
    throw usageError('--all-tags cannot be combined with --as-of or --digest')
  }
  if (options.told === true && options.deleted === true) {
    throw usageError('--told cannot be combined with --deleted: only existing mirrors have a history of their upstream')
  }
  const limit = asOf ? 1 : limitOf(options)
  return { options, start, end, asOf, limit }
}

/** API path of the image's history. If no repository has the image's path, the history of the deleted repository. */
async function historyOf(terminal: Terminal, api: ApiReader, options: Options) {
  const { path, tag } = imageNameOf(String(options.image), registryOf(api.session))
  const living = options.deleted === true ? undefined : await findImageIfVisible(api, path)
  const list = options.told === true ? 'toldTagHistory' : 'tagHistory'
  if (living !== undefined) return { path, tag, at: `/registry/v2/repos/${living}/${list}` }
  const deleted = await findDeletedImage(api.list, path)
  if (!deleted) {
    const what = options.deleted === true ? 'deleted image' : 'image'
    const why = 'it does not exist, or you do not have access to it'
    throw failure(`no ${what} ${path} was found at ${registryOf(api.session)}: ${why}`)
  }
  terminal.say(`pinfold: ${path} was deleted on ${deleted.deleteTime}`)
  return { path, tag, at: `/registry/v2/deletedRepos/${deleted.uid}/tagHistory` }
}

function neverWas(path: string, tag: string | undefined, digest: Options[string]): string {
  if (tag === undefined && digest === undefined) return `${path} has never had a tag`
  const list = `pinfold tags list ${path} lists its current tags`
  if (digest !== undefined)
    return tag
      ? `${path}:${tag} has never had the digest ${digest}`
      : `no tag of ${path} has ever had the digest ${digest}`
  return `${path} has never had a tag ${tag}\n${list}`
}

const head = ({ digest, allTags }: Options): string[] =>
  digest === undefined
    ? ['TIME', ...(allTags ? ['TAG'] : []), 'EVENT', 'DIGEST', 'BY']
    : ['TAG', 'EVENT', 'FROM', 'UNTIL']

function rowOf({ digest, allTags, told }: Options): (record: Moved) => Row {
  const word = (text = '') => text.slice(text.indexOf('_') + 1).toLowerCase()
  if (digest === undefined) {
    return (record) => [
      record.time,
      ...(allTags ? [record.tag] : []),
      word(record.event),
      record.digest,
      told ? sourceText(record) : moverOf(record, word),
    ]
  }
  return ({ tag, time, event, endTime }) => [
    tag,
    word(event),
    time,
    event === 'EVENT_DELETED' ? '' : (endTime ?? 'now'),
  ]
}

function moverOf(record: Moved, word: (text?: string) => string): string {
  const { source, actor = '', actorName, checkedBefore, restoreReason } = record
  const why = restoreReason ? `, restored: ${restoreReason}` : ''
  if (source !== 'SOURCE_UPSTREAM') return `${word(source)} ${actorName || actor}${why}`
  // The upstream changed the tag after the previous check and before this one.
  return `upstream${checkedBefore ? `, after ${checkedBefore}` : ', first check'}`
}

function sourceText({ url = '', path = '', checkedBefore }: Moved): string {
  return `reported by ${url === '' ? path : `${url}/${path}`}${checkedBefore ? `, after ${checkedBefore}` : ''}`
}
