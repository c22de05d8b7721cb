import type { Check, Finding, Verified } from '#verify.ts'
import { CliError, type Command, exitCodes, outputOption, type Terminal } from '../shape/command.ts'
import { configOf, settingOptions } from '../shape/settings.ts'

/** How many findings are told; the rest is only counted. */
const mostTold = 1000

/** What each of them looks at. */
const about: Record<Check, string> = {
  blobs: 'rows of blobs have their contents',
  uploads: 'pieces of uploads have their contents',
  orphans: 'contents have a row',
  totals: 'totals of lists',
  usage: 'what organisations use',
  tags: 'tags are what the ledger says',
  ledger: 'the ledger is in order, and its tags are there',
  manifests: 'manifests have the rows of what they need',
}

export const verifyCommand: Command = {
  name: 'verify',
  summary: 'Compare what the database says with what there is, and repair what can be repaired',
  details: `Servers may run meanwhile. Reads the size of every blob; with --hash all of them, which takes as long as reading them does.
Without --repair nothing is changed. What cannot be repaired is told: a blob whose content is lost heals when it is pushed
again. Ends with 0 when everything is right, or was repaired, and with 1 otherwise.
Checks: ${Object.keys(about).join(', ')}.`,
  options: [
    ...settingOptions('data', 'database', 'blobs'),
    { flags: '--repair', summary: 'Repair what can be repaired' },
    { flags: '--hash', summary: 'Read every content and compare its digest' },
    { flags: '--only <check>', summary: 'Make this check; may be repeated', repeat: true, choices: Object.keys(about) },
    outputOption,
  ],
  async run(terminal, options) {
    const config = configOf(terminal.env, options)
    const { verify } = await import('#verify.ts')
    const only = options.only as readonly Check[] | undefined
    const wrong = only?.find((one) => !Object.hasOwn(about, one))
    if (wrong !== undefined) throw new CliError(exitCodes.usage, `there is no check ${wrong}`)
    const findings: Finding[] = []
    const verified = await verify(config, {
      repair: options.repair === true,
      hash: options.hash === true,
      ...(only ? { only } : {}),
      found(finding) {
        if (findings.length < mostTold) findings.push(finding)
      },
      progress: (check, examined) => terminal.status?.(`${check}: ${examined} …`),
    })
    terminal.status?.('')
    if (options.output === 'json') terminal.print(JSON.stringify({ checks: verified, findings }))
    else show(terminal, verified, findings, only)
    const left = Object.values(verified).some(({ found, repaired }) => found > repaired)
    return left ? exitCodes.failed : exitCodes.ok
  },
}

function show(
  terminal: Terminal,
  verified: Verified,
  findings: readonly Finding[],
  only: readonly Check[] | undefined,
): void {
  for (const { check, problem, subject, detail, repaired } of findings) {
    terminal.say(`${check}: ${problem}${repaired ? ', repaired' : ''}: ${subject} (${detail})`)
  }
  for (const [check, { examined, found, repaired }] of Object.entries(verified)) {
    if (only && !only.includes(check as Check)) continue
    const problems = found === 0 ? 'all right' : `${found} wrong, ${repaired} repaired`
    terminal.print(`${check}: ${examined} examined, ${problems} (${about[check as Check]})`)
  }
  const all = Object.values(verified).reduce((sum, { found }) => sum + found, 0)
  if (all > findings.length) terminal.say(`pinfold: ${all - findings.length} more are not named`)
}
