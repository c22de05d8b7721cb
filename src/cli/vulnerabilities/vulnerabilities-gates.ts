// What has to be so of what is pulled.
import { commonOptions, show } from '../registry/image-options.ts'
import { exceptionCommands, placeOf, placeOptions, printMade, requiredPlaceOf } from '../registry/place-options.ts'
import { ruleNamed } from '../registry/rule-names.ts'
import { apiReader, callerOptions } from '../shape/api-pages.ts'
import { CliError, type Command, type Commands, exitCodes, outputOption } from '../shape/command.ts'
import { plain } from '../shape/plain-text.ts'
import { limitOf } from '../shape/verbs.ts'
import { bodyOf, fieldOptions, type Gate, ruleText } from './gate-options.ts'
import { preview } from './gates-preview.ts'
import { digestOf } from './scanned-image.ts'

type Checked = {
  policyName: string
  mode: string
  result: string
  parameters: { digest: string; kind: string; reason: string; exception?: string }
}

const path = '/registry/v2/gates'
const named = ruleNamed({ path, member: 'gates', words: ['gate', 'gates'], list: 'pinfold vulnerabilities gates list' })
const which = { name: '<gate>', summary: 'Its name, GROUP/NAME where several have that name, or its uid' }

const list: Command = {
  options: [...placeOptions, ...commonOptions],
  async run(terminal, options) {
    const api = await apiReader(terminal, options)
    const query = { scope_uid: await placeOf(api, options) }
    const { items, more } = await api.list<Gate>(path, 'gates', query, limitOf(options))
    const rows = items.map((one) => [one.uid, one.name, one.mode.toLowerCase().replace('_', '-'), ruleText(one)])
    return show(terminal, options, { items }, ['UID', 'NAME', 'MODE', 'RULE'], rows, more)
  },
}

const create: Command = {
  details: `A gate has one kind of rule, and holds for everybody who pulls. Unless --mode enforce is given it only tells, in the
event of each pull, what it would have refused. What was not read or compared yet passes.`,
  arguments: [{ name: '<name>', summary: 'What it is called: letters, digits, and . _ - inside' }],
  options: [...placeOptions, ...fieldOptions, outputOption, ...callerOptions],
  async run(terminal, options) {
    const api = await apiReader(terminal, options)
    const body = bodyOf({ ...options, rename: options.name })
    const made = (await api.call('POST', `${path}/${await requiredPlaceOf(api, options)}`, body)) as Gate
    return printMade(terminal, options, made, `made the gate ${made.uid}`)
  },
}

const update: Command = {
  details: `What is said of its rule takes the place of all that it said before. Without --unknown-severity the gate keeps how unknown
severities count.`,
  arguments: [which],
  options: [
    { flags: '--rename <name>', summary: 'What it is called from now on' },
    ...fieldOptions,
    outputOption,
    ...callerOptions,
  ],
  async run(terminal, options) {
    const api = await apiReader(terminal, options)
    const body = bodyOf(options)
    if (Object.keys(body).length === 0) throw new CliError(exitCodes.usage, 'say what to change')
    const made = (await api.call('PATCH', `${path}/${await named(api, String(options.gate))}`, body)) as Gate
    return printMade(terminal, options, made, `changed the gate ${made.uid}`)
  },
}

const remove: Command = {
  arguments: [which],
  options: [...callerOptions],
  async run(terminal, options) {
    const api = await apiReader(terminal, options)
    const uid = await named(api, String(options.gate))
    await api.call('DELETE', `${path}/${uid}`)
    terminal.print(plain(`deleted the gate ${uid}`))
    return exitCodes.ok
  },
}

const check: Command = {
  details: `The exit code is 1 if a gate that is enforced refuses it, or cannot be asked. An image that is allowed is not always clean:
WHY shows what was not scanned, and how many findings of unknown severity the gate does not count.`,
  arguments: [
    { name: '<image>', summary: 'Such as acme/team/app:1.0 or acme/app@sha256:…; its tag latest without one' },
  ],
  options: [outputOption, ...callerOptions],
  async run(terminal, options) {
    const api = await apiReader(terminal, options)
    const { repo, digest } = await digestOf(api, String(options.image))
    const answer = await api.call('POST', `/registry/v1/repos/${repo}:checkPolicies`, { digest })
    const items = (answer.results ?? []) as Checked[]
    const rows = items.map(({ policyName, mode, result, parameters: { reason, exception } }) => [
      policyName,
      mode === 'POLICY_MODE_ENFORCED' ? 'enforce' : 'dry-run',
      result.replace('RESULT_', '').toLowerCase(),
      exception === undefined ? reason : `${reason}; excepted by ${exception}`,
    ])
    show(terminal, options, { digest, items }, ['GATE', 'MODE', 'RESULT', 'WHY'], rows, false)
    const isRefused = items.some(({ mode, result }) => mode === 'POLICY_MODE_ENFORCED' && result !== 'RESULT_ALLOWED')
    return isRefused ? exitCodes.failed : exitCodes.ok
  },
}

const exceptions = exceptionCommands({
  path: '/registry/v2/gateExceptions',
  member: 'gateExceptions',
  days: 90,
  command: 'pinfold vulnerabilities gates',
})

export const vulnerabilitiesGates: Commands = { list, create, update, delete: remove, check, preview, ...exceptions }
