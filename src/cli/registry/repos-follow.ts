// Mirrors: repositories that copy the tags of a repository of another registry.
import type { FollowJson } from '#gen/pinfold/control/registry/v1/follows_pb.ts'
import { codes } from '#lib/errors.ts'
import type { Row } from '#lib/terminal/plain-text.ts'
import { ApiError } from '../framework/api-client.ts'
import { apiCommand } from '../framework/api-pages.ts'
import type { ApiReader } from '../framework/api-reader.ts'
import { failure, usageError } from '../framework/cli-error.ts'
import { type Commands, type Options, outputOption } from '../framework/command.ts'
import { listCommand } from '../framework/list-command.ts'
import { groupAbove, groupOf, namesOf } from '../framework/names.ts'
import { confirm, yesOption } from '../framework/outputs.ts'
import { imageNamed, pathsOf, type Repo } from './image-names.ts'
import { upstream } from './upstreams.ts'

const repository = { name: '<repository>', summary: 'Repository: ORG/NAME, ORG/FOLDER/NAME or a uid' }

const follow = apiCommand({
  details: `With --upstream and --path, turns the repository into a mirror. The server checks the tags of the upstream repository on a schedule,
and adds each change to the tag history. Pushes to a mirror are refused.
Without them, shows the settings and the state of the mirror.`,
  arguments: [repository],
  options: [
    { flags: '--upstream <upstream>', summary: 'Upstream registry: its name, GROUP/NAME or uid' },
    { flags: '--path <path>', summary: 'Path of the repository at the upstream, such as team/app' },
    {
      flags: '--mode <mode>',
      summary:
        'Content to copy: none, only the digests of tags (watch), with the first pull (on-demand), or in advance (full); default: watch',
      choices: ['watch', 'on-demand', 'full'],
    },
    {
      flags: '--tag <name-or-pattern>',
      summary: 'Only these tags: a name, or a regular expression for whole names; default: all tags; may be repeated',
      repeat: true,
    },
    {
      flags: '--platform <os/architecture>',
      summary:
        'With --mode full: copy only the images of this platform, such as linux/amd64; default: all platforms; may be repeated',
      repeat: true,
    },
    { flags: '--interval <time>', summary: 'Time between two checks of a tag, from 5m to 7d; default: 1h' },
    {
      flags: '--stale-for <time>',
      summary:
        'Time to serve known tags while the upstream does not answer, such as 7d; default: 30d; not for --mode watch',
    },
    { flags: '--check', summary: 'Check the upstream as soon as possible' },
    outputOption,
  ],
  check: checkUpstream,
  async run(api, options) {
    const { upstream: named, path: there, mode, tag, platform, interval, staleFor } = options
    const { path, repo } = await imageNamed(api, options.repository)
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
    const found = (await shown.catch(followsNothing(path))) as FollowJson
    return { json: found, rows: rowsOf(path, found, await upstreamName(api, found.upstreamUid!)) }
  },
})

function checkUpstream({ upstream: named, path, mode, tag, platform, interval, staleFor }: Options): void {
  const sets = [mode, tag, platform, interval, staleFor].some((one) => one !== undefined)
  if ((named === undefined) !== (path === undefined) || (sets && named === undefined)) {
    throw usageError('the mirror was not changed: give both --upstream and --path, also to change other settings')
  }
}

const unfollow = apiCommand({
  arguments: [repository],
  options: [yesOption],
  async run(api, options, terminal) {
    const { path, repo } = await imageNamed(api, options.repository)
    await confirm(terminal, options.yes, `stop mirroring ${path}; its tags and their history remain`)
    await api.call('DELETE', `/registry/v2/repos/${repo}/follow`).catch(followsNothing(path))
    terminal.say(`${path} is no longer a mirror`)
  },
})

