// Repositories that follow others at registries elsewhere.
import { codes } from '#lib/errors.ts'
import { ApiError } from '../framework/api-client.ts'
import { apiCommand } from '../framework/api-pages.ts'
import type { ApiReader } from '../framework/api-reader.ts'
import { failure, usageError } from '../framework/cli-error.ts'
import { type Commands, type Options, outputOption } from '../framework/command.ts'
import { groupAbove, groupOf, namesOf } from '../framework/names.ts'
import { confirm, yesOption } from '../framework/outputs.ts'
import { registryOf } from '../framework/session.ts'
import { limitOf, limitOption } from '../framework/verbs.ts'
import { findImage, imageNameOf, pathsOf, type Repo } from './image-names.ts'
import { upstream } from './upstreams.ts'

type Follow = {
  repoUid: string
  upstreamUid: string
  path: string
  mode: string
  tags?: string[]
  platforms?: string[]
  interval: string
  state?: string
  problem?: string
  tagCount?: number
  waitingCount?: number
  fetchProblem?: string
  history?: string
  historyWaitingCount?: number
  historyProblem?: string
  stateTime: string
  dueTime: string
}

const repository = { name: '<repository>', summary: 'Its path: ORG/NAME or ORG/FOLDER/NAME' }

async function repoOf(api: ApiReader, options: Options) {
  const { path } = imageNameOf(String(options.repository), registryOf(api.session))
  return { path, repo: await findImage(api, path) }
}

const follow = apiCommand({
  details: `With --upstream and --path it follows from then on: its tags are looked at there, and each move is in its history.
Nothing is pushed to it meanwhile. Without them it shows what the repository follows, and how that goes.`,
  arguments: [repository],
  options: [
    { flags: '--upstream <upstream>', summary: 'The registry: its name, GROUP/NAME, or its uid' },
    { flags: '--path <path>', summary: 'The repository there, such as team/app' },
    {
      flags: '--mode <mode>',
      summary: 'watch: digests only; on-demand: content comes with the first pull; full: beforehand',
      choices: ['watch', 'on-demand', 'full'],
    },
    {
      flags: '--tag <name-or-pattern>',
      summary: 'Only these tags: names, or regular expressions for whole names; may be repeated',
      repeat: true,
    },
    {
      flags: '--platform <os/architecture>',
      summary: 'With full: of an index bring only the images of this platform, such as linux/amd64; may be repeated',
      repeat: true,
    },
    { flags: '--interval <time>', summary: 'How often to look, such as 30m or 12h; 1h unless given' },
    {
      flags: '--stale-for <time>',
      summary: 'How long to serve what is here while it does not answer; 30d unless given',
    },
    { flags: '--check', summary: 'Look as soon as possible' },
    outputOption,
  ],
  check: checkUpstream,
  async run(api, options) {
    const { upstream: named, path: there, mode, tag, platform, interval, staleFor } = options
    const { path, repo } = await repoOf(api, options)
    const at = `/registry/v2/repos/${repo}/follow`
    if (named !== undefined) {
      const body = {
        upstreamUid: await upstream.find(api, String(named)),
        path: there,
        ...(mode !== undefined && { mode: `MODE_${String(mode).toUpperCase().replace('-', '_')}` }),
        ...(tag !== undefined && { tags: [tag].flat() }),
        ...(platform !== undefined && { platforms: [platform].flat() }),
        ...(interval !== undefined && { interval: secondsOf(String(interval), '--interval') }),
        ...(staleFor !== undefined && { staleFor: secondsOf(String(staleFor), '--stale-for') }),
      }
      await api.call('POST', at, body)
    }
    const shown = options.check === true ? api.call('POST', `${at}:check`, {}) : api.call('GET', at)
    const found = (await shown.catch(followsNothing(path))) as Follow
    return { json: found, rows: rowsOf(path, found, await upstreamName(api, found.upstreamUid)) }
  },
})

function checkUpstream({ upstream: named, path, mode, tag, platform, interval, staleFor }: Options): void {
  const sets = [mode, tag, platform, interval, staleFor].some((one) => one !== undefined)
  if ((named === undefined) !== (path === undefined) || (sets && named === undefined)) {
    throw usageError('what it is to follow takes both --upstream and --path')
  }
}

const unfollow = apiCommand({
  arguments: [repository],
  options: [yesOption],
  async run(api, options, terminal) {
    const { path, repo } = await repoOf(api, options)
    await confirm(terminal, options.yes, `have ${path} follow nothing any more`)
    await api.call('DELETE', `/registry/v2/repos/${repo}/follow`).catch(followsNothing(path))
    terminal.say(`${path} follows nothing any more`)
  },
})

