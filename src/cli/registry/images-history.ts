import { apiCommand } from '../framework/api-pages.ts'
import type { ApiReader } from '../framework/api-reader.ts'
import { failure, usageError } from '../framework/cli-error.ts'
import { type Options, outputOption, type Terminal } from '../framework/command.ts'
import { registryOf } from '../framework/session.ts'
import { limitOf, limitOption } from '../framework/verbs.ts'
import { findDeletedImage } from './deleted-images.ts'
import { imageNameOf, lookForImage } from './image-names.ts'
import { timeOf, withDigest } from './image-options.ts'

type Moved = {
  tag: string
  time: string
  endTime?: string
  event: string
  digest: string
  actor?: string
  actorName?: string
  source?: string
  checkedBefore?: string
  url?: string
  path?: string
}

export const imagesHistory = apiCommand({
  details: `Newest first; the times are those of the server. Without a tag it is about latest, or with --digest about every tag. A
deleted tag keeps its history, and so does a deleted repository: whoever may read the audit log of its group finds it by its
old path.`,
  arguments: [
    { name: '<image>', summary: 'Such as acme/team/app:1.0, or acme/team/app@sha256:… in place of --digest' },
  ],
  options: [
    { flags: '--all-tags', summary: 'What happened to all tags of the repository' },
    { flags: '--digest <digest>', summary: 'When this digest was there, and under which tags' },
    { flags: '--start <time>', summary: 'From this time on: 2026-08-01, or 2026-08-01T12:00:00Z' },
    { flags: '--end <time>', summary: 'Before this time' },
    {
      flags: '--as-of <time>',
      summary: 'Only what the tag pointed to at this time; ends with 1 when there was no such tag',
    },
    { flags: '--told', summary: 'What the upstream that it follows told of it, which nobody here has seen' },
    { flags: '--deleted', summary: 'Of the deleted repository of this path, not of the one that has it now' },
    limitOption,
    outputOption,
  ],
  check: (options) => void wishOf(options),
  async run(api, given, terminal) {
    const { options, start, end, asOf, limit } = wishOf(given)
    const { at, tag, path } = await historyOf(terminal, api, options)
    if (options.allTags && tag !== undefined) throw usageError(`--all-tags is not about the tag ${tag}`)
    const about = tag ?? (options.digest === undefined && !options.allTags ? 'latest' : undefined)
    // The end of a window is not part of it, and times have no more than milliseconds.
    const before = asOf ? new Date(Date.parse(asOf) + 1).toISOString() : end
    const query = { tag: about, digest: options.digest as string | undefined, start_time: start, end_time: before }
    const { items, more } = await api.list<Moved>(at, 'records', query, limit)
    if (asOf) {
      const [last] = items
      if (!last || last.event === 'EVENT_DELETED') {
        const told =
          options.told === true ? '' : '\nof a repository that follows another, --told asks what that one told'
        throw failure(`there was no tag ${about} of ${path} at ${asOf}${told}`)
      }
    }
    if (items.length === 0 && start === undefined && end === undefined) {
      const told = `nobody has told anything of that of ${path}\npinfold images repos follow ${path} says what it follows`
      throw failure(options.told === true ? told : neverWas(path, about, options.digest))
    }
    const newest = about === undefined ? [...items].sort((a, b) => (a.time < b.time ? 1 : -1)) : items
    return { json: newest, head: head(options), rows: newest.map(rowOf(options)), more: more && !asOf }
  },
})

/** Reads the options. Throws if they exclude each other. */
function wishOf(given: Options) {
  const options = withDigest(given)
  const [start, end] = [timeOf(options, '--start'), timeOf(options, '--end')]
  const asOf = timeOf(options, '--as-of')
  if (asOf && (start || end || options.digest)) {
    throw usageError('--as-of stands alone: it is about one moment')
  }
  if (options.allTags && (asOf || options.digest)) {
    throw usageError('--all-tags goes with --start and --end only')
  }
  if (options.told === true && options.deleted === true) {
    throw usageError('--told is about a repository that is there')
  }
  const limit = asOf ? 1 : limitOf(options)
  return { options, start, end, asOf, limit }
}

/** Path of the image's history in the API, or of the history of a deleted image if none has this path now. */
async function historyOf(terminal: Terminal, api: ApiReader, options: Options) {
  const { path, tag } = imageNameOf(String(options.image), registryOf(api.session))
  const living = options.deleted === true ? undefined : await lookForImage(api, path)
  const list = options.told === true ? 'toldTagHistory' : 'tagHistory'
  if (living !== undefined) return { path, tag, at: `/registry/v2/repos/${living}/${list}` }
  const deleted = await findDeletedImage(api.list, path)
  if (!deleted) {
    const what = options.deleted === true ? 'deleted image' : 'image'
    throw failure(`there is no ${what} ${path} at ${registryOf(api.session)} that you can see`)
  }
  terminal.say(`pinfold: ${path} was deleted on ${deleted.deleteTime}`)
  return { path, tag, at: `/registry/v2/deletedRepos/${deleted.uid}/tagHistory` }
}

function neverWas(path: string, tag: string | undefined, digest: Options[string]): string {
  if (tag === undefined && digest === undefined) return `${path} has never had a tag`
  const list = `pinfold images tags ${path} lists those that there are now`
  if (digest !== undefined)
    return `${tag ? `the tag ${tag}` : 'no tag'} of ${path} has ${tag ? 'never ' : ''}pointed to ${digest}`
  return `there has never been a tag ${tag} of ${path}\n${list}`
}

const head = ({ digest, allTags }: Options): string[] =>
  digest === undefined
    ? ['TIME', ...(allTags ? ['TAG'] : []), 'EVENT', 'DIGEST', 'BY']
    : ['TAG', 'EVENT', 'FROM', 'UNTIL']

function rowOf({ digest, allTags, told }: Options): (record: Moved) => string[] {
  const word = (text: string) => text.slice(text.indexOf('_') + 1).toLowerCase()
  if (digest === undefined) {
    return (record) => [
      record.time,
      ...(allTags ? [record.tag] : []),
      word(record.event),
      record.digest,
      told ? tellerOf(record) : moverOf(record, word),
    ]
  }
  return ({ tag, time, event, endTime }) => [
    tag,
    word(event),
    time,
    event === 'EVENT_DELETED' ? '' : (endTime ?? 'now'),
  ]
}

function moverOf({ source = '', actor = '', actorName, checkedBefore }: Moved, word: (text: string) => string): string {
  if (source !== 'SOURCE_UPSTREAM') return `${word(source)} ${actorName || actor}`
  // The upstream changed the tag between two checks.
  return `upstream${checkedBefore ? `, after ${checkedBefore}` : ', first look'}`
}

function tellerOf({ url = '', path = '', checkedBefore }: Moved): string {
  return `told by ${url === '' ? path : `${url}/${path}`}${checkedBefore ? `, after ${checkedBefore}` : ''}`
}
