// What can be said of a gate, as options.
import { CliError, exitCodes, type OptionSpec, type Options } from '../shape/command.ts'

export type Gate = {
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

export const fieldOptions: readonly OptionSpec[] = [
  { flags: '--mode <mode>', summary: 'What happens to what does not pass', choices: ['off', 'dry-run', 'enforce'] },
  {
    flags: '--severity <level>',
    summary: 'No vulnerabilities that are at least so bad',
    choices: ['any', 'low', 'medium', 'high', 'critical'],
  },
  { flags: '--fixable', summary: 'Of these, only those that a version of the package mends' },
  { flags: '--exploited', summary: 'Of these, only those that are known to be used (KEV)' },
  { flags: '--after-days <days>', summary: 'Of these, only those found more than so many days ago' },
  {
    flags: '--unknown-severity <how>',
    summary: 'How vulnerabilities of unknown severity count: as high unless given; an update keeps what the gate has',
    choices: ['high', 'not-counted'],
  },
  { flags: '--unknown <what>', summary: 'What becomes of what cannot be read', choices: ['pass', 'deny'] },
  { flags: '--end-of-life', summary: 'No products at the end of their life' },
  { flags: '--min-age-days <days>', summary: 'Nothing that has not been a tag for so many days' },
  { flags: '--months-left <months>', summary: 'No products whose life ends in less than so many months' },
  { flags: '--exempt-pulled-days <days>', summary: 'What was pulled in so many days before, while it passed, passes' },
]

/** The members that options name. */
export function bodyOf(options: Options): Record<string, unknown> {
  const { mode, rename, minAgeDays, monthsLeft, exemptPulledDays } = options
  const given = {
    name: rename,
    mode: mode === undefined ? undefined : upper(mode),
    vulnerabilities: vulnerabilitiesOf(options),
    endOfLife: options.endOfLife === true ? {} : undefined,
    cooldown: minAgeDays === undefined ? undefined : { minAgeDays: wholeOf(minAgeDays, '--min-age-days') },
    supportWindow: monthsLeft === undefined ? undefined : { minMonthsLeft: wholeOf(monthsLeft, '--months-left') },
    exemptPulledDays: exemptPulledDays === undefined ? undefined : wholeOf(exemptPulledDays, '--exempt-pulled-days'),
  }
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
}

function vulnerabilitiesOf(options: Options): object | undefined {
  const { severity, fixable, exploited, afterDays, unknown, unknownSeverity } = options
  if ([severity, afterDays, unknown, unknownSeverity].every((one) => one === undefined) && !fixable && !exploited)
    return undefined
  return {
    ...(severity !== undefined && severity !== 'any' && { leastSeverity: upper(severity) }),
    ...(fixable === true && { onlyFixable: true }),
    ...(exploited === true && { onlyExploited: true }),
    ...(afterDays !== undefined && { afterDays: wholeOf(afterDays, '--after-days') }),
    ...(unknown !== undefined && { unknown: upper(unknown) }),
    ...(unknownSeverity !== undefined && {
      unknownSeverity: unknownSeverity === 'high' ? 'COUNTED_AS_HIGH' : 'NOT_COUNTED',
    }),
  }
}

const upper = (text: Options[string]): string => String(text).toUpperCase().replace('-', '_')

function wholeOf(text: Options[string], option: string): number {
  if (/^\d{1,6}$/.test(String(text))) return Number(text)
  throw new CliError(exitCodes.usage, `${option} must be a whole number`)
}

/** The rule of a gate in a few words. */
export function ruleText({ vulnerabilities, endOfLife, cooldown, supportWindow }: Gate): string {
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
