// Commands for push tokens: passwords for the registry that act as their creator, for a laptop or a cron job.
import { hostname } from 'node:os'
import type { PushTokenJson } from '#gen/pinfold/control/iam/v1/push_tokens_pb.ts'
import { plain } from '#lib/terminal/plain-text.ts'
import { isUid, lineage, parentOf } from '#lib/uid.ts'
import type { Body } from '../framework/api-client.ts'
import { apiCommand, apiReader, callerOptions, parentOf as groupFrom } from '../framework/api-pages.ts'
import type { ApiReader } from '../framework/api-reader.ts'
import { exitCodes, failure, usageError } from '../framework/cli-error.ts'
import { type Command, type Commands, type OptionSpec, type Options, outputOption } from '../framework/command.ts'
import { listCommand } from '../framework/list-command.ts'
import { groupOf, namesOf } from '../framework/names.ts'
import { registryOf } from '../framework/session.ts'
import { imageNamed } from './image-names.ts'
import { printPassword, tokenOutput } from './pull-token.ts'

type PushToken = PushTokenJson & { userName: string; group: string; expireTime: string }

const base = '/control/v1/pushTokens'
const ofGroup = '/control/v1/groupPushTokens'
const maxHours = 8760

const create: Command = {
  details: `A push token acts as you, but only in its scope. It loses a permission when you lose it. Without --push it can only pull. A deleted
push token stops working within a second.`,
  arguments: [{ name: '[name]', summary: 'Name of the token; default: the name of this machine' }],
  options: [
    {
      flags: '--in <group>',
      summary: 'Scope of the token: ORG or ORG/FOLDER; default: your own organization',
      former: ['--group <group>'],
    },
    {
      flags: '--repo <image>',
      summary: 'Limit the token to this repository, such as acme/app; may be repeated',
      repeat: true,
    },
    { flags: '--push', summary: 'Allow the token to push and to update tags' },
    { flags: '--ttl <time>', summary: 'Validity in hours or days, such as 12h or 90d; at most 365d; default: 30d' },
    tokenOutput,
    ...callerOptions,
  ],
  async run(terminal, options) {
    const ttl = secondsOf(options.ttl)
    const api = await apiReader(terminal, options)
    const repoUids = await reposOf(api, options)
    const group = options.in === undefined && repoUids.length > 0 ? above(repoUids) : await groupFrom(api, options.in)
    const name = String(options.name ?? nameOfMachine())
    const asked = { name, push: options.push === true, repoUids, ttl }
    const { pushToken, secret } = (await api.call('POST', `${base}/${group}`, asked)) as Body & { pushToken: PushToken }
    const registry = registryOf(api.session)
    const { userName: user, expireTime: expiry } = pushToken
    const password = String(secret)
    printPassword(terminal, options, { registry, user, password, expiry }, { ...shown(pushToken), registry, password })
    if (options.output !== 'json' && options.output !== 'env')
      terminal.say(`the password is not shown again; to sign in: docker login --username ${user} ${registry}`)
    return exitCodes.ok
  },
}

const groupOption: OptionSpec = {
  flags: '--in <group>',
  summary: 'Push tokens of all users with access to this organization or folder, instead of your own',
  former: ['--group <group>'],
}

const list = listCommand({
  usual: Number.POSITIVE_INFINITY,
  options: [groupOption, { flags: '--expired', summary: 'Only expired push tokens' }, outputOption],
  async run(api, options) {
    const now = new Date().toISOString()
    const keep = options.expired ? ({ expireTime }: PushToken) => expireTime <= now : undefined
    const path = await pathOf(api, options)
    const { items: found, more } = await api.selected<PushToken>(path, 'pushTokens', {}, keep)
    if (options.output === 'json') return { json: { items: found.map(shown) }, more }
    const names = await namesOf(api, { groups: found.map(({ group }) => group) })
    const rows = found.map((one) => [
      one.userName,
      one.name,
      one.push ? 'push' : 'pull',
      reach(one, names.path(one.group)),
      one.expireTime <= now ? 'expired' : one.expireTime,
      one.lastUsedTime === undefined ? 'never' : `${one.lastUsedTime} from ${plain(one.lastUsedFrom ?? '')}`,
    ])
    return { head: ['USER', 'NAME', 'MAY', 'WHERE', 'EXPIRES', 'LAST USED'], rows, more }
  },
})

