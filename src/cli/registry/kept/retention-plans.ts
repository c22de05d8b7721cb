// Plans of deletions by retention rules: create, read and apply.
import { setTimeout as sleep } from 'node:timers/promises'
import { isUid } from '#lib/uid.ts'
import { type Answer, apiCommand } from '../../framework/api-pages.ts'
import type { ApiReader } from '../../framework/api-reader.ts'
import { failure } from '../../framework/cli-error.ts'
import { type Commands, type Options, outputOption } from '../../framework/command.ts'
import { groupAbove, NothingNamed, namesOf } from '../../framework/names.ts'
import { confirm, v1, yesOption } from '../../framework/outputs.ts'
import { size } from '../../framework/plain-text.ts'
import { limitOf, limitOption, listOf, type Resource } from '../../framework/verbs.ts'
import { placeNamed } from '../rules.ts'

type Plan = {
  uid: string
  state: string
  manifests?: string
  bytes?: string
  dryRunManifests?: string
  dryRunBytes?: string
  undecided?: string
  truncated?: boolean
  deleted?: string
  left?: string
  createTime: string
  expireTime: string
}
type Deletion = {
  repoUid: string
  digest: string
  why: string
  until?: string
  partOf?: string
  bytes?: string
  dryRun?: boolean
  outcome?: string
}

const path = '/registry/v2/retentionPlans'
const planArgument = [{ name: '<plan>', summary: 'Its uid, as plan and plans say it, or its place' }]
const pollMs = 200
/** Milliseconds to wait for a plan, which a server creates and applies beside its other work. */
const longestMs = 10 * 60_000

/** The most plans of a group that are searched; an organization has 20 at a time. */
const mostLooked = 200

/** Uid of a plan. A group or repository selects its latest plan. */
async function planNamed(api: ApiReader, given: string): Promise<string> {
  if (isUid(given)) return given
  const hint = 'pinfold images retention plans lists them, and pinfold images retention plan makes one'
  const scope_uid = await placeNamed(api, given).catch((error: unknown) => {
    throw error instanceof NothingNamed ? new NothingNamed(`${given} is no plan: ${error.message}\n${hint}`) : error
  })
  const { items } = await api.list<Plan>(path, 'retentionPlans', { scope_uid }, mostLooked)
  const [last] = items
    .filter(({ uid }) => groupAbove(uid) === scope_uid)
    .sort((a, b) => (a.createTime < b.createTime ? 1 : -1))
  if (last) return last.uid
  throw new NothingNamed(`there is no plan for ${given} that you can see\n${hint}`)
}

const made: Resource<Plan> = {
  word: 'PLAN',
  path,
  member: 'retentionPlans',
  words: ['plan', 'plans of what rules let go'],
  fields: [],
  find: planNamed,
  parent: placeNamed,
  mentions: ({ uid }) => ({ groups: [groupAbove(uid)], repos: [groupAbove(uid)] }),
  at: ({ uid, createTime }, names) => `${names.path(groupAbove(uid))}/${createTime}`,
  columns: {
    UID: ({ uid }) => uid,
    WHERE: ({ uid }, names) => names.path(groupAbove(uid)),
    STATE: ({ state }) => state.toLowerCase(),
    MANIFESTS: ({ manifests = '0' }) => manifests,
    BYTES: ({ bytes = '0' }) => size(bytes),
    MADE: ({ createTime }) => createTime,
  },
  more: { ENDS: ({ expireTime }) => expireTime },
  label: ({ uid }) => uid,
  json: v1(),
}

const plans = listOf(made, {
  argument: '[place]',
  summary: 'Only those of this group or repository, and below: ORG, ORG/FOLDER, ORG/NAME, or its uid',
  scope: 'scope_uid',
})

/** The plan once the server has done with it; throws when that takes too long. */
async function settled(api: ApiReader, uid: string, busy: string): Promise<Plan> {
  for (let waited = 0; waited < longestMs; waited += pollMs) {
    const plan = (await api.call('GET', `${path}/${uid}`)) as Plan
    if (plan.state !== busy) return plan
    await sleep(pollMs)
  }
  const hint = `pinfold images retention deletions ${uid} shows how far it has got`
  throw failure(`the server is still at work on the plan\n${hint}`)
}

