import type { Check, Finding, Verified } from '#maintenance/verify.ts'
import { exitCodes, usageError } from '../framework/cli-error.ts'
import { type Command, type Options, outputOption, type Terminal } from '../framework/command.ts'
import { configOf, settingOptions } from '../framework/settings.ts'

/** The most findings that are printed; the rest is only counted. */
const mostTold = 1000

/** Subject of each check. */
const about: Record<Check, string> = {
  blobs: 'rows of blobs have their contents',
  uploads: 'pieces of uploads have their contents',
  orphans: 'contents have a row',
  checkpoints: 'transparency logs extend their stored checkpoints',
  totals: 'totals of lists',
  usage: 'what organisations use',
  tags: 'tags are what the ledger says',
  ledger: 'the ledger is in order, and its tags are there',
  manifests: 'manifests have the rows of what they need',
}

export const verifyCommand: Command = {
  arguments: [{ name: '[image]', summary: 'What a proof is about: registry.example.com/acme/app:1.0@sha256:…' }],
  details: `With an image, checks offline whether --proof shows that the tag pointed to the digest at --at, by the log that --policy names.
Ends with 0 when it does, with 3 when it shows only where the tag came to point and not until when (0 with --open), and with
1 when it proves nothing of the kind. No server is asked, and no data folder is needed.

Without one, compares the database with what there is. Servers may run meanwhile. Reads the size of every blob; with --hash all of them, which takes as long as reading them does, and with --content a share, so that a run each day
has seen most of them in the end.
Without --repair nothing is changed. What cannot be repaired is told: a blob whose content is lost heals when it is pushed
again. Ends with 0 when everything is right, or was repaired, and with 1 otherwise.
Checks: ${Object.keys(about).join(', ')}.`,
  options: [
    ...settingOptions('data', 'database', 'blobs'),
    { flags: '--repair', summary: 'Repair what can be repaired' },
    { flags: '--hash', summary: 'Read every content and compare its digest' },
    { flags: '--content <share>', summary: 'Do so with a share of them that is drawn by chance, such as 1%' },
    { flags: '--only <check>', summary: 'Make this check; may be repeated', repeat: true, choices: Object.keys(about) },
    { flags: '--at <time>', summary: 'When the tag shall have pointed there: 2026-11-01, or 2026-11-01T12:00:00Z' },
    { flags: '--proof <file>', summary: 'What pinfold images tags proof has printed' },
    { flags: '--policy <file>', summary: 'The keys of the logs to believe, and which witnesses must have seen them' },
    { flags: '--open', summary: 'Be content with a proof that does not say until when' },
    outputOption,
  ],
  async run(terminal, options) {
    if (options.image !== undefined) return verifyImage(terminal, options)
    if ([options.at, options.proof, options.policy].some((one) => one !== undefined)) {
      throw usageError('name the image that the proof is about, with its tag and digest')
    }
    const config = configOf(terminal, options)
    const { verify } = await import('#maintenance/verify.ts')
    const only = options.only as readonly Check[] | undefined
    const wrong = only?.find((one) => !Object.hasOwn(about, one))
    if (wrong !== undefined) throw usageError(`there is no check ${wrong}`)
    const share = options.content === undefined ? undefined : shareOf(String(options.content))
    const findings: Finding[] = []
    const verified = await verify(config, {
      repair: options.repair === true,
      hash: options.hash === true || share !== undefined,
      ...(share === undefined || options.hash === true ? {} : { share }),
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

function shareOf(text: string): number {
  const percent = Number(/^(\d{1,3}(?:\.\d{1,6})?)%$/.exec(text)?.[1])
  if (percent > 0 && percent <= 100) return percent / 100
  throw usageError('--content must be a share above 0% and up to 100%, such as 1%')
}

async function verifyImage(terminal: Terminal, options: Options): Promise<number> {
  if ([options.repair, options.hash, options.content, options.only].some((one) => one !== undefined && one !== false)) {
    throw usageError('--repair, --hash, --content and --only are about the database, and not about an image')
  }
  return (await import('../registry/tag-proofs.ts')).verifyProof(terminal, String(options.image), options)
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