const remove = apiCommand({
  arguments: [{ name: '<user>', summary: 'Push token: its user name or uid, as pinfold tokens push list shows them' }],
  options: [groupOption],
  async run(api, options) {
    const given = String(options.user)
    const uid = isUid(given) ? given : (await tokensOf(api, options)).find((one) => one.userName === given)?.uid
    if (uid === undefined) {
      const hint = 'pinfold tokens push list lists push tokens'
      throw failure(`no push token ${given} was found: it does not exist, or you do not have access to it\n${hint}`)
    }
    if (options.in === undefined) await api.call('DELETE', `${base}/${uid}`)
    else {
      const group = await groupOf(api, String(options.in))
      await api.call('POST', `${ofGroup}/${group}:revoke`, { pushTokenUid: uid })
    }
  },
})

export const pushToken: Commands = { create, list, delete: remove }

async function pathOf(api: ApiReader, { in: group }: Options): Promise<string> {
  return group === undefined ? base : `${ofGroup}/${await groupOf(api, String(group))}`
}

async function tokensOf(api: ApiReader, options: Options): Promise<PushToken[]> {
  return (await api.list<PushToken>(await pathOf(api, options), 'pushTokens', {})).items
}

/** JSON of a push token, with the member names of other lists. Empty members are included. */
function shown({ uid, identityUid, userName, name, group, repoUids = [], push = false, ...times }: PushToken) {
  const { createTime: createdAt, expireTime: expiresAt, lastUsedTime, lastUsedFrom = '' } = times
  const used = lastUsedTime === undefined ? {} : { lastUsedAt: lastUsedTime, lastUsedFrom }
  return {
    id: uid,
    identity: identityUid,
    user: userName,
    name,
    group,
    repos: repoUids,
    push,
    createdAt,
    expiresAt,
    ...used,
  }
}

function reach({ repoUids = [] }: PushToken, path: string): string {
  if (repoUids.length === 0) return path
  return `${path}, ${repoUids.length === 1 ? 'one repository' : `${repoUids.length} repositories`}`
}

async function reposOf(api: ApiReader, { repo }: Options): Promise<string[]> {
  const uids: string[] = []
  for (const name of (repo ?? []) as readonly string[]) uids.push((await imageNamed(api, name)).repo)
  return uids
}

/** Uid of the lowest group that contains all of the repositories. */
function above(repos: readonly string[]): string {
  const [first, ...others] = repos.map((uid) => lineage(parentOf(uid)))
  const shared = first!.find((group) => others.every((groups) => groups.includes(group)))
  if (shared !== undefined) return shared
  throw usageError(
    'no push token was created: these repositories are in several organizations, and a push token is for one; create one for each',
  )
}

/** Host name of this machine, changed to be a valid name of a push token. */
function nameOfMachine(): string {
  return (
    hostname()
      .toLowerCase()
      .replace(/[^a-z0-9 ._-]/g, '-') || 'push-token'
  )
}

function secondsOf(given: unknown): string | undefined {
  if (given === undefined) return undefined
  const [, digits, unit] = /^(\d{1,5})([hd])$/.exec(String(given)) ?? []
  const hours = Number(digits) * (unit === 'd' ? 24 : 1)
  if (hours >= 1 && hours <= maxHours) return `${hours * 3600}s`
  throw usageError(`--ttl must be a number of hours or days such as 12h or 90d, from 1h to ${maxHours / 24}d`)
}
