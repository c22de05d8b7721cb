// Gates: admission policies for images that are pulled.

import { apiCommand } from '../framework/api-pages.ts'
import type { ApiReader } from '../framework/api-reader.ts'
import { exitCodes, usageError } from '../framework/cli-error.ts'
import { type Commands, outputOption } from '../framework/command.ts'
import { type Field, limitOf, limitOption } from '../framework/verbs.ts'
import { exceptionCommands, placeOf, placeOptions, ruleCommands } from '../registry/rules.ts'
import { digestOf, type FoundImage, namesOfImages } from './scanned-image.ts'

type Gate = {
  uid: string
  name: string
  mode: string
  vulnerabilities?: {
    leastSeverity?: string
    onlyFixable?: boolean
    onlyExploited?: boolean
    afterDays?: number
    unknown?: string
    unknownSeverity?: string
  }
  endOfLife?: object
  cooldown?: { minAgeDays: number }
  supportWindow?: { minMonthsLeft: number }
}
type Checked = {
  policyName: string
  mode: string
  result: string
  parameters: { digest: string; kind: string; reason: string; exception?: string }
}

const kind = {
  path: '/registry/v2/gates',
  member: 'gates',
  words: ['gate', 'gates'],
  list: 'pinfold vulnerabilities gates list',
} as const

const constant = (_: ApiReader, word: string): string => word.toUpperCase().replace('-', '_')
const word = ({ mode }: Gate): string => mode.toLowerCase().replace('_', '-')
const whole = (option: string) => (_: ApiReader, text: string) => {
  if (/^\d{1,6}$/.test(text)) return Number(text)
  throw usageError(`${option} must be a whole number`)
}

const fields: readonly Field[] = [
  { flags: '--rename <name>', summary: 'What it is called from now on', member: 'name', only: 'update' },
  {
    flags: '--mode <mode>',
    summary: 'What happens to what does not pass',
    choices: ['off', 'dry-run', 'enforce'],
    read: constant,
  },
  {
    flags: '--severity <level>',
    summary: 'No vulnerabilities that are at least so bad',
    member: 'vulnerabilities.leastSeverity',
    choices: ['any', 'low', 'medium', 'high', 'critical'],
    read: (api, level) => (level === 'any' ? undefined : constant(api, level)),
  },
  {
    flags: '--fixable',
    summary: 'Of these, only those that a version of the package mends',
    member: 'vulnerabilities.onlyFixable',
  },
  {
    flags: '--exploited',
    summary: 'Of these, only those that are known to be used (KEV)',
    member: 'vulnerabilities.onlyExploited',
  },
  {
    flags: '--after-days <days>',
    summary: 'Of these, only those found more than so many days ago',
    member: 'vulnerabilities.afterDays',
    read: whole('--after-days'),
  },
  {
    flags: '--unknown-severity <how>',
    summary: 'How vulnerabilities of unknown severity count: as high unless given; an update keeps what the gate has',
    member: 'vulnerabilities.unknownSeverity',
    choices: ['high', 'not-counted'],
    read: (_, how) => (how === 'high' ? 'COUNTED_AS_HIGH' : 'NOT_COUNTED'),
  },
  {
    flags: '--unknown <what>',
    summary: 'What becomes of what cannot be read',
    member: 'vulnerabilities.unknown',
    choices: ['pass', 'deny'],
    read: constant,
  },
  { flags: '--end-of-life', summary: 'No products at the end of their life', read: () => ({}) },
  {
    flags: '--min-age-days <days>',
    summary: 'Nothing that has not been a tag for so many days',
    member: 'cooldown.minAgeDays',
    read: whole('--min-age-days'),
  },
  {
    flags: '--months-left <months>',
    summary: 'No products whose life ends in less than so many months',
    member: 'supportWindow.minMonthsLeft',
    read: whole('--months-left'),
  },
  {
    flags: '--exempt-pulled-days <days>',
    summary: 'What was pulled in so many days before, while it passed, passes',
    read: whole('--exempt-pulled-days'),
  },
]

const check = apiCommand({
  details: `The exit code is 1 if a gate that is enforced refuses it, or cannot be asked. An image that is allowed is not always clean:
WHY shows what was not scanned, and how many findings of unknown severity the gate does not count.`,
  arguments: [
    { name: '<image>', summary: 'Such as acme/team/app:1.0 or acme/app@sha256:…; its tag latest without one' },
  ],
  options: [outputOption],
  async run(api, options) {
    const { repo, digest } = await digestOf(api, String(options.image))
    const answer = await api.call('POST', `/registry/v1/repos/${repo}:checkPolicies`, { digest })
    const items = (answer.results ?? []) as Checked[]
    const rows = items.map(({ policyName, mode, result, parameters: { reason, exception } }) => [
      policyName,
      mode === 'POLICY_MODE_ENFORCED' ? 'enforce' : 'dry-run',
      result.replace('RESULT_', '').toLowerCase(),
      exception === undefined ? reason : `${reason}; excepted by ${exception}`,
    ])
    const isRefused = items.some(({ mode, result }) => mode === 'POLICY_MODE_ENFORCED' && result !== 'RESULT_ALLOWED')
    const code = isRefused ? exitCodes.failed : exitCodes.ok
    return { json: { digest, items }, head: ['GATE', 'MODE', 'RESULT', 'WHY'], rows, code }
  },
})

