import { jsonText } from '#lib/terminal/plain-text.ts'
import type { Check, Finding, Verified } from '#maintenance/verify.ts'
import { exitCodes, usageError } from '../framework/cli-error.ts'
import { type Command, type OptionSpec, type Options, outputOption, type Terminal } from '../framework/command.ts'
import { configOf, settingOptions } from '../framework/settings.ts'

/** Maximum number of findings that are printed. All findings are counted. */
const mostTold = 1000

/** Noun for the items of each check. */
const about: Record<Check, string> = {
  blobs: 'blobs of the database have stored content',
  uploads: 'pieces of uploads have stored content',
  orphans: 'stored content is in the database',
  checkpoints: 'transparency logs extend their stored checkpoints',
  totals: 'totals of lists are correct',
  usage: 'storage usage of organizations is correct',
  tags: 'tags match their history',
  ledger: 'the tag history is in order, and its tags exist',
  manifests: 'blobs and manifests that manifests need are in the database',
}

const proofOptions: readonly OptionSpec[] = [
  { flags: '--at <time>', summary: 'Time at which the tag had the digest: 2026-11-01, or 2026-11-01T12:00:00Z' },
  { flags: '--proof <file>', summary: 'Proof: a file with the output of pinfold tags proof' },
  {
    flags: '--policy <file>',
    summary: 'Public keys of trusted logs and witnesses: the output of pinfold tags proof-policy',
  },
  { flags: '--open', summary: 'Accept a proof without the end of the assignment' },
]

/** Verifies a proof that a tag had a digest. Needs no server. */
export const tagsVerify: Command = {
  arguments: [{ name: '<image>', summary: 'Image with tag and digest: registry.example.com/acme/app:1.0@sha256:…' }],
  details: `Verifies offline that the tag had the digest at --at, according to the transparency log of --policy. Needs no server and
no data folder.
Exits with 0 if the proof is valid. Exits with 3 if the proof shows the start of the assignment but not its end (with 0 if
--open is given). Exits with 1 if the proof is not valid.`,
  options: [...proofOptions, outputOption],
  run: (terminal, options) => verifyImage(terminal, options),
}

/** Compares the database with the blob store. */
export const verifyCommand: Command = {
  details: `Compares the database with the stored content. Servers can keep running. By default the size of every blob is compared.
With --hash the content of all blobs is read, which takes time. With --content a random share is read: a daily run with 1%
reads most blobs in the end.
Nothing is changed without --repair. A blob whose content is lost cannot be repaired; pushing it again restores it.
Exits with 0 if there is no difference or every difference was repaired, else with 1.
Checks: ${Object.keys(about).join(', ')}.`,
  options: [
    ...settingOptions('data', 'database', 'blobs'),
    { flags: '--repair', summary: 'Repair the differences that can be repaired' },
    { flags: '--hash', summary: 'Read all content and compare the digests' },
    { flags: '--content <share>', summary: 'Read a random share of the content, such as 1%, and compare the digests' },
    {
      flags: '--only <check>',
      summary: 'Run only this check; may be repeated',
      repeat: true,
      choices: Object.keys(about),
    },
    outputOption,
  ],
  async run(terminal, options) {
    const config = configOf(terminal, options)
    const { verify } = await import('#maintenance/verify.ts')
    const only = options.only as readonly Check[] | undefined
    const wrong = only?.find((one) => !Object.hasOwn(about, one))
    if (wrong !== undefined) throw usageError(`${wrong} is not a check; give one of ${Object.keys(about).join(', ')}`)
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
    if (options.output === 'json') terminal.print(jsonText({ checks: verified, findings }))
    else show(terminal, verified, findings, only)
    const left = Object.values(verified).some(({ found, repaired }) => found > repaired)
    return left ? exitCodes.failed : exitCodes.ok
  },
}

/** Former command `verify`. With an image as argument, it verified a proof. */
export const formerVerify: Command = {
  ...verifyCommand,
  arguments: [{ ...tagsVerify.arguments![0]!, name: '[image]' }],
  options: [...verifyCommand.options, ...proofOptions],
  async run(terminal, options) {
    if (options.image !== undefined) return verifyImage(terminal, options)
    if ([options.at, options.proof, options.policy].some((one) => one !== undefined)) {
      throw usageError('nothing was verified: give the image of the proof, with its tag and digest')
    }
    return verifyCommand.run(terminal, options)
  },
}

function shareOf(text: string): number {
  const percent = Number(/^(\d{1,3}(?:\.\d{1,6})?)%$/.exec(text)?.[1])
  if (percent > 0 && percent <= 100) return percent / 100
  throw usageError('--content must be a share above 0% and up to 100%, such as 1%')
}

async function verifyImage(terminal: Terminal, options: Options): Promise<number> {
  if ([options.repair, options.hash, options.content, options.only].some((one) => one !== undefined && one !== false)) {
    throw usageError('--repair, --hash, --content and --only do not apply to the proof of an image')
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
  if (all > findings.length) terminal.say(`pinfold: ${all - findings.length} more differences are not listed`)
}
