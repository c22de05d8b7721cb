// Commands for admission policies, whose conditions are checked when an image is pulled.
import type { ChangedImageJson, GateJson } from '#gen/pinfold/control/scanning/v1/gates_pb.ts'
import type { CheckedPolicyJson } from '#gen/pinfold/control/scanning/v1/policy_checks_pb.ts'
import type { Row } from '#lib/terminal/plain-text.ts'
import { apiCommand } from '../framework/api-pages.ts'
import type { ApiReader } from '../framework/api-reader.ts'
import { exitCodes, usageError } from '../framework/cli-error.ts'
import { type Commands, outputOption } from '../framework/command.ts'
import { limitOf, limitOption } from '../framework/list-command.ts'
import type { Field } from '../framework/verbs.ts'
import { constant, exceptionCommands, ruleCommands, scopeOf, scopeOption } from '../registry/rules.ts'
import { digestOf, namesOfImages } from './scanned-image.ts'

const kind = {
  path: '/registry/v2/gates',
  member: 'gates',
  words: ['admission policy', 'admission policies'],
  list: 'pinfold policies admission list',
} as const

const word = ({ mode = 'MODE_UNSPECIFIED' }: GateJson): string => mode.toLowerCase().replace('_', '-')
const whole = (option: string) => (_: ApiReader, text: string) => {
  if (/^\d{1,6}$/.test(text)) return Number(text)
  throw usageError(`${option} must be a whole number`)
}

const fields: readonly Field[] = [
  { flags: '--rename <name>', summary: 'New name', member: 'name', only: 'update' },
  {
    flags: '--mode <mode>',
    summary:
      'Effect on pulls that the policy does not allow: denied (enforce), only reported (dry-run), or none (off); default for a new policy: dry-run',
    choices: ['off', 'dry-run', 'enforce'],
    read: constant,
  },
  {
    flags: '--severity <level>',
    summary: 'Deny images with vulnerabilities of this severity or worse',
    member: 'vulnerabilities.leastSeverity',
    choices: ['any', 'low', 'medium', 'high', 'critical'],
    read: (api, level) => (level === 'any' ? undefined : constant(api, level)),
  },
  {
    flags: '--fixable',
    summary: 'Only vulnerabilities with a fixed version of the package',
    member: 'vulnerabilities.onlyFixable',
  },
  {
    flags: '--exploited',
    summary: 'Only vulnerabilities that are known to be exploited (KEV)',
    member: 'vulnerabilities.onlyExploited',
  },
  {
    flags: '--after-days <days>',
    summary: 'Only vulnerabilities that were found here more than this number of days ago',
    member: 'vulnerabilities.afterDays',
    read: whole('--after-days'),
  },
  {
    flags: '--unknown-severity <how>',
    summary: 'Treatment of vulnerabilities of unknown severity; default for a new policy: high',
    member: 'vulnerabilities.unknownSeverity',
    choices: ['high', 'not-counted'],
    read: (_, how) => (how === 'high' ? 'COUNTED_AS_HIGH' : 'NOT_COUNTED'),
  },
  {
    flags: '--unknown <what>',
    summary: 'Result for images that could not be scanned completely; default: pass',
    member: 'vulnerabilities.unknown',
    choices: ['pass', 'deny'],
    read: constant,
  },
  { flags: '--end-of-life', summary: 'Deny images of products past their end of life', read: () => ({}) },
  {
    flags: '--min-age-days <days>',
    summary: 'Deny images that have had a tag for less than this number of days',
    member: 'cooldown.minAgeDays',
    read: whole('--min-age-days'),
  },
  {
    flags: '--months-left <months>',
    summary: 'Deny images of products whose end of life is less than this number of months away',
    member: 'supportWindow.minMonthsLeft',
    read: whole('--months-left'),
  },
  {
    flags: '--exempt-pulled-days <days>',
    summary: 'Allow digests that were pulled within this number of days, while the policy allowed them; at most 90',
    read: whole('--exempt-pulled-days'),
  },
]

const check = apiCommand({
  details: `The exit code is 1 if an enforced policy denies the image or cannot be checked. An allowed image may still have vulnerabilities: WHY
shows coverage gaps, and the number of findings of unknown severity that the policy does not count.`,
  arguments: [{ name: '<image>', summary: 'Image: acme/team/app:1.0 or acme/app@sha256:…; default tag: latest' }],
  options: [outputOption],
  async run(api, options) {
    const { repo, digest } = await digestOf(api, String(options.image))
    const answer = await api.call('POST', `/registry/v1/repos/${repo}:checkPolicies`, { digest })
    const items = (answer.results ?? []) as CheckedPolicyJson[]
    const rows = items.map(({ policyName, mode, result, parameters: { reason, exception } = {} }) => [
      policyName,
      mode === 'POLICY_MODE_ENFORCED' ? 'enforce' : 'dry-run',
      result?.replace('RESULT_', '').toLowerCase(),
      exception === undefined ? String(reason) : `${reason}; exemption ${exception}`,
    ])
    const isRefused = items.some(({ mode, result }) => mode === 'POLICY_MODE_ENFORCED' && result !== 'RESULT_ALLOWED')
    const code = isRefused ? exitCodes.failed : exitCodes.ok
    return { json: { digest, items }, head: ['POLICY', 'MODE', 'RESULT', 'WHY'], rows, code }
  },
})