const following = listCommand({
  options: [
    {
      flags: '--in <group>',
      summary: 'Organization or folder: ORG, ORG/FOLDER or a uid',
      required: true,
      formerArgument: 'group',
    },
    outputOption,
  ],
  async run(api, options) {
    const at = `/registry/v2/follows/${await groupOf(api, String(options.in))}`
    const { items, more } = await api.selected<FollowJson>(at, 'follows', {})
    const uids = items.map(({ repoUid = '' }) => repoUid)
    const named =
      uids.length === 0 ? [] : (await api.list<Repo>('/registry/v2/repos', 'repos', { 'uidp.ids': uids })).items
    const paths = await pathsOf(api, named)
    const rows = items.map((one) => [
      paths.get(one.repoUid!) ?? one.repoUid,
      wordOf(one.mode),
      one.path,
      String(one.tagCount ?? 0),
      wordOf(one.state ?? 'STATE_WAITING'),
      one.problem,
    ])
    const head = ['REPOSITORY', 'MODE', 'UPSTREAM PATH', 'TAGS', 'STATE', 'PROBLEM']
    return { json: { items }, head, rows, more }
  },
})

const wordOf = (text = ''): string =>
  text
    .slice(text.indexOf('_') + 1)
    .toLowerCase()
    .replaceAll('_', ' ')
const units: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86_400 }

/** Adds a next step to the error for a repository that is not a mirror. */
function followsNothing(path: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof ApiError && error.code === codes.NOT_FOUND.number)) throw error
    const hint = `to make it a mirror: pinfold mirrors create ${path} --upstream NAME --path PATH`
    throw failure(`${path} is not a mirror\n${hint}`, error)
  }
}

/** `GROUP/NAME` of an upstream. If the caller cannot see the upstream, its uid. */
async function upstreamName(api: ApiReader, uid: string): Promise<string> {
  const { items } = await api.list<{ uid: string; name: string }>(upstream.path, upstream.member, { 'uidp.ids': [uid] })
  const [found] = items
  const group = groupAbove(uid)
  return found ? `${(await namesOf(api, { groups: [group] })).path(group)}/${found.name}` : uid
}

/** Duration in the form that the options accept. */
function spanOf(interval: string): string {
  const seconds = Number(/^(\d+)s$/.exec(interval)?.[1])
  const [unit, length] = Object.entries(units).findLast(([, one]) => seconds % one === 0) ?? []
  return unit === undefined || length === undefined ? interval : `${seconds / length}${unit}`
}

function secondsOf(text: string, flag: string): string {
  const [, count, unit] = /^(\d{1,7})([smhd])$/.exec(text) ?? []
  if (!unit) throw usageError(`${flag} must be a duration such as 30m, 12h or 1d`)
  return `${Number(count) * units[unit]!}s`
}

const histories: Record<string, string> = {
  HISTORY_SERVICE: 'reported, without deletions',
  HISTORY_DRAFT: 'reported',
  HISTORY_NONE: 'not reported',
}

function historyOf({ history, historyWaitingCount = 0 }: FollowJson): string {
  const waiting = historyWaitingCount === 0 ? '' : `${historyWaitingCount} tags still to read`
  return [histories[history ?? ''] ?? '', waiting].filter((text) => text !== '').join(', ')
}

/** Omits rows without a value. */
function rowsOf(path: string, follow: FollowJson, named: string): Row[] {
  return [
    ['repository', path],
    ['upstream', named],
    ['upstream path', follow.path],
    ['mode', wordOf(follow.mode)],
    ['tags', follow.tags?.join(' ') || 'all'],
    ['platforms', follow.platforms?.join(' ')],
    ['interval', spanOf(follow.interval!)],
    ['tags checked', String(follow.tagCount ?? 0)],
    ['state', `${wordOf(follow.state ?? 'STATE_WAITING')} since ${follow.stateTime}`],
    ['problem', follow.problem],
    ['waiting copies', follow.waitingCount ? String(follow.waitingCount) : ''],
    ['copy problem', follow.fetchProblem],
    ['upstream history', historyOf(follow)],
    ['history problem', follow.historyProblem],
    ['next check', follow.dueTime],
  ].filter(([, value]) => value)
}

export const mirrorCommands: Commands = { create: follow, list: following, delete: unfollow }
