// Commands that create, show and apply deletion plans of retention policies.
import { setTimeout as sleep } from 'node:timers/promises'
import type { PlannedDeletionJson, RetentionPlanJson } from '#gen/pinfold/control/registry/v1/retention_plans_pb.ts'
import { size } from '#lib/terminal/plain-text.ts'
import { isUid } from '#lib/uid.ts'
import { type Answer, apiCommand } from '../../framework/api-pages.ts'
import type { ApiReader } from '../../framework/api-reader.ts'
import { failure } from '../../framework/cli-error.ts'
import { type Commands, type Options, outputOption } from '../../framework/command.ts'
import { limitOf, limitOption } from '../../framework/list-command.ts'
import { groupAbove, NameNotFound, namesOf } from '../../framework/names.ts'
import { confirm, type Item, v1, yesOption } from '../../framework/outputs.ts'
import { listOf, type Resource } from '../../framework/verbs.ts'
import { scopeNamed } from '../rules.ts'

type Plan = Item & RetentionPlanJson

const path = '/registry/v2/retentionPlans'
const planArgument = [
  { name: '<plan>', summary: 'Deletion plan: its uid, or its scope for the latest plan: ORG, ORG/FOLDER or ORG/NAME' },
]
const pollMs = 200
/** Maximum time to wait for a plan. The server creates and applies plans in the background. */
const longestMs = 10 * 60_000

/** Maximum number of a group's plans that are searched. An organization has at most 20 plans at a time. */
const mostLooked = 200

/** Uid of a plan. If a group or a repository is given, the uid of its latest plan. */
async function planNamed(api: ApiReader, given: string): Promise<string> {
  if (isUid(given)) return given
  const hint = `to list plans: pinfold policies retention plans list\nto create one: pinfold policies retention plans create ${given}`
  const scope_uid = await scopeNamed(api, given).catch((error: unknown) => {
    throw error instanceof NameNotFound
      ? new NameNotFound(`no deletion plan ${given} was found: ${error.message}\n${hint}`)
      : error
  })
  const { items } = await api.list<Plan>(path, 'retentionPlans', { scope_uid }, mostLooked)
  const [last] = items
    .filter(({ uid }) => groupAbove(uid) === scope_uid)
    .sort((a, b) => (a.createTime! < b.createTime! ? 1 : -1))
  if (last) return last.uid
  throw new NameNotFound(
    `no deletion plan for ${given} was found: none exists, or you do not have access to it\n${hint}`,
  )
}

const made: Resource<Plan> = {
  word: 'PLAN',
  path,
  member: 'retentionPlans',
  words: ['deletion plan', 'deletion plans'],
  fields: [],
  find: planNamed,
  parent: scopeNamed,
  mentions: ({ uid }) => ({ groups: [groupAbove(uid)], repos: [groupAbove(uid)] }),
  at: ({ uid, createTime }, names) => `${names.path(groupAbove(uid))}/${createTime}`,
  columns: {
    UID: ({ uid }) => uid,
    WHERE: ({ uid }, names) => names.path(groupAbove(uid)),
    STATE: ({ state }) => state?.toLowerCase(),
    MANIFESTS: ({ manifests = '0' }) => manifests,
    BYTES: ({ bytes = '0' }) => size(bytes),
    CREATED: ({ createTime }) => createTime,
  },
  more: { EXPIRES: ({ expireTime }) => expireTime },
  label: ({ uid }) => uid,
  json: v1(),
}

const plans = listOf(made, {
  formerArgument: 'scope',
  summary: 'Only plans of this organization, folder or repository: ORG, ORG/FOLDER, ORG/NAME or a uid',
  scope: 'scope_uid',
})

/** Waits until the server has created or applied the plan. Throws if that takes too long. */
async function settled(api: ApiReader, uid: string, busy: string): Promise<Plan> {
  for (let waited = 0; waited < longestMs; waited += pollMs) {
    const plan = (await api.call('GET', `${path}/${uid}`)) as Plan
    if (plan.state !== busy) return plan
    await sleep(pollMs)
  }
  const hint = `to see its progress: pinfold policies retention plans describe ${uid}`
  throw failure(
    `the server has not finished the plan within ${longestMs / 60_000} minutes, and continues with it\n${hint}`,
  )
}

const plan = apiCommand({
  details: `Deletes nothing. Lists the manifests that retention policies no longer keep, and stores the list as a deletion plan for 7 days.
pinfold policies retention plans apply deletes them. Manifests that only a policy in dry-run would delete are listed too, but
not deleted.`,
  arguments: [
    {
      name: '<scope>',
      summary: 'Organization, folder or repository, with all below: ORG, ORG/FOLDER, ORG/NAME or a uid',
    },
  ],
  options: [limitOption, outputOption],
  async run(api, options) {
    const scope = await scopeNamed(api, String(options.scope))
    const made = (await api.call('POST', `${path}/${scope}`, {})) as Plan
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
  const { items, more } = await api.list<PlannedDeletionJson>(
    `${path}/${made.uid}/deletions`,
    'deletions',
    {},
    limitOf(options),
  )
  const repos = [...new Set(items.map(({ repoUid = '' }) => repoUid))]
  const names = options.output === 'json' ? undefined : await namesOf(api, { groups: repos.map(groupAbove), repos })
  const rows = items.map((one) => [
    names?.path(one.repoUid ?? '') ?? one.repoUid,
    one.digest,
    whyOf(one),
    size(one.bytes ?? 0),
    one.dryRun ? 'not deleted (dry-run)' : (outcomeWords[one.outcome ?? ''] ?? 'to delete'),
  ])
  const head = ['IMAGE', 'DIGEST', 'WHY', 'BYTES', 'STATE']
  const notes = (say: (line: string) => void) => say(`pinfold: ${summaryOf(made)}`)
  return { json: { plan: made, items }, head, rows, more, notes }
}

const outcomeWords: Record<string, string> = { DELETED: 'deleted', KEPT: 'kept', GONE: 'deleted before' }

function whyOf({ why, until = '', partOf = '' }: PlannedDeletionJson): string {
  if (why === 'EXPIRED') return `retention ended at ${until}`
  return why === 'PART' ? `part of ${partOf}` : 'not one of the last digests'
}

/** Text with the state of the plan, and the next step. */
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
  const dry = dryRunManifests === '0' ? '' : `; policies in dry-run would delete ${dryRunManifests} more`
  const more = made.truncated ? ' (the plan is full; create another one after it is applied)' : ''
  const unread =
    undecided === '0' ? '' : `; ${undecided} more are not deleted, because checking them would read too many records`
  if (state === 'PLANNING') return 'the plan is still being created'
  if (state === 'APPLIED') return `deleted ${deleted} of ${manifests} manifests, and kept ${left}`
  if (state === 'APPLYING') return `deleted ${deleted} of ${manifests} manifests so far`
  if (manifests === '0') return `no manifests to delete${dry}${unread}`
  return `${manifests} manifests to delete, ${size(bytes)}${more}${dry}${unread}\nto delete them: pinfold policies retention plans apply ${uid}`
}

const apply = apiCommand({
  details: `Checks each manifest again before it is deleted. Keeps manifests that have got a tag, a legal hold or a longer retention since the
plan was created, and those that an index contains by now.`,
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

export const planCommands: Commands = {
  'plans create': plan,
  'plans list': plans,
  'plans describe': deletions,
  'plans apply': apply,
}