/** Short text that describes a policy. */
function ruleText({ vulnerabilities, endOfLife, cooldown, supportWindow }: GateJson): string {
  if (cooldown) return `at least ${cooldown.minAgeDays} days old`
  if (supportWindow) return `at least ${supportWindow.minMonthsLeft} months until the end of life`
  if (endOfLife) return 'not past the end of life'
  const { leastSeverity, onlyFixable, onlyExploited, afterDays = 0, unknown, unknownSeverity } = vulnerabilities ?? {}
  const level =
    leastSeverity && leastSeverity !== 'SEVERITY_UNSPECIFIED' ? `, ${leastSeverity.toLowerCase()} or worse` : ''
  const kind = `${onlyExploited ? 'exploited ' : ''}${onlyFixable ? 'fixable ' : ''}vulnerabilities`
  const since = afterDays > 0 ? `, found more than ${afterDays} days ago` : ''
  const unrated =
    leastSeverity === undefined || leastSeverity === 'SEVERITY_UNSPECIFIED' ? '' : unratedText(unknownSeverity)
  return `no ${kind}${level}${since}${unrated}${unknown === 'DENY' ? '; completely scanned' : ''}`
}

const unratedText = (how: string | undefined): string =>
  how === 'NOT_COUNTED' ? '; unknown severity is not counted' : '; unknown severity counts as high'

const preview = apiCommand({
  details: `Changes nothing. Policies from before --unknown-severity existed do not count vulnerabilities of unknown severity.
To change a policy: pinfold policies admission update POLICY --severity LEVEL --unknown-severity high. An update replaces all
conditions of the policy, so repeat its other options.`,
  options: [scopeOption, limitOption, outputOption],
  async run(api, options) {
    const limit = limitOf(options)
    const query = { scope_uid: await scopeOf(api, options) }
    const { items: gates, more } = await api.list<GateJson>(kind.path, kind.member, query, limit)
    const items: { gate: GateJson; images: ChangedImageJson[] }[] = []
    for (const gate of gates.filter(hasExclusions)) items.push({ gate, images: await changesOf(api, gate, limit) })
    const rows: Row[] = []
    for (const { gate, images } of items) {
      const names = await namesOfImages(api, images)
      const first = [gate.name, word(gate)]
      if (images.length === 0) rows.push([...first, '-', 'no other image would be denied'])
      rows.push(...images.map(({ reason }, i) => [...first, names[i]!, reason]))
    }
    const isCut = more || items.some(({ images }) => images.length >= limit)
    return { json: { items }, head: ['POLICY', 'MODE', 'IMAGE', 'WHY'], rows, more: isCut }
  },
})

function hasExclusions({ vulnerabilities }: GateJson): boolean {
  const { leastSeverity = '', unknownSeverity } = vulnerabilities ?? {}
  return unknownSeverity === 'NOT_COUNTED' && ['LOW', 'MEDIUM', 'HIGH'].includes(leastSeverity)
}

async function changesOf(api: ApiReader, { uid }: GateJson, limit: number): Promise<ChangedImageJson[]> {
  const images: ChangedImageJson[] = []
  for (let after = ''; images.length < limit; ) {
    const answer = await api.call('POST', `/registry/v2/gates/${uid}:previewSeverities`, { after })
    images.push(...((answer.images ?? []) as ChangedImageJson[]))
    after = String(answer.next ?? '')
    if (after === '') break
  }
  return images.slice(0, limit)
}

export const vulnerabilitiesGates: Commands = {
  ...ruleCommands<GateJson>({
    ...kind,
    word: 'admission policy',
    fields,
    head: ['UID', 'NAME', 'MODE', 'CONDITION'],
    rows: async (_, gates) => gates.map((gate) => [gate.uid, gate.name, word(gate), ruleText(gate)]),
    create: {
      details: `A policy has one kind of condition: vulnerabilities, end of life, minimum age or support time. It applies to all pulls in its
scope. By default (--mode dry-run) it denies nothing, and only adds its verdict to the event of each pull. An image that still
waits to be scanned is allowed.`,
      arguments: [{ name: '<name>', summary: 'Name: letters, digits, ., _ and -' }],
    },
    update: {
      details: `The given condition replaces all conditions of the policy, so repeat the options that remain. Only --unknown-severity keeps its
value if it is not given.`,
    },
  }),
  check,
  preview,
  ...exceptionCommands({
    path: '/registry/v2/gateExceptions',
    member: 'gateExceptions',
    days: 90,
    command: 'pinfold policies admission',
  }),
}