/** The rule of a gate in a few words. */
function ruleText({ vulnerabilities, endOfLife, cooldown, supportWindow }: Gate): string {
  if (cooldown) return `at least ${cooldown.minAgeDays} days old`
  if (supportWindow) return `at least ${supportWindow.minMonthsLeft} months of life left`
  if (endOfLife) return 'no end of life'
  const { leastSeverity, onlyFixable, onlyExploited, afterDays = 0, unknown, unknownSeverity } = vulnerabilities ?? {}
  const level =
    leastSeverity && leastSeverity !== 'SEVERITY_UNSPECIFIED' ? `, ${leastSeverity.toLowerCase()} or worse` : ''
  const kind = `${onlyExploited ? 'exploited ' : ''}${onlyFixable ? 'fixable ' : ''}vulnerabilities`
  const since = afterDays > 0 ? `, found more than ${afterDays} days ago` : ''
  const unrated =
    leastSeverity === undefined || leastSeverity === 'SEVERITY_UNSPECIFIED' ? '' : unratedText(unknownSeverity)
  return `no ${kind}${level}${since}${unrated}${unknown === 'DENY' ? '; nothing unknown' : ''}`
}

const unratedText = (how: string | undefined): string =>
  how === 'NOT_COUNTED' ? '; unknown severity is not counted' : '; unknown severity counts as high'

type Changed = FoundImage & { reason: string }

const preview = apiCommand({
  details: `Gates from before --unknown-severity existed do not count vulnerabilities of unknown severity. Nothing is changed.
To change a gate: pinfold vulnerabilities gates update GATE --severity LEVEL --unknown-severity high. An update replaces the whole rule, so
repeat its other options.`,
  options: [...placeOptions, limitOption, outputOption],
  async run(api, options) {
    const limit = limitOf(options)
    const query = { scope_uid: await placeOf(api, options) }
    const { items: gates, more } = await api.list<Gate>(kind.path, kind.member, query, limit)
    const items: { gate: Gate; images: Changed[] }[] = []
    for (const gate of gates.filter(leavesOut)) items.push({ gate, images: await changesOf(api, gate, limit) })
    const rows: string[][] = []
    for (const { gate, images } of items) {
      const names = await namesOfImages(api, images)
      const first = [gate.name, word(gate)]
      if (images.length === 0) rows.push([...first, '-', 'no image would be refused'])
      rows.push(...images.map(({ reason }, i) => [...first, names[i]!, reason]))
    }
    const isCut = more || items.some(({ images }) => images.length >= limit)
    return { json: { items }, head: ['GATE', 'MODE', 'IMAGE', 'WHY'], rows, more: isCut }
  },
})

function leavesOut({ vulnerabilities }: Gate): boolean {
  const { leastSeverity = '', unknownSeverity } = vulnerabilities ?? {}
  return unknownSeverity === 'NOT_COUNTED' && ['LOW', 'MEDIUM', 'HIGH'].includes(leastSeverity)
}

async function changesOf(api: ApiReader, { uid }: Gate, limit: number): Promise<Changed[]> {
  const images: Changed[] = []
  for (let after = ''; images.length < limit; ) {
    const answer = await api.call('POST', `/registry/v2/gates/${uid}:previewSeverities`, { after })
    images.push(...((answer.images ?? []) as Changed[]))
    after = String(answer.next ?? '')
    if (after === '') break
  }
  return images.slice(0, limit)
}

export const vulnerabilitiesGates: Commands = {
  ...ruleCommands<Gate>({
    ...kind,
    word: 'gate',
    fields,
    head: ['UID', 'NAME', 'MODE', 'RULE'],
    rows: async (_, gates) => gates.map((gate) => [gate.uid, gate.name, word(gate), ruleText(gate)]),
    create: {
      details: `A gate has one kind of rule, and holds for everybody who pulls. Unless --mode enforce is given it only tells, in the
event of each pull, what it would have refused. What was not read or compared yet passes.`,
      arguments: [{ name: '<name>', summary: 'What it is called: letters, digits, and . _ - inside' }],
    },
    update: {
      details: `What is said of its rule takes the place of all that it said before. Without --unknown-severity the gate keeps how unknown
severities count.`,
    },
  }),
  check,
  preview,
  ...exceptionCommands({
    path: '/registry/v2/gateExceptions',
    member: 'gateExceptions',
    days: 90,
    command: 'pinfold vulnerabilities gates',
  }),
}