const following = apiCommand({
  arguments: [{ name: '<group>', summary: 'Its name as ORG or ORG/FOLDER, or its uid' }],
  options: [limitOption, outputOption],
  check: limitOf,
  async run(api, options) {
    const at = `/registry/v2/follows/${await groupOf(api, String(options.group))}`
    const { items, more } = await api.list<Follow>(at, 'follows', {}, limitOf(options))
    const repos = items.map(({ repoUid }) => ({ uid: repoUid, name: repoUid.slice(repoUid.lastIndexOf('/') + 1) }))
    const uids = repos.map(({ uid }) => uid)
    const named =
      uids.length === 0 ? [] : (await api.list<Repo>('/registry/v2/repos', 'repos', { 'uidp.ids': uids })).items
    const paths = await pathsOf(api, named)
    const rows = items.map((one) => [
      paths.get(one.repoUid) ?? one.repoUid,
      wordOf(one.mode),
      one.path,
      String(one.tagCount ?? 0),
      wordOf(one.state ?? 'STATE_WAITING'),
      one.problem ?? '',
    ])
    const head = ['REPOSITORY', 'MODE', 'PATH THERE', 'TAGS', 'STATE', 'PROBLEM']
    return { json: { items }, head, rows, more }
  },
})

const wordOf = (text: string): string =>
  text
    .slice(text.indexOf('_') + 1)
    .toLowerCase()
    .replaceAll('_', ' ')
const units: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86_400 }

/** Adds a hint to the error for a repository that is not a mirror. */
function followsNothing(path: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof ApiError && error.code === codes.NOT_FOUND.number)) throw error
    const hint = `pinfold images repos follow ${path} --upstream NAME --path PATH has it follow`
    throw failure(`${path} follows nothing\n${hint}`, error)
  }
}

/** `GROUP/NAME` where the caller may see the upstream, else its uid. */
async function upstreamName(api: ApiReader, uid: string): Promise<string> {
  const { items } = await api.list<{ uid: string; name: string }>(upstream.path, upstream.member, { 'uidp.ids': [uid] })
  const [found] = items
  return found ? `${(await namesOf(api, [groupAbove(uid)], [])).path(groupAbove(uid))}/${found.name}` : uid
}

/** A span as people give it. */
function spanOf(interval: string): string {
  const seconds = Number(/^(\d+)s$/.exec(interval)?.[1])
  const [unit, length] = Object.entries(units).findLast(([, one]) => seconds % one === 0) ?? []
  return unit === undefined || length === undefined ? interval : `${seconds / length}${unit}`
}

function secondsOf(text: string, flag: string): string {
  const [, count, unit] = /^(\d{1,7})([smhd])$/.exec(text) ?? []
  if (!unit) throw usageError(`${flag} must be a time such as 30m, 12h or 1d`)
  return `${Number(count) * units[unit]!}s`
}

const histories: Record<string, string> = {
  HISTORY_SERVICE: 'told, without deletions',
  HISTORY_DRAFT: 'told',
  HISTORY_NONE: 'not told',
}

function historyOf({ history = '', historyWaitingCount = 0 }: Follow): string {
  const waiting = historyWaitingCount === 0 ? '' : `${historyWaitingCount} tags still to ask for`
  return [histories[history] ?? '', waiting].filter((text) => text !== '').join(', ')
}

/** Leaves out rows without a value. */
function rowsOf(path: string, follow: Follow, named: string): string[][] {
  return [
    ['repository', path],
    ['upstream', named],
    ['path there', follow.path],
    ['mode', wordOf(follow.mode)],
    ['tags', follow.tags?.join(' ') || 'all'],
    ['platforms', follow.platforms?.join(' ') ?? ''],
    ['interval', spanOf(follow.interval)],
    ['tags looked at', String(follow.tagCount ?? 0)],
    ['state', `${wordOf(follow.state ?? 'STATE_WAITING')} since ${follow.stateTime}`],
    ['problem', follow.problem ?? ''],
    ['still to bring', follow.waitingCount ? String(follow.waitingCount) : ''],
    ['not brought', follow.fetchProblem ?? ''],
    ['past there', historyOf(follow)],
    ['past not told', follow.historyProblem ?? ''],
    ['next look', follow.dueTime],
  ].filter(([, value]) => value !== '')
}

export const followCommands: Commands = { follow, following, unfollow }