const plan = apiCommand({
  details: `Nothing is deleted. What it prints is kept for a week as a plan, which apply carries out. Rules in dry-run are shown
as if they were in force, and what only they let go is not deleted.`,
  arguments: [{ name: '<place>', summary: 'ORG, ORG/FOLDER, ORG/NAME, or a uid: it and all below' }],
  options: [limitOption, outputOption],
  async run(api, options) {
    const place = await placeNamed(api, String(options.place))
    const made = (await api.call('POST', `${path}/${place}`, {})) as Plan
    return answerOf(api, options, await settled(api, made.uid, 'PLANNING'))
  },
})

const deletions = apiCommand({
  arguments: planArgument,
  options: [limitOption, outputOption],
  async run(api, options) {
    const uid = await planNamed(api, String(options.plan))
    return answerOf(api, options, (await api.call('GET', `${path}/${uid}`)) as Plan)
  },
})

async function answerOf(api: ApiReader, options: Options, made: Plan): Promise<Answer> {
  const { items, more } = await api.list<Deletion>(`${path}/${made.uid}/deletions`, 'deletions', {}, limitOf(options))
  const repos = [...new Set(items.map(({ repoUid }) => repoUid))]
  const names = options.output === 'json' ? undefined : await namesOf(api, repos.map(groupsOf), [], repos)
  const rows = items.map((one) => [
    names?.path(one.repoUid) ?? one.repoUid,
    one.digest,
    whyOf(one),
    size(one.bytes ?? 0),
    one.dryRun ? 'would go' : (outcomeWords[one.outcome ?? ''] ?? 'goes'),
  ])
  const head = ['IMAGE', 'DIGEST', 'WHY', 'BYTES', 'WHAT']
  const notes = (say: (line: string) => void) => say(`pinfold: ${summaryOf(made)}`)
  return { json: { plan: made, items }, head, rows, more, notes }
}

const groupsOf = (repo: string): string => repo.slice(0, repo.lastIndexOf('/'))
const outcomeWords: Record<string, string> = { DELETED: 'deleted', KEPT: 'kept', GONE: 'gone before' }

function whyOf({ why, until = '', partOf = '' }: Deletion): string {
  if (why === 'EXPIRED') return `kept until ${until}`
  return why === 'PART' ? `part of ${partOf}` : 'none of the last'
}

/** State of the plan, and the next step. */
function summaryOf(made: Plan): string {
  const {
    uid,
    state,
    manifests = '0',
    bytes = '0',
    dryRunManifests = '0',
    deleted = '0',
    left = '0',
    undecided = '0',
  } = made
  const dry = dryRunManifests === '0' ? '' : `; rules in dry-run would let go ${dryRunManifests} more`
  const more = made.truncated ? ', and there is more for another plan' : ''
  const unread =
    undecided === '0' ? '' : `; ${undecided} more stay, since too much would have to be read to decide on them`
  if (state === 'PLANNING') return 'the plan is still being made'
  if (state === 'APPLIED') return `deleted ${deleted} of ${manifests}, and left ${left}`
  if (state === 'APPLYING') return `deleted ${deleted} of ${manifests} so far`
  if (manifests === '0') return `nothing goes${dry}${unread}`
  return `${manifests} manifests go, ${size(bytes)}${more}${dry}${unread}\npinfold images retention apply ${uid} deletes them`
}

const apply = apiCommand({
  details: `Each manifest is judged once more: what was tagged, held, listed or promised since the plan was made is left.`,
  arguments: planArgument,
  options: [yesOption, outputOption],
  async run(api, options, terminal) {
    const uid = await planNamed(api, String(options.plan))
    const { manifests = '0', bytes = '0' } = (await api.call('GET', `${path}/${uid}`)) as Plan
    await confirm(terminal, options.yes, `delete ${manifests} manifests, ${size(bytes)}`)
    await api.call('POST', `${path}/${uid}:apply`, {})
    const applied = await settled(api, uid, 'APPLYING')
    return { json: applied, text: summaryOf(applied) }
  },
})

export const planCommands: Commands = { plan, plans, deletions, apply }
